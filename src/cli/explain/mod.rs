//! `explain`: why a node, rule or pod is in its state, since when, and what to do next.

mod finding;
mod node;
mod pod;
mod rule;
mod text;

pub use finding::ConditionOnNode;
pub use node::{NodeExplanation, RuleOnNode, explain_node};
pub(super) use pod::explain_pod;
pub(super) use rule::explain_rule;
