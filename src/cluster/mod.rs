//! Reads a cluster for the command line: the kinds of objects, filters, paged lists, and why something could not be read. The
//! client's layer makes bookmarks of watches visible, for the controller too.

mod filter;
mod kind;
mod list;
mod unreadable;
pub mod watch;

pub(crate) use filter::Filter;
pub use kind::ResourceKind;
pub(crate) use list::{Cluster, ListPage, Objects};
pub use unreadable::Unreadable;
