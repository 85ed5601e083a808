//! What happens to a node that a bootstrap-only rule still holds after its readiness deadline. [`judge`] returns a [`Verdict`]: the
//! remedy, or the reason why the node is left alone. Pure: no client, no clock, no async.

mod deadline;
mod health;
mod karpenter;
#[cfg(test)]
mod tests;
mod ttl;
mod verdict;

pub use deadline::Deadline;

pub(crate) use health::{BLOCKED_INTERVAL, may_be_late};
pub use health::{Census, Group};
pub use karpenter::{Karpenter, NodeClaims};
pub(crate) use karpenter::{NoClaim, pool_name};
pub use ttl::in_force;
pub(crate) use ttl::{NoTtl, ReadinessTtl};
pub use verdict::{Spared, Verdict};
pub(crate) use verdict::{has_been_released, judge};
