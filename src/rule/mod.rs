//! Rules: compiled once, evaluated for a node, decided together, and put into one plan per node.
//!
//! [`Rule`] is a `NodeReadinessRule` made ready for use, [`RuleSet`] all of them in the order in which they
//! govern, [`evaluate`] holds a rule's conditions against a node, [`decide`] is the table of what follows,
//! `patience` says whether an open node may be closed yet, [`plan`] merges the decisions of all rules on one node, and
//! [`PassedOver`] names what no rule waits for though it is labelled.
//! Pure: no client, no clock, no async.

mod compile;
mod conflict;
mod decision;
mod doubts;
mod evaluate;
mod few;
mod ownership;
mod passed_over;
mod patience;
mod plan;
mod rejection;
mod set;
mod taint_key;
#[cfg(test)]
mod tests;

pub use compile::{CompiledSpec, Reach, Requirement, Rule};
pub use conflict::Conflict;
pub use decision::{Decision, Held, decide};
pub use doubts::Doubts;
pub use evaluate::{ConditionResult, Evaluation, evaluate};
pub use few::Few;
pub use ownership::Ownership;
pub use passed_over::{PassedOver, WhyPassedOver};
pub use patience::{Memory, is_new};
pub use plan::{
    ChangeKind, ClusterState, ConditionChanges, NewCondition, NodePlan, NodeState, Outcome, Part,
    Standing, TaintChange, TaintId, Urgency, Waiting, parts, plan,
};
pub use rejection::Rejection;
pub use set::RuleSet;
pub use taint_key::is_foreign;
