//! Explains a rule: its state, its effect on its nodes, and what those lack.

use serde::Serialize;
use std::sync::Arc;

use super::finding::Cause;
use super::node::{clean_up, go_on};
use super::told;
use crate::cli::page::{Block, Branch, Line, NextStep, Page, Render};
use crate::cli::rows::{RuleOnNode, State, rows};
use crate::cli::snapshot::Snapshot;
use crate::cli::status::{RuleState, RuleStatus};
use crate::rule::CompiledSpec;
use crate::wording::counted;

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
    pub failures: Vec<Cause>,
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
    pub requirement: String,
    /// On how many nodes it is not met.
    pub unmet: usize,
}

pub(crate) fn explain_rule(snapshot: &Snapshot, name: &str) -> Option<RuleExplanation> {
    let view = &snapshot.view;
    let cached = view.cached_rules().get(name)?;
    let rule = &*cached.rule;
    let mut own = rows(snapshot);
    own.retain(|it| *it.rule == *name);
    let status = RuleStatus::of(snapshot, cached, &own.iter().collect::<Vec<_>>());
    let spec = rule.spec.as_ref().ok();
    let failures = cached.status.failed_nodes.iter();
    let failures = failures.map(|it| {
        let message = it.message.clone().unwrap_or_default();
        Cause::new(format!("node/{}", it.node_name), message)
    });
    let requirements = spec.into_iter().flat_map(|spec| &spec.conditions);
    let conditions = requirements.map(|it| {
        let lacks = |row: &&RuleOnNode| row.conditions.iter().any(|lack| lack.kind == it.kind);
        ConditionOfRule {
            kind: it.kind.clone(),
            requirement: it.to_string(),
            unmet: own.iter().filter(lacks).count(),
        }
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
    let (say, command) = match status.state {
        RuleState::Suspended => return Some(go_on(snapshot.leader.as_ref(), rule)),
        RuleState::Deleting => return Some(clean_up(snapshot.leader.as_ref(), rule)),
        RuleState::Invalid => (
            "correct the rule",
            format!("kubectl edit nodereadinessrule {rule}"),
        ),
        RuleState::NotTakenOn => (
            "see whether a controller runs",
            "kubectl nodegate status".to_owned(),
        ),
        RuleState::InForce | RuleState::DryRun => match nodes.first() {
            Some(first) => (
                "see why, and what to do",
                format!("kubectl nodegate explain node/{}", first.node),
            ),
            None if status.published.is_empty() => return None,
            None => (
                "see what else is wrong, and how to correct it",
                "kubectl nodegate check".to_owned(),
            ),
        },
    };
    Some(NextStep::new(say, command))
}

impl Render for RuleExplanation {
    const KIND: &'static str = "RuleExplanation";

    fn blocks(&self, page: &Page) -> Vec<Block> {
        told(self.tree(page), self.next.as_ref(), &self.notes)
    }
}

impl RuleExplanation {
    fn tree(&self, page: &Page) -> Branch {
        let status = &self.status;
        let mode = status.mode.map_or("", |mode| mode.as_str());
        let head = Line::about(format!("rule/{}", status.rule));
        let (look, state) = status.state.words();
        let head = head.with(look, state);
        let mut tree = Branch::from(head.faint(format!("  {} {mode}", status.taint)));
        if let Some(why) = &self.rejection {
            return tree.over([Line::mark(false).plain(why)]);
        }
        let is_deleted = status.state == RuleState::Deleting;
        tree.push(if is_deleted {
            format!("its taint is still on {}", counted(status.held, "node"))
        } else {
            let waiting = match status.waiting {
                0 => String::new(),
                waiting => format!(", {waiting} of these waiting to be gated"),
            };
            format!(
                "selects {} by {}: {} held, {} not held{waiting}",
                counted(status.matched, "node"),
                self.selector,
                status.held,
                status.not_held,
            )
        });
        // The conditions of a rule that is being deleted no longer count.
        let conditions = self.conditions.iter().filter(|_| !is_deleted);
        let conditions = conditions.map(|condition| {
            let line = Line::mark(condition.unmet == 0);
            let line = line.plain(format!("{} {}", condition.kind, condition.requirement));
            let lacks = status.lacks.iter();
            let lacks = lacks.filter(|it| it.condition == condition.kind);
            let lacks = lacks.map(|it| format!("{} on {}", it.reason, counted(it.nodes, "node")));
            Branch::from(line).over(lacks)
        });
        let published = status.published.iter();
        let published = published.map(|it| {
            Line::new()
                .poor(format!("{}: ", it.kind))
                .plain(&it.message)
        });
        let failed = |it: &Cause| {
            Line::new()
                .bad("failed ")
                .plain(format!("on {}: {}", it.object, it.message))
        };
        tree.over(conditions)
            .over(published)
            .over(status.remarks.iter().map(String::as_str))
            .over(self.failures.iter().map(failed))
            .over(page.some(&self.nodes, |row| row.of_node(page, false)))
    }
}
