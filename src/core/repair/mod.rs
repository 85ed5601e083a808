//! [`judge`] decides about a node that a rule still holds after its readiness deadline: the remedy, or why it is left alone.

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
pub use karpenter::{Karpenter, NoClaim, NodeClaims};
pub use setback::Futile;
pub use ttl::{NoTtl, in_force};
pub use verdict::{Before, Spared, Verdict, has_been_released, judge};
