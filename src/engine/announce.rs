//! Announces a node's state in log lines and Events: what the evaluation found, and what the controller did.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::attempt::{Change, Part, Undone};
use super::notice::{self, About, Notice, Topic};
use super::outbox::Outbox;
use super::repairs;
use super::schedule::Why;
use super::told::{Subject, Told};
use nodegate_core::api::{ConditionStatus, PauseReason};
use nodegate_core::condition::{Detail, Hint};
use nodegate_core::object::Node;
use nodegate_core::plan::{ChangeKind, Decision, NodePlan, Origin, Outcome, TaintChange};
use nodegate_core::repair::BLOCKED_INTERVAL;
use nodegate_core::rule::{Rule, is_foreign};

/// Missing components are announced only after this time: on every node that joins, some pods are still on their way.
pub(super) const EVENT_DELAY: Duration = Duration::from_secs(1);

const ADOPTED: Subject = Subject::new("AdoptTaint");

const MISSING_PART: Subject = Subject {
    after: EVENT_DELAY,
    ..Subject::new("WaitForCriticalComponents")
};

/// They are announced as a warning if they are missing for as long as a held node.
const MISSING_FOR_LONG: Subject = Subject {
    name: "WaitForCriticalComponents, for long",
    ..HELD
};

const NOT_REPAIRED: Subject = Subject::new("RepairNode");
const NOT_REPAIRED_YET: Subject = Subject {
    again: BLOCKED_INTERVAL,
    ..NOT_REPAIRED
};

/// That a rule holds a node is announced after a minute, and other reasons a minute later at the earliest.
const HELD: Subject = Subject {
    after: Duration::from_secs(60),
    other: Duration::from_secs(60),
    ..Subject::new("Hold")
};

/// Announces what follows from an evaluation alone. `is_news`: no earlier process can have announced a rule's adoption.
pub(super) fn announce(
    told: &mut Told,
    node: &Node,
    plan: &NodePlan<'_>,
    is_news: impl Fn(&Rule) -> bool,
    out: &mut Outbox,
) {
    told.retain(|rule| plan.outcome_of(rule).is_some());
    for outcome in &plan.outcomes {
        let Outcome { rule, spec, .. } = outcome;
        let taint = &spec.taint;
        if outcome.origin == Some(Origin::Birth) && is_news(rule) {
            info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint added as the node was created");
            let name = &rule.name;
            let by = format!("Taint '{taint}' added by rule '{name}' as the node was created");
            out.tell(Notice::on_node(node, &notice::TAINT_ADDED, by));
        }
        let adopts = outcome.adopts().then_some(());
        if is_due(told, ADOPTED, &rule.uid, adopts, out) && is_news(rule) {
            info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint adopted");
            // Such a taint has events with Gardener's names instead.
            if !(spec.waits_for_components() && is_foreign(&spec.taint.key)) {
                let by = format!("Taint '{taint}' is now managed by rule '{}'", rule.name);
                out.tell(Notice::on_node(node, &notice::TAINT_ADOPTED, by));
            }
        }
        // Critical components that a rule waits for are announced by names of their own.
        let holds = outcome.governs().is_some_and(Decision::holds) && !spec.waits_for_components();
        let lacks = holds.then(|| lacks(outcome));
        if lacks.as_ref().is_none_or(|it| !it.is_empty())
            && is_due(told, HELD, &rule.uid, lacks, out)
        {
            let why = outcome.why();
            info!(node = %node.name, rule = %rule.name, why, "held for a while");
            let note = format!("Rule '{}' holds this node: {why}", rule.name);
            let notice = Notice::on_node(node, &notice::HELD, note);
            out.tell(notice.of_rule(&rule.name, &rule.uid));
        }
        // While repair is postponed, earlier announcements stand.
        if !plan.repair_is_postponed {
            let notice = repairs::notice(node, outcome);
            let words = notice.as_ref().map(repairs::words);
            let subject = match &notice {
                Some(it) if it.topic == &notice::REPAIR_BLOCKED => NOT_REPAIRED_YET,
                _ => NOT_REPAIRED,
            };
            if is_due(told, subject, &rule.uid, words, out)
                && let Some(notice) = notice
            {
                repairs::tell(&rule.name, notice, out);
            }
        }
    }
    let mut missing = plan.missing_parts();
    let missing = missing.find_map(|detail| Some((topic_of(detail)?, detail)));
    let words = missing.map(|(topic, _)| topic.reason);
    let is_long = told.has(MISSING_FOR_LONG);
    for (subject, warns) in [(MISSING_PART, false), (MISSING_FOR_LONG, true)] {
        if is_due(told, subject, &Arc::default(), words, out)
            && let Some((topic, detail)) = missing
            && (warns || !is_long)
        {
            out.tell(Notice {
                kind: if warns { topic.kind } else { "Normal" },
                ..Notice::on_node(node, topic, detail.to_string())
            });
        }
    }
}

