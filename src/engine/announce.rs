//! Announces a node's state in log lines and Events: what the evaluation found, and what the controller did.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::attempt::Undone;
use super::effects::Effects;
use super::notice::{About, Notice};
use crate::api::ConditionStatus;
use crate::object::Node;
use crate::plan::{
    ChangeKind, Decision, MissingPart, NodePlan, Origin, Outcome, PartKind, TaintChange,
};
use crate::rule::{Rule, is_foreign};

/// A hold is announced after this time, and again at most this often.
const HELD: Duration = Duration::from_secs(60);

/// Missing components are announced only after this time: on every node that joins, some pods are still on their way.
pub(super) const SETTLING: Duration = Duration::from_secs(1);

/// What was announced about a node.
#[derive(Debug, Default)]
pub struct Announced {
    /// UIDs of the rules whose adoption of a taint was announced.
    adopted_by: Vec<Arc<str>>,
    /// The wait for critical components; `None` while all are there.
    waiting: Option<Wait>,
    /// The rules that keep the node closed.
    holds: Vec<HoldTold>,
}

/// What was announced about a rule that keeps a node closed.
#[derive(Debug)]
struct HoldTold {
    rule_uid: Arc<str>,
    /// When the next announcement may be made.
    not_before: Instant,
    /// The unmet conditions of the last announcement, as [`lacks`] has them.
    told: Vec<(Arc<str>, ConditionStatus, String)>,
}

/// What was announced about the critical components that a node waits for.
#[derive(Debug, Clone, Copy)]
struct Wait {
    since: Instant,
    /// The component that the last announcement named.
    told: Option<PartKind>,
}

impl Announced {
    /// Announces once each what follows from an evaluation rather than from a write: a taint that the node was created with, an
    /// adopted taint, why a rule holds the node, and missing critical components. `is_news` tells whether no earlier process
    /// can have announced a rule's adoption.
    pub fn announce(
        &mut self,
        node: &Node,
        plan: &NodePlan<'_>,
        is_news: impl Fn(&Rule) -> bool,
        out: &mut Effects,
    ) {
        announce_births(node, plan, &is_news, out);
        self.announce_adoptions(node, plan, is_news, out);
        self.announce_holds(node, plan, out);
        match plan.missing_part() {
            Some(missing) => self.announce_missing(node, &missing, out),
            None => self.waiting = None,
        }
    }

    fn announce_adoptions(
        &mut self,
        node: &Node,
        plan: &NodePlan<'_>,
        is_news: impl Fn(&Rule) -> bool,
        out: &mut Effects,
    ) {
        let adopting = || plan.outcomes.iter().filter(|outcome| outcome.adopts());
        self.adopted_by
            .retain(|uid| adopting().any(|outcome| outcome.rule.uid == *uid));
        for outcome in adopting() {
            let rule = outcome.rule;
            if self.adopted_by.contains(&rule.uid) {
                continue;
            }
            self.adopted_by.push(rule.uid.clone());
            if !is_news(rule) {
                continue;
            }
            let spec = outcome.spec;
            info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint adopted");
            // Such a taint has events with Gardener's names instead.
            if spec.waits_for_components() && is_foreign(&spec.taint.key) {
                continue;
            }
            let about = About::node(&node.name, &node.uid);
            out.tell(Notice::of_adoption(about, rule, spec));
        }
    }

    /// Announces why rules keep the node closed, except for critical components that they wait for.
    fn announce_holds(&mut self, node: &Node, plan: &NodePlan<'_>, out: &mut Effects) {
        let is_held = |outcome: &&Outcome<'_>| {
            let holds = outcome.governs().is_some_and(Decision::holds);
            holds && !outcome.spec.waits_for_components()
        };
        let holding = || plan.outcomes.iter().filter(is_held);
        self.holds
            .retain(|it| holding().any(|outcome| outcome.rule.uid == it.rule_uid));
        let now = out.now.monotonic;
        for outcome in holding() {
            let mut known = self.holds.iter();
            let index = known.position(|it| it.rule_uid == outcome.rule.uid);
            let index = index.unwrap_or_else(|| {
                self.holds.push(HoldTold {
                    rule_uid: outcome.rule.uid.clone(),
                    not_before: now + HELD,
                    told: Vec::new(),
                });
                self.holds.len() - 1
            });
            let hold = &mut self.holds[index];
            if now < hold.not_before {
                if hold.told.is_empty() || hold.told != lacks(outcome) {
                    out.timers.wake_node(&node.name, hold.not_before);
                }
                continue;
            }
            let lacks = lacks(outcome);
            if hold.told == lacks || lacks.is_empty() {
                continue;
            }
            hold.told = lacks;
            hold.not_before = now + HELD;
            let why = outcome.why();
            info!(node = %node.name, rule = %outcome.rule.name, why, "held for a while");
            let about = About::node(&node.name, &node.uid);
            out.tell(Notice::of_hold(about, outcome.rule, &why));
        }
    }

    fn announce_missing(&mut self, node: &Node, missing: &MissingPart<'_>, out: &mut Effects) {
        let now = out.now.monotonic;
        let wait = self.waiting.get_or_insert(Wait {
            since: now,
            told: None,
        });
        if wait.told == Some(missing.kind) {
            return;
        }
        let settled = wait.since + SETTLING;
        if now < settled {
            out.timers.wake_node(&node.name, settled);
            return;
        }
        wait.told = Some(missing.kind);
        let about = About::node(&node.name, &node.uid);
        out.tell(Notice::of_missing(about, missing));
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

/// Announces the rule taints that the node was created with.
fn announce_births(
    node: &Node,
    plan: &NodePlan<'_>,
    is_news: impl Fn(&Rule) -> bool,
    out: &mut Effects,
) {
    let born = plan
        .outcomes
        .iter()
        .filter(|outcome| outcome.origin == Some(Origin::Birth) && is_news(outcome.rule));
    for Outcome { rule, spec, .. } in born {
        info!(node = %node.name, rule = %rule.name, taint = %spec.taint.key, "taint added as the node was created");
        let about = About::node(&node.name, &node.uid);
        out.tell(Notice::of_birth(about, rule, spec));
    }
}

pub(super) fn tell_undone(node: &About, change: &TaintChange, undone: Undone, out: &mut Effects) {
    let Undone {
        times,
        within,
        pause,
    } = undone;
    let notice = Notice::of_contention(node.clone(), change, times, within, pause);
    warn!(node = %node.name, rule = %change.rule_name, "{}", notice.note);
    out.tell(notice);
}

pub(super) fn tell_change(node: &About, change: &TaintChange, out: &mut Effects) {
    let TaintChange {
        rule_name,
        key,
        effect,
        why,
        ..
    } = change;
    let what = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
    };
    info!(node = %node.name, rule = %rule_name, taint = %format_args!("{key}:{effect}"), why, "taint {what}");
    for notice in Notice::of_change(node, change) {
        out.tell(notice);
    }
}
