//! What every rule makes of every node: one pass over the nodes, from which the commands about more than one node take theirs.

use std::sync::Arc;

use jiff::Timestamp;

use super::snapshot::Snapshot;
use super::standing::{State, since};
use crate::api::ConditionStatus;
use crate::plan::{Finding, Outcome};

/// What one rule makes of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnNode {
    /// The node.
    pub node: Arc<str>,
    /// The rule.
    pub rule: Arc<str>,
    /// What it does to the node.
    pub state: State,
    /// Whether the node has its taint.
    pub tainted: bool,
    /// Since when, where that can be told.
    pub since: Option<Timestamp>,
    /// Why its conditions are not met, as the controller says it; empty where they are.
    pub why: String,
    /// What it lacks.
    pub lacks: Vec<Lack>,
}

/// A condition that is not as a rule asks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lack {
    /// The condition's type.
    pub kind: Arc<str>,
    /// The status that counts.
    pub status: ConditionStatus,
    /// Why in one word; `NotReported` where the node has none.
    pub reason: String,
}

impl OnNode {
    fn of(node: &crate::object::Node, outcome: &Outcome<'_>, snapshot: &Snapshot) -> Self {
        let evaluation = &outcome.evaluation;
        let (why, lacks) = if evaluation.met {
            (String::new(), Vec::new())
        } else {
            (evaluation.why(), evaluation.unmet().map(Lack::of).collect())
        };
        Self {
            node: node.name.clone(),
            rule: outcome.rule.name.clone(),
            state: State::of(outcome, snapshot),
            tainted: outcome.tainted,
            since: since(outcome, node),
            why,
            lacks,
        }
    }
}

impl Lack {
    fn of(finding: &Finding<'_>) -> Self {
        let condition = finding.condition.as_ref();
        let reason = condition.map(|it| it.detail.reason().to_owned());
        Self {
            kind: finding.requirement.kind.clone(),
            status: finding.current,
            reason: reason.unwrap_or_else(|| "NotReported".into()),
        }
    }
}

/// What every rule makes of every node, nodes by name.
#[must_use]
pub fn fleet(snapshot: &Snapshot) -> Vec<OnNode> {
    let view = &snapshot.view;
    let mut nodes: Vec<_> = view.nodes().collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    let plans = nodes
        .into_iter()
        .filter_map(|node| Some((node, view.plan(&node.name)?)));
    plans
        .flat_map(|(node, plan)| {
            let outcomes = plan.outcomes.iter();
            let all: Vec<_> = outcomes
                .map(|outcome| OnNode::of(node, outcome, snapshot))
                .collect();
            all
        })
        .collect()
}
