//! The simulation: a model of the API server as a pure, deterministic value, for the kinds of object that Nodegate touches, and
//! in `sim` a whole simulated cluster around the engine.
//!
//! Outside `sim`, nothing here knows a clock, a network or chance: each request carries the time, and UIDs follow from a seed.
//! Nothing fails here either. The carrier of a [`Request`] to [`Server::answer`] decides whether the request and its answer
//! arrive; the reader of [`Server::events`] decides which events it sees, and when.
//!
//! Not modelled: requests that nobody in the simulation makes (such as updates), validation that Nodegate's own writes cannot fail,
//! generated names, server-side apply, garbage collection, managed fields, and defaults that Nodegate does not read. `tests/model`
//! compares everything else with the real API server.

#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::needless_pass_by_value,
    clippy::return_self_not_must_use,
    reason = "only tests call this, and fail with the error"
)]

pub mod answer;
mod deletion;
pub mod kind;
mod normal;
mod patch;
pub mod request;
pub mod selector;
mod server;
pub mod sim;
pub mod watch;
mod write;

pub use answer::{Answer, Refusal, Success};
pub use kind::{Key, Kind};
pub use request::{Part, Patch, Preconditions, Request};
pub use selector::Selector;
pub use server::{Definition, Server};
pub use watch::{Event, EventType};
