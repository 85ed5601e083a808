//! Servers for the webhook, `/metrics` and the probes, each on its own address. Anyone who can reach one can send bytes without
//! credentials, so every server bounds what a client can make it keep (`limiter`, `places`); `/metrics` can require the API server's
//! permission (`access`). Handlers and their answers live elsewhere.

mod acceptor;
mod access;
pub(crate) mod address;
mod limiter;
pub(crate) mod metrics;
mod places;
mod server;
pub(crate) mod tls;

pub(crate) use limiter::ConnectionLimits;
pub(crate) use places::Places;
pub(crate) use server::{Peer, Server};
