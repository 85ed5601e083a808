//! One plan per node: the decisions of all rules that concern it, merged into the least that has to be written.
//!
//! | file | what it does |
//! |---|---|
//! | `state` | what a plan is made from |
//! | `evaluate` | a rule's conditions, held against a node |
//! | `decision` | the table of what follows |
//! | `memory`, `patience` | whether an open node may be closed yet, and what is remembered for that |
//! | `doubts` | what was seen that may not be so any more |
//! | `passed_over` | what no rule waits for though it is labelled |
//! | `walk` | goes from taint to taint |
//! | `settle` | settles one taint: which rule governs it, what it decides, whose the taint then is |
//! | `clean_up` | taints and annotations whose rule is going, gone, or about other nodes now |
//! | `deadlines` | when the time of a node is up that never gets ready, and what is done about it then |
//! | `publish` | the synthesized conditions that the node should carry |
//! | `draft` | what all of these note it in |
//! | `node_plan`, `outcome`, `change`, `conditions`, `waiting` | the plan as it comes out |
//! | `parts` | the plan taint by taint, where the whole is refused |

mod change;
mod clean_up;
mod conditions;
mod deadlines;
mod decision;
mod doubts;
mod draft;
mod evaluate;
mod few;
mod memory;
mod node_plan;
mod outcome;
mod parts;
mod passed_over;
mod patience;
mod publish;
mod settle;
mod state;
#[cfg(test)]
mod tests;
mod waiting;
mod walk;

pub use change::{ChangeKind, TaintChange, TaintId};
pub use conditions::{ConditionChanges, NewCondition, Urgency};
pub use decision::{Decision, WaitReason, decide};
pub use doubts::Doubts;
pub use evaluate::{Evaluation, Finding, evaluate};
pub use few::Few;
pub use memory::Memory;
pub use node_plan::NodePlan;
pub use outcome::{Origin, Outcome, Standing};
pub use parts::{Part, parts};
pub use passed_over::{PassedOver, WhyPassedOver};
pub use patience::is_new;
pub use state::{ClusterState, NodeHistory, NodeState};
pub use waiting::{Component, Waiting};
pub use walk::plan;
