//! The rules' disruption guards, which decide which nodes a rule may gate now.

use std::sync::Arc;
use std::time::Instant;

use super::Rules;
use crate::cache::Cache;
use nodegate_core::guard::{Guard, Limits, Member};
use nodegate_core::plan::{ClusterState, Decision, NodeState, Outcome, Standing, WaitReason};
use nodegate_core::rule::{CompiledSpec, Rule};

impl Rules {
    /// UIDs of the rules whose guards let this node be gated now. A guard counts all nodes: none may while any evidence is stale.
    pub fn may_gate(&self, node: &str, selecting: &[usize], cache: &Cache) -> Vec<Arc<str>> {
        let cluster = cache.cluster();
        let may_gate = |rule: &&Arc<Rule>| {
            let guard = self.works.get(&rule.uid).and_then(|it| it.guard.as_ref());
            guard.is_some_and(|guard| guard.may_gate(node)) && !evidence_is_stale(rule, cluster)
        };
        let permitting = cluster.rules.at(selecting).filter(may_gate);
        permitting.map(|rule| rule.uid.clone()).collect()
    }

    /// Notes that a rule's taint was added to a node.
    pub fn gated(&mut self, uid: &str, node: &str) {
        let work = self.works.get_mut(uid);
        if let Some(guard) = work.and_then(|work| work.guard.as_mut()) {
            guard.gated(node);
        }
    }

    /// After an outage, lets no guard use what it has saved up: what is still to be gated is gated at the rates, from zero.
    pub fn outage_is_over(&mut self) {
        for guard in self.works.values_mut().filter_map(|it| it.guard.as_mut()) {
            guard.start_over();
        }
    }

    /// Nodes that may be gated from now on: none until all are evaluated, as guards count them; none of a suspended or stale rule.
    pub fn grant_gating(&mut self, cache: &Cache, now: Instant) -> Vec<Arc<str>> {
        let cluster = cache.cluster();
        let mut granted = Vec::new();
        for rule in cluster.rules.rules() {
            if let Some(work) = self.works.get_mut(&rule.uid)
                && let Some(guard) = &mut work.guard
                && !rule.is_suspended()
                && !evidence_is_stale(rule, cluster)
            {
                granted.extend(guard.grant(now));
            }
        }
        granted
    }

    /// When a guard may let another node be gated, or a first gating is decided anew.
    pub fn next_gating(&self, cache: &Cache, now: Instant) -> Option<Instant> {
        let cluster = cache.cluster();
        let next = cluster.rules.rules().iter().filter_map(|rule| {
            let work = self.works.get(&rule.uid)?;
            let grant = work.guard.as_ref().and_then(|guard| guard.next_grant(now));
            let next = grant.into_iter().chain(work.first_gating.due()).min();
            next.filter(|_| !rule.is_suspended() && !evidence_is_stale(rule, cluster))
        });
        next.min()
    }
}

/// Whether anything that a rule depends on is stale, or has not been seen yet.
pub(super) fn evidence_is_stale(rule: &Rule, cluster: ClusterState<'_>) -> bool {
    rule.active().is_some_and(|spec| {
        cluster.is_to_be_seen(spec) || cluster.stale_for(spec, &[]).next().is_some()
    })
}

/// The guard for a rule with this spec, continuing the previous one; `None` if the rule has no guard.
pub(crate) fn guard_for(spec: &CompiledSpec, mut known: Guard, defaults: Limits) -> Option<Guard> {
    known.limits = Limits::of(spec.ours.guard()?, defaults);
    Some(known)
}

/// Takes in an evaluation; returns whether the guard's view of the node changed.
pub(crate) fn observe(guard: &mut Guard, state: NodeState<'_>, outcome: &Outcome<'_>) -> bool {
    let node = state.node;
    // The node may have met its conditions again since it was gated, and the answer to that write may have been lost.
    if outcome.tainted {
        guard.gated(&node.name);
    }
    // A node in maintenance is no sign of an outage, and is not gated meanwhile.
    let counts = |member: &Member| *member == Member::Met || !node.is_in_maintenance();
    let member = member(outcome).filter(counts);
    guard.observe(&node.name, state.zones(), member)
}

/// How a node counts for the guard; `None` if it does not count.
fn member(outcome: &Outcome<'_>) -> Option<Member> {
    let decision = match outcome.standing {
        Standing::Governs(decision) | Standing::DryRun(decision) => decision,
        Standing::Conflicted { .. } => return None,
    };
    // A node that is still joining runs no workload: it is neither limited nor counted.
    match decision {
        _ if outcome.joining() => None,
        Decision::Release => Some(Member::Met),
        // Only a bootstrap-only rule gives up, and such a rule has no guard.
        Decision::GiveUp => None,
        Decision::NotHeld => outcome.met.then_some(Member::Met),
        // During its grace period a node is unmet like any other, but may not be gated yet.
        Decision::Hold | Decision::Wait(WaitReason::Grace { .. }) => Some(Member::Held),
        Decision::Gate
        | Decision::Wait(WaitReason::FirstGating | WaitReason::Disruption | WaitReason::Stale) => {
            Some(Member::Waiting {
                since: outcome.unmet_since()?,
            })
        }
    }
}
