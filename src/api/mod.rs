//! The `NodeReadinessRule` resource as Rust types, and the `CustomResourceDefinition` made from them.
//!
//! What a rule may say is settled here: fields, limits, defaults, and the CEL rules by which the API server turns
//! down a rule that could not work. What a rule *does* is not decided here; see `rule`.
//!
//! | file | what it holds |
//! |---|---|
//! | [`rule`](NodeReadinessRuleSpec) | the spec: conditions, taint, node selector, mode |
//! | [`disruption`](Disruption) | how fast a rule may take nodes away |
//! | [`repair`](Repair) | what happens to a node that never gets ready |
//! | [`status`](NodeReadinessRuleStatus) | what the controller reports back |
//! | [`duration`](Duration) | durations as Kubernetes writes them (`5m`, `1h30m`) |
//! | `words` | enums that are one of a few words in YAML |
//! | [`names`] | group, finalizer, taint and annotation prefixes |
//! | [`crd`](crd()) | the manifest that `nodegate crd` prints |

mod crd;
mod disruption;
mod duration;
pub mod names;
mod repair;
mod rule;
mod status;
mod words;

pub use crd::{crd, crd_yaml};
pub use disruption::Disruption;
pub use duration::{Duration, ParseDurationError};
pub use repair::{MaxUnhealthy, ParseMaxUnhealthyError, Repair, RepairAction};
pub(crate) use rule::time_if_readable;
pub use rule::{
    ConditionPolicy, ConditionRequirement, ConditionStatus, EnforcementMode, NodeReadinessRule,
    NodeReadinessRuleSpec, Taint, TaintEffect, TaintPolicy,
};
pub use status::{
    ConditionResult, DryRunResults, NodeEvaluation, NodeFailure, NodeReadinessRuleStatus,
    TaintStatus,
};
pub use words::UnknownWord;
