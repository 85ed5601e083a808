//! `explain`: why something is as it is, since when, and what to do next.
//!
//! | file | what it does |
//! |---|---|
//! | `node` | explains a node, rule by rule |
//! | `rule` | explains a rule, node by node |
//! | `pod` | explains a pod, and what keeps it from being bound |
//! | `finding` | explains a condition, down to the container |
//! | `obstacles` | what else keeps pods off a node |
//! | `next` | what to do about it |
//! | `text` | all of it for people |

mod finding;
mod next;
mod node;
mod obstacles;
mod pod;
mod rule;
mod text;

pub use finding::{Cause, ConditionOnNode};
pub use next::Next;
pub use node::{NodeExplanation, NodeVerdict, RuleOnNode, explain_node};
pub use obstacles::Obstacle;
pub use pod::{Candidates, ClosedNodes, PodExplanation, explain_pod};
pub use rule::{FailedNode, NodeOfRule, Requirement, RuleExplanation, explain_rule};
