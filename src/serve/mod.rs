//! What listens: the webhook, `/metrics` and the probes, each on an address of its own. Whoever can reach one of them
//! needs no credentials to send bytes, so every server has bounds on whatever a client can make it keep.
//!
//! | file | what it does |
//! |---|---|
//! | `address` | an address, as the command line gives it |
//! | `room` | how many connections and bytes a server takes, for how long, and who goes when there are more (pure) |
//! | `server` | connections, held to what the room allows |
//! | `tls` | certificates: where they come from, and how they are followed |
//! | `access` | who may read what is served |
//! | `metrics` | `/metrics`, open or guarded |
//!
//! It does not know what the answers mean.

mod access;
pub mod address;
pub mod metrics;
mod room;
mod server;
pub mod tls;

pub use room::RoomLimits;
pub use server::Server;
