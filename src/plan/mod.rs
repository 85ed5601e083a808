//! One plan per node: the decisions of all rules that select it, merged into the fewest writes. `make` settles one taint after
//! another with `settle`, which evaluates conditions, decides by the table in `decision` and collects the results in the
//! `draft`.

mod after;
mod backing;
mod change;
mod clean_up;
mod conditions;
mod deadlines;
mod decision;
mod draft;
mod evaluate;
mod make;
mod memory;
mod node_plan;
mod outcome;
mod passed_over;
mod patience;
mod publish;
mod settle;
mod stale_kinds;
mod state;
mod taint_plan;
#[cfg(test)]
mod tests;
mod waiting;

#[cfg(test)]
pub(crate) use backing::Unmade;
pub(crate) use backing::{Backing, Placement, WhyUnmade};
pub use change::TaintId;
pub(crate) use change::{ChangeKind, TaintChange};
pub(crate) use conditions::{ConditionChanges, NewCondition, Urgency};
pub use decision::decide;
pub(crate) use decision::{Decision, WaitReason};
pub use evaluate::Finding;
pub(crate) use evaluate::WAITS_FOR_RULE;

pub use make::plan;
pub(crate) use memory::Memory;
pub use node_plan::NodePlan;
pub(crate) use outcome::Origin;
pub use outcome::{Outcome, Standing};
pub(crate) use passed_over::{PassedOver, WhyPassedOver};
pub use patience::is_new;
pub use stale_kinds::StaleKinds;
pub use state::{ClusterState, NodeHistory, NodeState};
pub(crate) use taint_plan::TaintPlan;
pub use waiting::{Component, Waiting};
