//! What the reconcile loop does for disruption guards: shows them how every node of their rule counts, and has the nodes
//! evaluated that they let go.

use std::sync::Arc;

use jiff::Timestamp;
use tracing::{info, warn};

use super::nodes::instant_of;
use super::reconcile::Reconciler;
use super::rules::RuleWork;
use crate::controller::events::{EventSink, Notice, Tone};
use crate::guard::{Guard, Limits, Member, Report, Zone, ZoneState};
use crate::object::Node;
use crate::plan::{Decision, Held, Outcome, Standing};
use crate::rule::{CompiledSpec, Rule};

/// One rule's disruption guard, and what has been told of it.
#[derive(Debug)]
pub(super) struct Disruption {
    guard: Guard,
    told: Vec<(Zone, ZoneState)>,
    is_limiting: bool,
}

impl Disruption {
    /// The guard for a rule with this spec, carrying on from the one it had; `None` where it asks for none.
    pub(super) fn for_spec(
        spec: Option<&CompiledSpec>,
        known: Option<Self>,
        defaults: Limits,
    ) -> Option<Self> {
        let limits = Limits::of(spec?.disruption.as_ref()?, defaults);
        let mut disruption = known.unwrap_or_else(|| Self {
            guard: Guard::new(limits),
            told: Vec::new(),
            is_limiting: false,
        });
        disruption.guard.set_limits(limits);
        Some(disruption)
    }

    /// Whether the node of this name may be closed now.
    pub(super) fn may_close(&self, node: &str) -> bool {
        self.guard.may_close(node)
    }

    /// Takes in that the rule's taint has been put on a node.
    pub(super) fn closed(&mut self, node: &str) {
        self.guard.closed(node);
    }

    /// Takes in what the rule makes of a node; answers whether that is news.
    pub(super) fn observe(&mut self, node: &Node, outcome: &Outcome<'_>) -> bool {
        // It may have met its conditions again since it was closed, and the answer to that write may have been lost.
        if outcome.tainted {
            self.closed(&node.name);
        }
        let zone = Zone::of(&node.labels);
        self.guard.observe(&node.name, zone, member(outcome))
    }

    /// Takes in that the rule has nothing to do with a node any more; answers whether that is news.
    pub(super) fn forget(&mut self, node: &str) -> bool {
        self.guard.forget(node)
    }

    /// How every zone does.
    pub(super) fn report(&self) -> Report {
        self.guard.report()
    }

    /// Tells when the guard begins and ceases to hold nodes back, and when a zone gets into another state meanwhile;
    /// answers how every zone does.
    pub(super) fn tell(&mut self, events: &EventSink, rule: &Rule) -> Report {
        let report = self.report();
        let states: Vec<_> = report
            .zones
            .iter()
            .map(|zone| (zone.zone.clone(), zone.state))
            .collect();
        let was_limiting = std::mem::replace(&mut self.is_limiting, report.waiting > 0);
        if report.waiting > 0 && (!was_limiting || states != self.told) {
            warn!(rule = %rule.name, "{report}");
            let note = report.to_string();
            events.send(Notice::on_rule(
                rule,
                Tone::Warning,
                "DisruptionLimited",
                "HoldBack",
                note,
            ));
            self.told = states;
        } else if was_limiting && report.waiting == 0 {
            info!(rule = %rule.name, "{report}");
        }
        report
    }
}

/// How a node counts for the guard of a rule; `None` where it does not.
fn member(outcome: &Outcome<'_>) -> Option<Member> {
    let decision = match outcome.standing {
        Standing::Governs(decision) | Standing::DryRun(decision) => decision,
        Standing::Conflicted { .. } => return None,
    };
    // A node that is still joining holds no workload: it is neither limited nor does it count.
    match decision {
        _ if outcome.joining => None,
        Decision::Release { .. } => Some(Member::Met),
        // Only a bootstrap-only rule gives up, and such a rule has no guard.
        Decision::GiveUp => None,
        Decision::Open { .. } => outcome.evaluation.met.then_some(Member::Met),
        // Within its grace period it is unmet like any other, but does not ask yet.
        Decision::Hold | Decision::Wait(Held::Grace { .. }) => Some(Member::Closed),
        Decision::Gate | Decision::Wait(Held::Disruption | Held::Doubt) => Some(Member::Waiting {
            since: outcome.unmet_since?,
        }),
    }
}

impl Reconciler {
    /// UIDs of those of the rules that let the node be closed now, of those that have a guard.
    pub(super) fn may_close(&self, node: &str, selecting: &[usize]) -> Vec<Arc<str>> {
        let rules = self.cache.cluster().rules.rules();
        selecting
            .iter()
            .map(|index| &rules[*index].uid)
            .filter(|uid| {
                let work = self.rules.get(*uid);
                work.and_then(|work| work.disruption.as_ref())
                    .is_some_and(|disruption| disruption.may_close(node))
            })
            .cloned()
            .collect()
    }

    /// Has the nodes evaluated that may be closed from now on; answers whether there are any. Every node has to have
    /// been evaluated: the guards count them all.
    pub(super) fn grant_closures(&mut self) -> bool {
        let now = self.steady;
        let mut granted = Vec::new();
        let mut next: Option<Timestamp> = None;
        for RuleWork { disruption, .. } in self.rules.values_mut() {
            if let Some(disruption) = disruption {
                granted.extend(disruption.guard.grant(now));
                next = next
                    .into_iter()
                    .chain(disruption.guard.next_grant(now))
                    .min();
            }
        }
        self.next_closure = next.map(|at| instant_of(at, now));
        for name in &granted {
            self.cache.mark(name);
        }
        !granted.is_empty()
    }
}
