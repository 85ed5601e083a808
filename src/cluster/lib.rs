//! The API server: a client, paged lists with filters, watches as streams with visible bookmarks, and why something was not read.

#![allow(missing_docs, reason = "a doc says what the name does not")]

pub mod bookmarks;
mod causes;
pub mod certificate;
pub mod client;
mod gap;
mod list;
pub mod process;
mod stream;

pub use causes::with_causes;
pub use gap::Gap;
pub use list::{Cluster, Objects, objects};
pub use nodegate_core::object::ResourceKind;
pub use stream::{Events, events, explain, rbac, refusal};
