//! What happens to a node that a bootstrap-only rule still gates after its readiness deadline. [`Case::judge`] returns a
//! [`Verdict`]: the remedy, or the reason why the node is left alone. Pure: no client, no clock, no async.

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
