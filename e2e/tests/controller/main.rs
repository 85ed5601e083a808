//! The controller in a cluster that makes it difficult: watches that die, an incomplete installation, and other versions of
//! itself.

mod emergency;
mod giving_way;
mod installation;
mod suspension;
mod upgrade;
mod watches;
