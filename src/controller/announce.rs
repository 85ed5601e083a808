//! What people are told of a node: log lines and events about what was found there, and about what was done.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::info;

use super::events::{EventSink, Notice, Tone};
use super::nodes::NodeWork;
use super::rules::RuleWork;
use crate::object::Node;
use crate::rule::{ChangeKind, NodePlan, NodeState, Rule, TaintChange};

/// Posts the events that follow from an evaluation rather than from a write: a taint that is now held by a rule that
/// did not add it, and critical components that are missing. Each is told once.
pub(super) fn announce(
    events: &EventSink,
    rules: &HashMap<Arc<str>, RuleWork>,
    work: &mut NodeWork,
    state: NodeState<'_>,
    plan: &NodePlan<'_>,
) {
    let node = state.node;
    let is_new_rule = |rule: &Rule| rules.get(&rule.uid).is_none_or(|work| work.is_new);
    work.adopted_by.retain(|uid| {
        plan.outcomes
            .iter()
            .any(|outcome| outcome.adopts && outcome.rule.uid == *uid)
    });
    for outcome in plan.outcomes.iter().filter(|outcome| outcome.adopts) {
        let rule = outcome.rule;
        if work.adopted_by.contains(&rule.uid) {
            continue;
        }
        work.adopted_by.push(rule.uid.clone());
        // Where an earlier process knew both, it has told.
        if let Some(spec) = rule.live().filter(|_| is_new_rule(rule) || state.is_new) {
            info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint adopted");
            let note = format!(
                "Taint '{}:{}' is now managed by rule '{}'",
                spec.taint.key, spec.effect, rule.name
            );
            events.send(Notice::on_node(
                node,
                Tone::Normal,
                "TaintAdopted",
                "AdoptTaint",
                note,
            ));
        }
    }
    let waiting = plan.waiting.as_ref();
    if let Some(waiting) = waiting
        && work.waiting != Some(waiting.reason)
    {
        let note = waiting.message.clone();
        events.send(Notice::on_node(
            node,
            Tone::Warning,
            waiting.reason,
            "WaitForCriticalComponents",
            note,
        ));
    }
    work.waiting = waiting.map(|waiting| waiting.reason);
}

/// Logs a taint change that has been made and posts its events.
pub(super) fn tell(events: &EventSink, node: &Node, change: &TaintChange) {
    let TaintChange {
        rule_name,
        key,
        effect,
        why,
        ..
    } = change;
    let (what, reason, action) = match change.kind {
        ChangeKind::Added => ("added", "TaintAdded", "AddTaint"),
        ChangeKind::Removed => ("removed", "TaintRemoved", "RemoveTaint"),
    };
    info!(node = %node.name, rule = %rule_name, taint = %format_args!("{key}:{effect}"), why, "taint {what}");
    let note = format!("Taint '{key}:{effect}' {what} by rule '{rule_name}'");
    events.send(Notice::on_node(node, Tone::Normal, reason, action, note));
    if change.gave_up {
        let note =
            format!("Rule '{rule_name}' has opened this node although it is not ready: {why}");
        let reason = "NodeReleasedUnready";
        let notice = Notice::on_node(node, Tone::Warning, reason, "RemoveTaint", note);
        events.send(notice);
    }
    if change.components_ready {
        let note = "every critical component is ready on this node".into();
        let reason = "NodeCriticalComponentsReady";
        events.send(Notice::on_node(
            node,
            Tone::Normal,
            reason,
            "RemoveTaint",
            note,
        ));
    }
}
