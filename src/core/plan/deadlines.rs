//! Readiness deadlines of nodes that a rule holds and has never released, on record or to be recorded.

use smallvec::SmallVec;

use super::make::Draft;
use super::outcome::{ConditionOutcome, Standing, unmet};
use super::taint::Claim;
use crate::api::{EnforcementMode, RepairAction};
use crate::condition::Watch;
use crate::repair::{
    BLOCKED_INTERVAL, Before, Deadline, NoTtl, Verdict, has_been_released, in_force, judge,
};
use crate::rule::CompiledSpec;

const FORGOTTEN: usize = 100;

impl<'a> Draft<'a> {
    /// The readiness deadline of a node that the rule holds or gates, and has never released: the recorded one, or a new one.
    pub(super) fn deadline(&self, claim: Claim<'_, 'a>) -> Option<Result<Deadline, NoTtl>> {
        let (rule, spec, now) = (claim.rule, claim.spec, self.now);
        let repair = spec.ours.repair.as_ref().filter(|_| {
            spec.mode == EnforcementMode::BootstrapOnly && !has_been_released(self.node, rule)
        })?;
        let recorded = Deadline::recorded(self.node, &rule.uid);
        // A node that is not held has lost its taint, perhaps while the rule was a dry run, so its recorded deadline no longer applies.
        let recorded = recorded.filter(|_| spec.dry_run || claim.tainted);
        let joined = self.node.created.max(rule.created);
        let ttl = || in_force(repair, self.node, self.state.karpenter);
        let observations = self.state.observations;
        let set_forward = observations.set_forward_since_deadline(&rule.uid);
        if let Some(recorded) = recorded {
            let recorded = recorded.later_by(set_forward.unwrap_or_default());
            // Those who can annotate the node must not be able to release it early.
            let is_bounded = repair.action == RepairAction::Release;
            let soonest = joined.filter(|_| is_bounded).map(|joined| {
                Deadline::after(joined, ttl().unwrap_or(repair.readiness_ttl.as_std()))
            });
            return Some(Ok(soonest.map_or(recorded, |soonest| recorded.max(soonest))));
        }
        // Removing the deadline from a node restarts the whole time.
        let first_gated = joined.filter(|_| set_forward.is_none());
        Some(ttl().map(|ttl| {
            if spec.dry_run {
                // It records nothing, so it always counts from the same moment.
                Deadline::after(joined.unwrap_or(now), ttl)
            } else {
                Deadline::first(first_gated, self.history.watching_since, now, ttl)
            }
        }))
    }

    /// What to do with a node that may be late under a governing rule, or what a dry run would do.
    pub(super) fn verdict(
        &mut self,
        claim: Claim<'_, 'a>,
        deadline: Option<&Result<Deadline, NoTtl>>,
        findings: &[ConditionOutcome<'a>],
    ) -> Option<Verdict<'a>> {
        let (rule, spec, governs) = (claim.rule, claim.spec, claim.governs);
        let deadline = *deadline?.as_ref().ok()?;
        if !deadline.has_passed(self.now) || !(governs || spec.dry_run) {
            return None;
        }
        let is_to_be_seen = self.cluster.is_to_be_seen(spec);
        let is_postponed =
            is_to_be_seen || self.cluster.census.is_none() || self.cluster.repair_after.is_some();
        self.plan.repair_is_postponed |= governs && is_postponed;
        let census = self.cluster.census.filter(|_| !is_to_be_seen)?;
        if self.plan.repair_is_postponed {
            return None;
        }
        let (repair, karpenter) = (spec.ours.repair.as_ref()?, self.state.karpenter);
        // A dry run would repair nodes that it had gated.
        let is_held = claim.tainted || spec.dry_run;
        let mut setbacks = self.history.setbacks.iter();
        let past = Before {
            lacks: unmet(findings).next().map_or("", |it| &it.requirement.kind),
            setback: setbacks.find(|(uid, _)| *uid == rule.uid).map(|it| &it.1),
            now: self.now,
        };
        let zones = self.state.zones();
        let rule = (rule, repair);
        let of = (self.node, &zones.home);
        let verdict = judge(of, rule, is_held, karpenter, census, past);
        if let Verdict::Blocked(blocked) = verdict
            && governs
        {
            self.recheck(self.now.checked_add(BLOCKED_INTERVAL).ok());
            self.recheck(blocked.until());
        }
        Some(verdict)
    }

    /// While repair is postponed, drops what dry runs would do, and schedules an evaluation for when that ends.
    pub(super) fn postpone(&mut self) {
        if !self.plan.repair_is_postponed {
            return;
        }
        for outcome in &mut self.plan.outcomes {
            outcome.verdict = None;
        }
        self.recheck(self.cluster.repair_after);
    }

    /// Removes obsolete deadlines, a bounded number of them at a time: a kubelet could write any.
    pub(super) fn forget_deadlines(&mut self) {
        let node = self.node;
        let obsolete = Deadline::rules(node).filter(|uid| !self.keeps_records_of(uid));
        let obsolete: SmallVec<[&str; 1]> = obsolete.take(FORGOTTEN).collect();
        for uid in obsolete {
            self.remove_annotation(Deadline::key(uid));
        }
    }

    /// Whether records of a repair under the rule with this UID stay: it may not act yet, or selects the node, has a `repair`, and
    /// governs. An unknown rule's stay until the rules are known as of after the node's event: a watch may show a node first.
    pub(super) fn keeps_records_of(&mut self, uid: &str) -> bool {
        let rules = self.cluster.rules.rules();
        let Some(index) = rules.iter().position(|rule| *rule.uid == *uid) else {
            if !self.state.knows_rules {
                self.plan.stale.insert(Watch::Rules);
            }
            return !self.state.knows_rules;
        };
        let rule = &rules[index];
        let may_act = |spec: &CompiledSpec| {
            let outcome = self.plan.outcome_of(&rule.uid);
            let is_governed_by_another =
                outcome.is_some_and(|it| matches!(it.standing, Standing::Conflicted { .. }));
            spec.ours.repair.is_some()
                && self.state.selecting.contains(&index)
                && !is_governed_by_another
        };
        rule.is_suspended() || !rule.deleting && rule.active().is_none_or(may_act)
    }
}
