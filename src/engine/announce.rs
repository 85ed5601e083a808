//! What people are told of a node: log lines and events about what was found there, and about what was done.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::nodes::NodeWork;
use super::rules::RuleWork;
use crate::controller::events::{EventSink, Notice, Tone};
use crate::engine::Undone;
use crate::object::NodeMetadata;
use crate::plan::{ChangeKind, History, NodePlan, NodeState, TaintChange};
use crate::rule::{Rule, is_foreign};

/// What is over so soon is not told: every node that joins lacks pods that are on their way.
pub(super) const SETTLING: Duration = Duration::from_secs(1);

/// What has been told of the critical components that a node waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    since: Instant,
    /// The reason of the last event.
    told: Option<&'static str>,
}

/// Posts the events that follow from an evaluation rather than from a write: a taint that is now held by a rule that
/// did not add it, and critical components that are missing. Each is told once. Answers when to look again.
pub(super) fn announce(
    events: &EventSink,
    rules: &HashMap<Arc<str>, RuleWork>,
    work: &mut NodeWork,
    (state, history): (NodeState<'_>, History<'_>),
    plan: &NodePlan<'_>,
) -> Option<Instant> {
    let node = state.node;
    let joined_here = state.joined.is_some_and(|at| at >= history.watching_since);
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
        if let Some(spec) = rule.live().filter(|_| is_new_rule(rule) || joined_here) {
            info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint adopted");
            // Gardener's controller tells the story of such a taint in words of its own.
            if spec.waits_for_components() && is_foreign(&spec.taint.key) {
                continue;
            }
            let note = format!(
                "Taint '{}:{}' is now managed by rule '{}'",
                spec.taint.key, spec.effect, rule.name
            );
            events.send(Notice::on_node(
                &node.name,
                &node.uid,
                Tone::Normal,
                "TaintAdopted",
                "AdoptTaint",
                note,
            ));
        }
    }
    let Some(waiting) = &plan.waiting else {
        work.waiting = None;
        return None;
    };
    let now = Instant::now();
    let wait = work.waiting.get_or_insert(Wait {
        since: now,
        told: None,
    });
    if wait.told == Some(waiting.for_what.reason()) {
        return None;
    }
    let settled = wait.since + SETTLING;
    if now < settled {
        return Some(settled);
    }
    wait.told = Some(waiting.for_what.reason());
    events.send(Notice::on_node(
        &node.name,
        &node.uid,
        Tone::Warning,
        waiting.for_what.reason(),
        "WaitForCriticalComponents",
        waiting.detail.to_string(),
    ));
    None
}

/// Tells of somebody who keeps undoing a change, once.
pub(super) fn tell_undone(
    events: &EventSink,
    node: &NodeMetadata,
    change: &TaintChange,
    undone: Undone,
) {
    let Undone::TooOften {
        times,
        within,
        pause,
    } = undone
    else {
        return;
    };
    let (they, we) = match change.kind {
        ChangeKind::Added => ("taking off", "puts on"),
        ChangeKind::Removed => ("putting back", "lifts"),
    };
    let note = format!(
        "Somebody keeps {they} taint '{}', which rule '{}' {we}: {times} times in {} s. It is left so for {} s, and longer \
         each time, until they stop. The API server's audit log says who it is; let only one of the two manage this taint",
        change.taint(),
        change.rule_name,
        within.as_secs().max(1),
        pause.as_secs().max(1),
    );
    warn!(node = %node.name, rule = %change.rule_name, "{note}");
    let (name, uid) = (&node.name, &node.uid);
    events.send(Notice::on_node(
        name,
        uid,
        Tone::Warning,
        "TaintContended",
        "Wait",
        note,
    ));
}

/// Logs a taint change that has been made and posts its events.
pub(super) fn tell(events: &EventSink, node: &NodeMetadata, change: &TaintChange) {
    let (name, uid) = (&*node.name, &*node.uid);
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
    info!(node = %name, rule = %rule_name, taint = %format_args!("{key}:{effect}"), why, "taint {what}");
    let (reason, note) = if change.components_ready && is_foreign(key) {
        let note = "every critical component is ready on this node";
        ("NodeCriticalComponentsReady", note.into())
    } else {
        let note = format!("Taint '{key}:{effect}' {what} by rule '{rule_name}'");
        (reason, note)
    };
    events.send(Notice::on_node(
        name,
        uid,
        Tone::Normal,
        reason,
        action,
        note,
    ));
    if change.gave_up {
        let note =
            format!("Rule '{rule_name}' has opened this node although it is not ready: {why}");
        let reason = "NodeReleasedUnready";
        let notice = Notice::on_node(name, uid, Tone::Warning, reason, "RemoveTaint", note);
        events.send(notice);
    }
}
