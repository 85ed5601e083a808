//! What happens to a node that a bootstrap-only rule still holds after its readiness deadline. [`judge`] returns a [`Verdict`]: the
//! remedy, or the reason why the node is left alone. Pure: no client, no clock, no async.

mod deadline;
mod health;
mod karpenter;
mod setback;
#[cfg(test)]
mod tests;
mod ttl;
mod verdict;

pub use deadline::Deadline;
pub use health::{BLOCKED_INTERVAL, Census, Group, may_be_late};
pub use karpenter::{Karpenter, NoClaim, NodeClaims, pool_name};
pub use setback::Futile;
pub use ttl::{NoTtl, in_force};
pub use verdict::{Before, Spared, Verdict, has_been_released, judge};
