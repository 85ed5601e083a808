//! Explains a rule: how it is, what it does to its nodes, and what these lack.

use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;

use super::node::go_on;
use crate::api::ConditionStatus;
use crate::cli::fleet::State;
use crate::cli::fleet::fleet;
use crate::cli::page::NextStep;
use crate::cli::snapshot::Snapshot;
use crate::cli::status::{RuleState, RuleStatus};
use crate::rule::CompiledSpec;

/// Why a rule does what it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleExplanation {
    #[serde(flatten)]
    pub status: RuleStatus,
    /// Why it cannot be used, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// Which nodes it selects, as a label selector.
    pub selector: String,
    pub conditions: Vec<ConditionOfRule>,
    /// Names of the rules that come before it on nodes that both select.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governors: Vec<Arc<str>>,
    /// The nodes that it keeps closed or would, longest first, and those that are not met and open for now.
    pub nodes: Vec<NodeOfRule>,
    /// Where the controller could not carry it out, as it has published; some of them where there are many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedNode>,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// What this answer goes without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A condition that a rule asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionOfRule {
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    pub required: ConditionStatus,
    pub unmet: usize,
}

/// A node that a rule does something to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOfRule {
    pub node: Arc<str>,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why, as the controller says it.
    pub why: String,
}

/// A node on which a rule could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedNode {
    pub node: String,
    pub message: String,
}

/// Explains a rule; `None` where there is none of this name.
pub fn explain_rule(snapshot: &Snapshot, name: &str) -> Option<RuleExplanation> {
    let view = &snapshot.view;
    let cached = view.cached_rules().get(name)?;
    let rule = &*cached.rule;
    let all = fleet(snapshot);
    let own: Vec<_> = all.iter().filter(|it| *it.rule == *name).collect();
    let status = RuleStatus::of(cached, own.iter().copied());
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
            "mend the rule",
            format!("kubectl edit nodereadinessrule {rule}"),
        )),
        RuleState::Suspended => Some(go_on(snapshot.leader.as_ref(), rule)),
        RuleState::NotTakenOn => Some(NextStep::new(
            "see whether a controller runs",
            "kubectl nodegate status".to_owned(),
        )),
        RuleState::InForce | RuleState::DryRun | RuleState::Deleting => {
            let first = nodes.first()?;
            Some(NextStep::new(
                "see why the first of them is as it is",
                format!("kubectl nodegate explain node/{}", first.node),
            ))
        }
    }
}
