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

pub use health::{Census, Group};
pub use karpenter::{Karpenter, NodeClaims};
pub(crate) use karpenter::{NoClaim, pool_name};
pub(crate) use settling::Settling;
pub use situation::Situation;
pub(crate) use situation::{BLOCKED_INTERVAL, Headcount, Postponed};
pub use ttl::in_force;
pub(crate) use ttl::{NoTtl, ReadinessTtl};
pub use verdict::{Case, Spared};
pub(crate) use verdict::{Remedy, Verdict, has_been_open};
