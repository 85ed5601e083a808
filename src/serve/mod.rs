//! What listens: the webhook, `/metrics` and the probes, each on an address of its own. Whoever can reach one of them can send
//! bytes without credentials, so every server bounds what a client can make it keep (`limiter`), and `/metrics` can be shown
//! to those alone to whom the API server grants it (`access`). Nothing here knows what the answers mean.

mod acceptor;
mod access;
pub(crate) mod address;
mod limiter;
pub(crate) mod metrics;
mod server;
pub(crate) mod tls;

pub(crate) use limiter::ConnectionLimits;
pub(crate) use server::Server;
