//! The API server: a client, paged lists with filters, watches as streams, and why something could not be
//! read. The client's layer makes bookmarks of watches visible.

pub mod bookmarks;
mod causes;
pub(crate) mod client;
mod gap;
mod list;
mod stream;

pub use crate::object::ResourceKind;
pub(crate) use causes::with_causes;
pub use gap::Gap;
pub(crate) use list::{Cluster, Objects, objects};
pub(crate) use stream::{Events, events, explain, rbac, refusal};
