//! What the webhook and the command line share to read a cluster: the kinds of objects, filters, paged lists, and why something
//! could not be read; and the layer that makes bookmarks of watches visible.

mod filter;
mod kind;
mod list;
mod unreadable;
pub mod watch;

pub(crate) use filter::Filter;
pub use kind::ResourceKind;
pub(crate) use list::{Cluster, ListPage, Objects};
pub use unreadable::Unreadable;
