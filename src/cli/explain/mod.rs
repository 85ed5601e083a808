//! `explain`: why a node, rule, pod or `DaemonSet` is in its state, since when, and what to do next.

mod daemon_set;
mod finding;
mod node;
mod pod;
mod rule;
mod text;

pub(super) use daemon_set::explain_daemon_set;
pub use finding::ConditionOnNode;
pub(super) use node::explain_node;
pub(super) use pod::explain_pod;
pub(super) use rule::explain_rule;
