//! The `NodeReadinessRule` resource as Rust types: fields, limits, defaults, and the CEL rules by which the API server rejects
//! invalid rules. The effects of a rule are in [`crate::rule`] and [`crate::plan`].

#![allow(
    unreachable_pub,
    reason = "derives repeat the visibility of what they derive from, and miss its re-export"
)]

mod choice;
mod crd;
mod disruption;
mod duration;
pub mod names;
mod node_share;
mod nodegate;
mod repair;
mod rule;
mod schema;
mod status;
mod taint;
mod words;

pub use choice::{
    ConditionPolicy, ConditionStatus, EnforcementMode, ExistingNodes, RegateOn, TaintEffect,
    TaintPolicy,
};
pub use crd::{crd, other_owner};
pub use disruption::Disruption;
pub use duration::Duration;
pub use node_share::NodeShare;
pub use nodegate::{MAX_PAUSES, MAX_SETBACKS, NodegateStatus, misplaced};
pub use nodegate::{NodegateRequirement, NodegateSpec, Pause, PauseReason, Permission, Setback};
pub use repair::{Repair, RepairAction};
pub(crate) use rule::MAX_CONDITIONS;
pub use rule::{ConditionRequirement, NodeReadinessRule, NodeReadinessRuleSpec};
pub use status::{
    ConditionResult, DryRunResults, NodeEvaluation, NodeFailure, NodeReadinessRuleStatus,
    TaintStatus,
};
pub(crate) use words::words;
