//! The controller in a cluster that makes it difficult: others that write the same nodes, watches that die, an incomplete
//! installation, and other versions of itself.

mod contention;
mod emergency;
mod giving_way;
mod installation;
mod suspension;
mod unreadable;
mod upgrade;
mod watches;
