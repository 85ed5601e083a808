//! A node's plan, taint by taint: for when the API server refuses the whole, and the rest is not to wait for what it refuses.

use jiff::Timestamp;

use super::change::TaintId;
use super::node_plan::NodePlan;
use super::state::{ClusterState, NodeHistory, NodeState};
use super::walk::walk;

/// A part of a node's plan that can be carried out without the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Part<'a> {
    /// The taint that it is about; `None` for annotations that go with no taint.
    pub taint: Option<TaintId>,
    /// What there is to write of it, and the outcomes of the rules concerned.
    pub plan: NodePlan<'a>,
}

/// The parts of a node's plan that write anything. Annotations that go with a taint are in its part, and in no other: one is
/// never without the other.
#[must_use]
pub fn parts<'a>(
    cluster: ClusterState<'a>,
    state: NodeState<'a>,
    history: NodeHistory<'a>,
    now: Timestamp,
) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut known_outcomes = 0;
    walk(cluster, state, history, now, |plan, taint| {
        let mut part = NodePlan {
            outcomes: plan.outcomes.iter().skip(known_outcomes).cloned().collect(),
            taints: plan.taints.take(),
            annotations: std::mem::take(&mut plan.annotations),
            relied_on: std::mem::take(&mut plan.relied_on),
            changes: std::mem::take(&mut plan.changes),
            ..NodePlan::default()
        };
        known_outcomes = plan.outcomes.len();
        part.annotations.retain(|key, _| {
            !parts
                .iter()
                .any(|part| part.plan.annotations.contains_key(key))
        });
        if part.writes_node() {
            let taint = taint.map(|(key, effect)| TaintId {
                key: key.to_owned(),
                effect,
            });
            parts.push(Part { taint, plan: part });
        }
    });
    parts
}
