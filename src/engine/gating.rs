//! A rule's disruption guard, which decides which nodes the rule may gate now, and what was announced about it.

use std::sync::Arc;
use std::time::Instant;

use tracing::{info, warn};

use super::effects::Effects;
use super::notice::Notice;
use crate::guard::{Guard, Limits, Member, Report, Zone, ZoneState};
use crate::object::Node;
use crate::plan::{Decision, Outcome, Standing, WaitReason};
use crate::rule::{CompiledSpec, Rule};

/// One rule's disruption guard, and what was announced about it.
#[derive(Debug)]
pub struct Gating {
    guard: Guard,
    told: Vec<(Zone, ZoneState)>,
    is_limiting: bool,
}

impl Gating {
    /// The guard for a rule with this spec, continuing the previous one; `None` if the rule has no guard.
    pub fn for_spec(
        spec: Option<&CompiledSpec>,
        known: Option<Self>,
        defaults: Limits,
    ) -> Option<Self> {
        let limits = Limits::of(spec?.disruption.as_ref()?, defaults);
        let mut gating = known.unwrap_or_else(|| Self {
            guard: Guard::new(limits),
            told: Vec::new(),
            is_limiting: false,
        });
        gating.guard.set_limits(limits);
        Some(gating)
    }

    /// Starts over from zero: nodes that are to be gated then are gated at the rates, none of them at once.
    pub fn start_over(&mut self) {
        self.guard.start_over();
    }

    /// Whether this node may be gated now.
    pub fn may_gate(&self, node: &str) -> bool {
        self.guard.may_gate(node)
    }

    /// Notes that the rule's taint was added to a node.
    pub fn gated(&mut self, node: &str) {
        self.guard.gated(node);
    }

    /// Takes in an evaluation; returns whether the guard's view of the node changed.
    pub fn observe(&mut self, node: &Node, outcome: &Outcome<'_>) -> bool {
        // The node may have met its conditions again since it was gated, and the answer to that write may have been lost.
        if outcome.tainted {
            self.gated(&node.name);
        }
        let zone = Zone::of(&node.labels);
        // A node in maintenance is no sign of an outage, and is not gated meanwhile.
        let counts = |member: &Member| *member == Member::Met || !node.is_in_maintenance();
        let member = member(outcome).filter(counts);
        self.guard.observe(&node.name, zone, member)
    }

    /// Notes that the rule no longer matches a node; returns whether the guard knew it.
    pub fn forget(&mut self, node: &str) -> bool {
        self.guard.forget(node)
    }

    /// Lets nodes be gated as far as the limits allow; returns these.
    pub fn grant(&mut self, now: Instant) -> Vec<Arc<str>> {
        self.guard.grant(now)
    }

    /// When another node may be gated.
    pub fn next_grant(&self, now: Instant) -> Option<Instant> {
        self.guard.next_grant(now)
    }

    pub fn report(&self) -> Report {
        self.guard.report()
    }

    /// Announces when the guard starts or stops to hold nodes back, and when a zone changes its state meanwhile; returns the
    /// report.
    pub fn tell(&mut self, rule: &Rule, out: &mut Effects) -> Report {
        let report = self.report();
        let states: Vec<_> = report
            .zones
            .iter()
            .map(|zone| (zone.zone.clone(), zone.state))
            .collect();
        let was_limiting = std::mem::replace(&mut self.is_limiting, report.waiting > 0);
        if report.waiting > 0 && (!was_limiting || states != self.told) {
            warn!(rule = %rule.name, "{report}");
            out.tell(Notice::of_guard(rule, &report));
            self.told = states;
        } else if was_limiting && report.waiting == 0 {
            info!(rule = %rule.name, "{report}");
        }
        report
    }
}

/// How a node counts for the guard; `None` if it does not count.
fn member(outcome: &Outcome<'_>) -> Option<Member> {
    let decision = match outcome.standing {
        Standing::Governs(decision) | Standing::DryRun(decision) => decision,
        Standing::Conflicted { .. } => return None,
    };
    // A node that is still joining runs no workload: it is neither limited nor counted.
    match decision {
        _ if outcome.joining => None,
        Decision::Release { .. } => Some(Member::Met),
        // Only a bootstrap-only rule gives up, and such a rule has no guard.
        Decision::GiveUp => None,
        Decision::NotHeld { .. } => outcome.met.then_some(Member::Met),
        // During its grace period a node is unmet like any other, but may not be gated yet.
        Decision::Hold | Decision::Wait(WaitReason::Grace { .. }) => Some(Member::Held),
        Decision::Gate | Decision::Wait(WaitReason::Disruption | WaitReason::Stale) => {
            Some(Member::Waiting {
                since: outcome.unmet_since?,
            })
        }
    }
}
