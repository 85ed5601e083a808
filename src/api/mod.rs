//! The `NodeReadinessRule` resource as Rust types, and the `CustomResourceDefinition` made from them.
//!
//! What a rule may say is settled here: fields, limits, defaults, and the CEL rules by which the API server turns
//! down a rule that could not work. What a rule *does* is not decided here; see `rule`.
//!
//! | file | what it holds |
//! |---|---|
//! | [`rule`](NodeReadinessRuleSpec) | the spec: conditions, taint, node selector, mode |
//! | [`taint`](TaintSpec) | its taint |
//! | `node_selector` | the schema of its node selector |
//! | `choice` | what is one of a few words in it |
//! | [`disruption`](Disruption) | how fast a rule may take nodes away |
//! | [`repair`](Repair) | what happens to a node that never gets ready |
//! | [`status`](NodeReadinessRuleStatus) | what the controller reports back |
//! | [`duration`](Duration) | durations as Kubernetes writes them (`5m`, `1h30m`) |
//! | `words` | enums that are one of a few words in YAML |
//! | [`names`] | group, finalizer, taint and annotation prefixes |
//! | [`crd`](crd()) | the manifest that `nodegate crd` prints |

mod choice;
mod crd;
mod disruption;
mod duration;
pub mod names;
mod node_selector;
mod repair;
mod rule;
mod status;
mod taint;
mod words;

pub use choice::{
    ConditionPolicy, ConditionStatus, EnforcementMode, ExistingNodes, TaintEffect, TaintPolicy,
};
pub use crd::{crd, crd_yaml, other_owner};
pub use disruption::Disruption;
pub use duration::{Duration, ParseDurationError};
pub use repair::{MaxUnhealthy, ParseMaxUnhealthyError, Repair, RepairAction};
pub use rule::{ConditionRequirement, MAX_CONDITIONS, NodeReadinessRule, NodeReadinessRuleSpec};
pub use status::{
    ConditionResult, DryRunResults, NodeEvaluation, NodeFailure, NodeReadinessRuleStatus,
    TaintStatus,
};
pub use taint::TaintSpec;
pub(crate) use taint::time_if_readable;
pub use words::UnknownWord;
