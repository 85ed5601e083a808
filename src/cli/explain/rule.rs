//! Explains a rule: its state, its effect on its nodes, and what those lack.

use serde::Serialize;
use std::sync::Arc;

use super::node::{clean_up, go_on};
use crate::api::ConditionStatus;
use crate::cli::page::NextStep;
use crate::cli::rows::{RuleOnNode, State, rows};
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
    pub selector: String,
    pub conditions: Vec<ConditionOfRule>,
    /// The rules that take precedence on nodes that both match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<Arc<str>>,
    /// Nodes that it holds or would, longest first, and nodes that lack a condition but are not gated yet.
    pub nodes: Vec<RuleOnNode>,
    /// Nodes on which the controller could not apply the rule, as published; only some of them if there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionOfRule {
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    pub required: ConditionStatus,
    pub requirement: String,
    pub unmet: usize,
}

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
    let mut own = rows(snapshot);
    own.retain(|it| *it.rule == *name);
    let status = RuleStatus::of(snapshot, cached, own.iter());
    let spec = rule.spec.as_ref().ok();
    let unmet = |kind: &Arc<str>| {
        let lacks = |it: &&RuleOnNode| it.conditions.iter().any(|it| it.kind == *kind);
        own.iter().filter(lacks).count()
    };
    let requirements = spec.map_or(&[][..], |spec| spec.conditions.as_slice());
    let failures = cached.status.failed_nodes.iter();
    let failures = failures.map(|it| FailedNode {
        node: it.node_name.clone(),
        message: it.message.clone().unwrap_or_default(),
    });
    let conditions = requirements.iter().map(|it| ConditionOfRule {
        kind: it.kind.clone(),
        required: it.required,
        requirement: it.to_string(),
        unmet: unmet(&it.kind),
    });
    let conditions = conditions.collect();
    let mut nodes = own;
    nodes.retain(|it| {
        it.state.is_unmet() || matches!(it.state, State::Releasing | State::Conflicted)
    });
    nodes.sort_by_key(|it| (!it.state.holds(), it.since, it.node.clone()));
    Some(RuleExplanation {
        next: next(snapshot, &status, &nodes),
        rejection: rule.trouble(),
        selector: spec.map_or_else(String::new, |spec: &CompiledSpec| spec.selector.to_string()),
        conditions,
        governors: view.rules().governors_of(rule),
        nodes,
        failures: failures.collect(),
        notes: snapshot.notes(),
        status,
    })
}

fn next(snapshot: &Snapshot, status: &RuleStatus, nodes: &[RuleOnNode]) -> Option<NextStep> {
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
