//! The laboratory's cluster: the API server as a value, pure and deterministic, for the kinds of object that Nodegate
//! touches.
//!
//! ```text
//! kind       what is known of each kind: where it is, what its subresource covers, how it is deleted
//! request    what is asked of the server, as a value
//! answer     what it answers, as a value
//! server     the objects, the revision, and what a request does to them
//! write      what an object becomes as it is created or updated
//! deletion   what becomes of an object that is deleted
//! patch      JSON patches, merge patches and strategic merge patches
//! selector   label and field selectors
//! watch      what a watch shows of the changes since a revision
//! normal     an object as the API server would write it
//! uid        UIDs out of a seed
//! sim        a whole cluster in one process, around the engine, where things happen and go wrong
//! ```
//!
//! But for `sim`, nothing here knows a clock, a network or chance: time comes with each request, and UIDs follow from a seed.
//! Nothing goes wrong here either: who carries a [`Request`] to [`Server::answer`] decides whether it arrives and whether its answer
//! comes back, and who reads [`Server::events`] decides what of it is seen, and when.
//!
//! Not modelled: validation beyond what Nodegate's own writes can offend against, generated names, server-side apply,
//! collection of what is owned, pages of lists, managed fields, and the defaults that Nodegate does not read. `tests/model`
//! holds all else against the real API server.

pub mod answer;
mod deletion;
pub mod kind;
mod normal;
mod patch;
pub mod request;
pub mod selector;
mod server;
pub mod sim;
mod uid;
pub mod watch;
mod write;

pub use answer::{Answer, List, Refusal, Success};
pub use kind::{Key, Kind};
pub use request::{Part, Patch, Preconditions, Request};
pub use selector::{InvalidSelector, Selector};
pub use server::Server;
pub use watch::{Event, EventType};
