//! Explains a rule: its state, its effect on its nodes, and what those lack.

use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;

use super::node::{clean_up, go_on};
use crate::api::ConditionStatus;
use crate::cli::fleet::State;
use crate::cli::fleet::fleet;
use crate::cli::page::NextStep;
use crate::cli::snapshot::Snapshot;
use crate::cli::status::{RuleState, RuleStatus};
use crate::rule::CompiledSpec;

/// Why a rule acts as it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleExplanation {
    #[serde(flatten)]
    pub status: RuleStatus,
    /// Why the rule cannot be used; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// The rule's node selector.
    pub selector: String,
    pub conditions: Vec<ConditionOfRule>,
    /// The rules that take precedence on nodes that both match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<Arc<str>>,
    /// Nodes that it keeps closed or would, longest first, and nodes that lack a condition but are open for now.
    pub nodes: Vec<NodeOfRule>,
    /// Nodes on which the controller could not apply the rule, as published; only some of them if there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedNode>,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A condition that the rule requires.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionOfRule {
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    pub required: ConditionStatus,
    /// What the rule requires, in words.
    pub requirement: String,
    pub unmet: usize,
}

/// A node that the rule affects.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeOfRule {
    pub node: Arc<str>,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The controller's message.
    pub why: String,
}

/// A node on which the rule could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FailedNode {
    pub node: String,
    pub message: String,
}

/// Explains a rule; `None` if it does not exist.
pub(crate) fn explain_rule(snapshot: &Snapshot, name: &str) -> Option<RuleExplanation> {
    let view = &snapshot.view;
    let cached = view.cached_rules().get(name)?;
    let rule = &*cached.rule;
    let all = fleet(snapshot);
    let own: Vec<_> = all.iter().filter(|it| *it.rule == *name).collect();
    let status = RuleStatus::of(snapshot, cached, own.iter().copied());
    let spec = rule.spec.as_ref().ok();
    let unmet = |kind: &Arc<str>| {
        let lacks = |it: &&&crate::cli::fleet::OnNode| it.lacks.iter().any(|it| it.kind == *kind);
        own.iter().filter(lacks).count()
    };
    let requirements = spec.map_or(&[][..], |spec| spec.conditions.as_slice());
    let mut nodes: Vec<NodeOfRule> = own
        .iter()
        .filter(|it| it.state.is_unmet() || matches!(it.state, State::Opening | State::Conflicted))
        .map(|it| NodeOfRule {
            node: it.node.clone(),
            state: it.state,
            since: it.since,
            why: it.why.clone(),
        })
        .collect();
    nodes.sort_by_key(|it| (!it.state.holds(), it.since, it.node.clone()));
    let failures = cached.status.failed_nodes.iter();
    let failures = failures.map(|it| FailedNode {
        node: it.node_name.clone(),
        message: it.message.clone().unwrap_or_default(),
    });
    Some(RuleExplanation {
        next: next(snapshot, &status, &nodes),
        rejection: rule.spec.as_ref().err().map(ToString::to_string),
        selector: spec.map_or_else(String::new, |spec: &CompiledSpec| spec.selector.to_string()),
        conditions: requirements
            .iter()
            .map(|it| ConditionOfRule {
                kind: it.kind.clone(),
                required: it.required,
                requirement: it.to_string(),
                unmet: unmet(&it.kind),
            })
            .collect(),
        governors: view.rules().governors_of(rule),
        nodes,
        failures: failures.collect(),
        notes: snapshot.notes(),
        status,
    })
}

fn next(snapshot: &Snapshot, status: &RuleStatus, nodes: &[NodeOfRule]) -> Option<NextStep> {
    let rule = &status.rule;
    match status.state {
        RuleState::Invalid => Some(NextStep::new(
            "correct the rule",
            format!("kubectl edit nodereadinessrule {rule}"),
        )),
        RuleState::Suspended => Some(go_on(snapshot.leader.as_ref(), rule)),
        RuleState::NotTakenOn => Some(NextStep::new(
            "see whether a controller runs",
            "kubectl nodegate status".to_owned(),
        )),
        RuleState::Deleting => Some(clean_up(snapshot.leader.as_ref(), rule)),
        RuleState::InForce | RuleState::DryRun => {
            if let Some(first) = nodes.first() {
                return Some(NextStep::new(
                    "see why, and what to do",
                    format!("kubectl nodegate explain node/{}", first.node),
                ));
            }
            let is_wrong = !status.published.is_empty();
            is_wrong.then(|| {
                NextStep::new(
                    "see what else is wrong, and how to correct it",
                    "kubectl nodegate check".to_owned(),
                )
            })
        }
    }
}
