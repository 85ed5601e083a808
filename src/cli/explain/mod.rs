//! `explain`: why a node, rule, pod or `DaemonSet` is in its state, since when, and what to do next.

mod daemon_set;
mod finding;
mod node;
mod pod;
mod rule;

use super::page::{Block, Branch, Line, NextStep, notes};
pub(super) use daemon_set::explain_daemon_set;
pub use finding::ConditionOnNode;
pub(super) use node::{NodeExplanation, explain_node};
pub(super) use pod::explain_pod;
pub(super) use rule::explain_rule;

fn told(tree: Branch, next: Option<&NextStep>, about: &[String]) -> Vec<Block> {
    let next = next.map(|next| Line::from(next).into());
    let tree = [tree.into()].into_iter();
    tree.chain(notes(about)).chain(next).collect()
}
