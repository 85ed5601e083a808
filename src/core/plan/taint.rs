//! Plans one taint: which rule governs it, what each rule that names it decides, and which rule then owns it.

use std::ptr;

use jiff::SignedDuration;

use super::decision::{Decision, Situation, WaitReason, decide};
use super::judged::Judged;
use super::make::{Active, Draft, Taints};
use super::node_plan::{ChangeKind, TaintChange};
use super::outcome::{ConditionOutcome, Origin, Outcome, Standing};
use super::patience::is_new;
use crate::api::{EnforcementMode, RegateOn, TaintEffect, TaintPolicy};
use crate::condition::{Detail, Facts, Trust, Watch};
use crate::object::{ObjectKey, Taint};
use crate::repair::{Deadline, NoTtl, Verdict, has_been_released};
use crate::rule::ownership::{BootstrapRecord, Ownership, completion_value, owner_key};
use crate::rule::{CompiledSpec, Rule};

/// A node that registered with a taint and is released within this time is written once: ownership is recorded only later.
const ADOPTION: SignedDuration = SignedDuration::from_secs(1);

/// A pod that is not Ready is as good as none for this long after it was created: the `DaemonSet` controller makes one within a second.
const JUST_MADE: SignedDuration = SignedDuration::from_secs(20);

/// A rule that names the taint that is being planned.
#[derive(Clone, Copy)]
pub(super) struct Claim<'c, 'a> {
    pub rule: &'a Rule,
    pub spec: &'a CompiledSpec,
    pub governs: bool,
    /// Whether the node has the taint, whoever added it.
    pub tainted: bool,
    /// The taint's owners by the node's annotations.
    pub owners: &'c [Ownership<'c>],
}