/// Gardener's controller has an event reason for each part of the critical components that a node may lack.
fn topic_of(lacks: &Detail<'_>) -> Option<&'static Topic> {
    match lacks.hint() {
        Hint::Unscheduled(_) | Hint::NoDaemonSet(_) => Some(&notice::DAEMON_SETS_UNSCHEDULED),
        Hint::Unready(_) | Hint::TooNew(_) | Hint::Unconfirmed(_) => Some(&notice::PODS_UNREADY),
        Hint::Unregistered(_) | Hint::Unhealthy(_) => Some(&notice::DRIVERS_UNREADY),
        Hint::Nothing | Hint::Vacuous | Hint::Node(..) => None,
    }
}

/// Whether to say this of the node now. If it is due later, the node is evaluated again then.
fn is_due(
    told: &mut Told,
    subject: Subject,
    rule: &Arc<str>,
    words: Option<impl Hash>,
    out: &mut Outbox,
) -> bool {
    let now = out.now.monotonic;
    match told.due(subject, rule, words, now) {
        Some(at) if at > now => {
            out.evaluate_again(at, Why::Due);
            false
        }
        due => due.is_some(),
    }
}

/// The unmet conditions, each with its status and reason, or with what a minimum or reasons make of it.
fn lacks(outcome: &Outcome<'_>) -> Vec<(Arc<str>, ConditionStatus, String)> {
    let unmet = outcome.unmet().map(|finding| {
        let reason = match (&finding.judgement, &finding.condition) {
            (Some(judgement), _) => judgement.to_string(),
            (None, Some(condition)) => condition.detail.reason().to_owned(),
            (None, None) => String::new(),
        };
        (finding.requirement.kind.clone(), finding.current, reason)
    });
    unmet.collect()
}

/// Who undoes a rule's change of this part, and what to do about it; `None` if it is no taint.
pub(super) fn opposition(part: &Part, change: Change) -> Option<(PauseReason, String)> {
    let (they, we, taint) = match (part, change) {
        (Part::Gating(taint, daemon_set), _) => {
            let why = format!(
                "DaemonSet {daemon_set} is meant for the node only while it has no taint '{taint}': something reacts to the taint. \
                 Let that tolerate it, or let the rule wait for something else"
            );
            return Some((PauseReason::ReactsToTaint, why));
        }
        (Part::Taint(taint), Some(_)) => ("removing", "adds", taint),
        (Part::Taint(taint), None) => ("putting back", "removes", taint),
        _ => return None,
    };
    let why = format!(
        "somebody else keeps {they} taint '{taint}', which the rule {we}: let only one of the two manage it (the API server's \
         audit log names the other)"
    );
    Some((PauseReason::Contended, why))
}

pub(super) fn tell_undone(node: &About, rule: &str, why: &str, undone: Undone, out: &mut Outbox) {
    let [within, pause] = [undone.within, undone.pause].map(|it| it.as_secs().max(1));
    let note = format!(
        "Rule '{rule}' waits for {pause} s, and longer each time, after {} times in {within} s: {why}",
        undone.times
    );
    warn!(node = %node.name, rule, "{note}");
    out.tell(Notice::new(node.clone(), &notice::TAINT_CONTENDED, note));
}

/// Announces a taint change that was made, and that a rule has released a node that is not ready.
pub(super) fn tell_change(node: &About, change: &TaintChange, out: &mut Outbox) {
    let (rule_name, taint, why) = (&change.rule_name, &change.taint, &change.why);
    let (topic, what) = match change.kind {
        ChangeKind::Added => (&notice::TAINT_ADDED, "added"),
        ChangeKind::Removed => (&notice::TAINT_REMOVED, "removed"),
    };
    info!(node = %node.name, rule = %rule_name, %taint, why, "taint {what}");
    out.tell(if change.components_ready && is_foreign(&taint.key) {
        let note = "every critical component is ready on this node";
        Notice::new(node.clone(), &notice::COMPONENTS_READY, note.into())
    } else {
        let note = format!("Taint '{taint}' {what} by rule '{rule_name}'");
        Notice::new(node.clone(), topic, note)
    });
    if change.gave_up {
        let note =
            format!("Rule '{rule_name}' has released this node although it is not ready: {why}");
        out.tell(Notice::new(node.clone(), &notice::RELEASED_UNREADY, note));
    }
}
