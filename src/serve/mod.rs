//! Servers for the webhook, `/metrics` and the probes, each on its own address. Anyone who can reach one can send bytes without
//! credentials, so every server bounds what a client can make it keep (`permits`); `/metrics` can require the API server's
//! permission (`access`). Handlers and their answers live elsewhere.

mod access;
pub(crate) mod address;
pub(crate) mod metrics;
mod permits;
mod server;
pub(crate) mod tls;

pub(crate) use permits::Permits;
pub(crate) use server::{Peer, Server};