impl<'a> Draft<'a> {
    /// Plans one taint. `claims` are its active rules in order of precedence, `owners` its owners by the node's annotations.
    pub(super) fn plan_taint(
        &mut self,
        (key, effect): (&str, TaintEffect),
        claims: &[Active<'a>],
        owners: &[Ownership<'_>],
        facts: &Facts<'_, 'a>,
    ) {
        let mut rules = claims.iter().map(|(rule, _)| *rule);
        let governing = rules.find(|rule| rule.live().is_some());
        let tainted = self.taints_of(key, effect).next().is_some();
        for &(rule, spec) in claims.iter().filter(|(rule, _)| !rule.deleting) {
            let claim = Claim {
                rule,
                spec,
                governs: governing.is_some_and(|it| ptr::eq(it, rule)),
                tainted,
                owners,
            };
            let outcome = self.outcome(claim, governing, facts);
            if let Some(decision) = outcome.governs()
                && !outcome.rule.is_suspended()
            {
                self.record_deadline(&outcome, decision);
                self.record_bootstrap(&outcome, facts);
                self.change_taint(&outcome, decision);
                self.record_owner(&outcome, owners);
            }
            self.plan.outcomes.push(outcome);
        }
        if governing.is_none() {
            self.clean_up(key, effect, claims, owners);
        }
        self.end_taint(Some((key, effect)));
    }

    /// The outcome of one rule that names the taint. Records and reports follow from it alone.
    fn outcome(
        &mut self,
        claim: Claim<'_, 'a>,
        governing: Option<&'a Rule>,
        facts: &Facts<'_, 'a>,
    ) -> Outcome<'a> {
        let Claim { rule, spec, .. } = claim;
        let bootstrap = BootstrapRecord::of(rule, spec, facts);
        let regates_on_reboot = spec.ours.regate_on.contains(&RegateOn::Reboot);
        let rebooted = self.state.observations.reboot(bootstrap.last_boot());
        let rebooted = rebooted.filter(|_| regates_on_reboot && !bootstrap.counts());
        let trust = Trust {
            heartbeat_timeout: spec.ours.heartbeat_timeout,
            beating: self.cluster.rules.beating.get(&rule.uid),
            sees_heartbeats: !self.cluster.stale.contains(&Watch::Nodes),
            rebooted,
            is_held: claim.tainted,
        };
        let facts = Facts { trust, ..*facts };
        let judged = Judged::of(spec, claim.tainted, &facts);
        let met = judged.met;
        // A node that is held by labels that went is not repaired either.
        let absence = judged.absence.clone();
        let absence = absence.or_else(|| facts.unselected(&spec.selector));
        let rebooted = rebooted.map(|reboot| reboot.seen);
        let completed = bootstrap.counts() || rule.leaves_alone(self.node.created);
        let (memory, wait, in_use) = self.patience(claim, met, &judged.findings, rebooted);
        let met_since = memory.as_ref().and_then(|it| it.met_since);
        let period = spec.ours.settle_period;
        let settles = met_since.and_then(|since| since.checked_add(period?.as_std()).ok());
        let settles = settles.filter(|until| self.now < *until);
        let is_held = claim.tainted && !met && !rule.is_suspended();
        let mut deadline = is_held.then(|| self.deadline(claim)).flatten();
        let mut verdict = self.verdict(claim, deadline.as_ref(), &judged.findings);
        verdict = verdict.filter(|_| absence.is_none());
        let given_up = verdict == Some(Verdict::Release);
        let settling = settles.is_some();
        let (decision, completes) =
            self.decide(claim, &judged, settling, completed, given_up, wait);
        if decision == Decision::Gate {
            deadline = self.deadline(claim);
            verdict = self.verdict(claim, deadline.as_ref(), &judged.findings);
        }
        self.requeue(&judged.findings, decision, deadline.as_ref());
        self.recheck(settles);
        self.recheck(absence.as_ref().map(|it| it.until));
        let adopts = claim.governs && is_held && decision == Decision::Hold;
        Outcome {
            rule,
            spec,
            standing: match governing {
                _ if spec.dry_run => Standing::DryRun(decision),
                Some(with) if !claim.governs => Standing::Conflicted {
                    with: with.name.clone(),
                },
                _ => Standing::Governs(decision),
            },
            completes,
            met,
            findings: judged.findings,
            tainted: claim.tainted,
            in_use,
            settles,
            origin: adopts.then(|| self.origin(claim)).flatten(),
            memory,
            rebooted,
            bootstrap,
            deadline,
            absence,
            verdict,
        }
    }

    /// Asks the decision table once: what to do, and whether that completes the bootstrap. Records which evidence the answer awaits.
    fn decide(
        &mut self,
        claim: Claim<'_, 'a>,
        judged: &Judged<'_>,
        settling: bool,
        completed: bool,
        given_up: bool,
        wait: Option<WaitReason>,
    ) -> (Decision, bool) {
        let (rule, spec, cluster) = (claim.rule, claim.spec, self.cluster);
        let findings = &judged.findings;
        let (case, decision, completes) = decide(&Situation {
            mode: spec.mode,
            policy: spec.ours.taint_policy,
            suspended: rule.is_suspended(),
            absence: judged.absence.is_some(),
            governs: claim.governs,
            tainted: claim.tainted,
            met: judged.met,
            settling,
            given_up,
            completed,
            introduced: self.node.is_introduced(),
            wait,
            new: is_new(self.state.joined, self.now),
            lacks_evidence: &|| {
                cluster.is_to_be_seen(spec)
                    || claim.governs && cluster.stale_for(spec, findings).next().is_some()
            },
            awaits_governor: &|| self.has_pending_governor(rule, spec),
        });
        if case.awaits_evidence() && !cluster.is_to_be_seen(spec) {
            self.plan.stale.extend(cluster.stale_for(spec, findings));
            self.plan.awaiting.push(rule.uid.clone());
        }
        (decision, completes)
    }

    /// Schedules the next evaluation for when a condition, a grace period or a deadline may change it.
    fn requeue(
        &mut self,
        findings: &[ConditionOutcome<'_>],
        decision: Decision,
        deadline: Option<&Result<Deadline, NoTtl>>,
    ) {
        let rechecks = findings.iter().map(|it| it.condition.as_ref()?.recheck);
        self.recheck(rechecks.flatten().min());
        if let Decision::Wait(WaitReason::Grace { until }) = decision {
            self.recheck(Some(until));
        }
        if let Some(Ok(Deadline::At(at))) = deadline
            && *at > self.now
        {
            self.recheck(Some(*at));
        }
    }

    fn origin(&self, claim: Claim<'_, 'a>) -> Option<Origin> {
        let (spec, owners) = (claim.spec, claim.owners);
        if owners.is_empty() {
            return Some(Origin::Adopted);
        }
        let mut taints = self.taints_of(&spec.taint.key, spec.effect);
        let is_born_with_it = !self.history.is_known
            && is_new(self.state.joined, self.now)
            && taints.all(|taint| taint.time_added.is_none())
            && owners.iter().any(|it| *it.rule_uid == *claim.rule.uid);
        is_born_with_it.then_some(Origin::Birth)
    }

    fn record_deadline(&mut self, outcome: &Outcome<'a>, decision: Decision) {
        let rule = outcome.rule;
        let is_over = match decision {
            Decision::Hold | Decision::Wait(_) | Decision::GiveUp => false,
            Decision::Release => true,
            // A node that was given up stays late while it is not ready. Any other node that is not held has no deadline.
            Decision::Gate | Decision::NotHeld => {
                outcome.met || !has_been_released(self.node, rule)
            }
        };
        if let Some(Ok(deadline)) = &outcome.deadline
            && decision.holds()
        {
            self.set_annotation(Deadline::key(&rule.uid), deadline.value());
        } else if is_over && outcome.spec.ours.repair.is_some() {
            self.remove_annotation(Deadline::key(&rule.uid));
        }
    }

    /// Records a completed bootstrap, or what the record of one lacks.
    fn record_bootstrap(&mut self, outcome: &Outcome<'a>, facts: &Facts<'_, 'a>) {
        let rule = outcome.rule;
        if outcome.completes || outcome.bootstrap == BootstrapRecord::Unstamped {
            let key = rule.completion_keys[0].clone();
            self.set_annotation(key, completion_value(rule, outcome.spec, facts));
        }
        // A node that was given up does not count as ready.
        if outcome.completes && outcome.governs() != Some(Decision::GiveUp) {
            self.writes.completes.push(rule.uid.clone());
        }
    }

    fn change_taint(&mut self, outcome: &Outcome<'a>, decision: Decision) {
        let (rule, spec) = (outcome.rule, outcome.spec);
        match decision {
            Decision::Gate => {
                if spec.mode == EnforcementMode::BootstrapOnly {
                    let keys = rule.completion_keys.iter().cloned();
                    self.writes.relied_on.extend(keys);
                }
                let taint = spec.taint.clone().added_at(self.now);
                self.change(ChangeKind::Added, outcome, taint);
            }
            Decision::Release | Decision::GiveUp => {
                let removed: Taints = self.taints_of(&spec.taint.key, spec.effect).collect();
                for taint in removed {
                    self.change(ChangeKind::Removed, outcome, taint.clone());
                }
            }
            Decision::Hold | Decision::Wait(_) | Decision::NotHeld => {}
        }
    }

    fn change(&mut self, kind: ChangeKind, outcome: &Outcome<'a>, taint: Taint) {
        let removed = kind == ChangeKind::Removed;
        let gave_up = removed && !outcome.met;
        let findings = outcome.findings.iter();
        let transitions = findings.filter_map(ConditionOutcome::transition);
        let change = TaintChange {
            kind,
            rule_name: outcome.rule.name.to_string(),
            rule_uid: outcome.rule.uid.to_string(),
            taint,
            transition: transitions.max().filter(|_| !gave_up),
            why: match kind {
                ChangeKind::Added => outcome.why(),
                ChangeKind::Removed if gave_up => {
                    format!("its readiness TTL has passed; {}", outcome.why())
                }
                ChangeKind::Removed => "the conditions are met".into(),
            },
            missing: self.missing(outcome).filter(|_| !removed),
            components_ready: removed && !gave_up && outcome.spec.waits_for_components(),
            gave_up,
        };
        self.writes.changes.push(change);
    }

    /// The first `DaemonSet` that has no pod on the node, else the first that has just made one, which is not Ready yet.
    fn missing(&self, outcome: &Outcome<'a>) -> Option<ObjectKey> {
        let mut details = outcome.unmet().filter_map(ConditionOutcome::detail);
        let just_made = |key: &&ObjectKey| {
            let (pod, daemon_set) = self.state.made_by(key, self.cluster)?;
            let age = self.now.duration_since(pod.created?);
            (age <= JUST_MADE).then(|| daemon_set.clone())
        };
        let unready = || {
            details.find_map(|it| match it {
                Detail::PodNotReady { pods } => pods.iter().find_map(just_made),
                _ => None,
            })
        };
        outcome.missing().next().cloned().or_else(unready)
    }

    /// Makes the governing rule the only owner of its taint.
    fn record_owner(&mut self, outcome: &Outcome<'a>, owners: &[Ownership<'_>]) {
        let (rule, spec, joining) = (outcome.rule, outcome.spec, outcome.joining());
        let owns = match outcome.governs() {
            Some(Decision::Gate) => true,
            Some(Decision::Hold) => !owners.is_empty() || self.is_to_own(outcome),
            _ => false,
        };
        for owner in owners {
            if !owns || *owner.rule_uid != *rule.uid {
                self.remove_annotation(owner_key(owner.rule_uid));
            }
        }
        let is_said = |it: &Ownership| *it == Ownership::of(rule, spec, joining, it.adopted);
        if owns && !owners.iter().any(is_said) {
            let adopted = outcome.tainted && owners.iter().all(|it| it.adopted);
            let value = Ownership::of(rule, spec, joining, adopted).value();
            self.set_annotation(owner_key(&rule.uid), value);
        }
    }

    /// Whether to record now that the rule owns a taint that someone else added.
    fn is_to_own(&mut self, outcome: &Outcome<'a>) -> bool {
        if !outcome.adopts() || outcome.spec.ours.taint_policy == TaintPolicy::RemoveOnly {
            return false;
        }
        let joined = self.state.joined;
        match joined.and_then(|joined| joined.checked_add(ADOPTION).ok()) {
            Some(later) if self.now < later => {
                self.recheck(Some(later));
                false
            }
            _ => true,
        }
    }
}
