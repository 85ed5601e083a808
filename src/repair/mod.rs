//! What happens to a node that a bootstrap-only rule still gates when its time is up.
//!
//! [`in_force`] says how long a node may take, [`Deadline`] when its time is up, [`NodeClaims`] which Karpenter
//! `NodeClaim` it came from, [`Census`] how the other nodes are doing, [`Settling`] from when on anything may be
//! done after something could not be seen, [`Situation`] what all that says at one time, and [`Case::judge`] what follows: a
//! [`Verdict`] with the remedy, or with the reason why the node is left alone. Pure: no client, no clock, no async.

mod deadline;
mod health;
mod karpenter;
mod settling;
mod situation;
#[cfg(test)]
mod tests;
mod ttl;
mod verdict;

pub use deadline::Deadline;
pub use health::{Census, Group, GroupHealth};
pub use karpenter::{Karpenter, NoClaim, NodeClaims, pool_name};
pub use settling::Settling;
pub use situation::{BLOCKED_INTERVAL, Headcount, Postponed, Situation};
pub use ttl::{NoTtl, ReadinessTtl, TtlSource, in_force};
pub use verdict::{Blocked, Case, Remedy, Spared, Verdict, has_been_open};
