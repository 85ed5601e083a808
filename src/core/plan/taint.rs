//! Plans one taint: which rule governs it, what each rule that names it decides, and which rule then owns it.

use std::ptr;

use jiff::SignedDuration;
use smallvec::SmallVec;

use super::decision::{Decision, WaitReason, decide};
use super::make::{Active, Draft};
use super::node_plan::{ChangeKind, TaintChange};
use super::outcome::{ConditionOutcome, Memory, Origin, Outcome, Standing, evaluate, unmet};
use super::patience::{Past, held_back, is_new};
use crate::api::{EnforcementMode, RegateOn, TaintEffect, TaintPolicy};
use crate::condition::{Detail, Facts, Trust, Watch};
use crate::object::Taint;
use crate::repair::{Deadline, NoTtl, Verdict, has_been_released};
use crate::rule::Rule;
use crate::rule::ownership::{BootstrapRecord, Ownership, completion_value, owner_key};

/// A node that is released within this time after it joined is written once: ownership of a taint that it registered with is
/// recorded only later.
const ADOPTION: SignedDuration = SignedDuration::from_secs(1);

impl<'a> Draft<'a> {
    /// Plans one taint. `claims` are the active rules with this taint, in order of precedence; `owners` are its owners by the
    /// node's annotations.
    pub(super) fn plan_taint(
        &mut self,
        (key, effect): (&str, TaintEffect),
        claims: &[Active<'a>],
        owners: &[Ownership<'_>],
        facts: &Facts<'_, 'a>,
    ) {
        let mut rules = claims.iter().map(|(rule, _)| *rule);
        let governing = rules.find(|rule| rule.live().is_some());
        for claim in claims.iter().filter(|(rule, _)| !rule.deleting) {
            let outcome = self.evaluate(*claim, governing, owners, facts);
            if let Some(decision) = outcome.governs()
                && !outcome.rule.is_suspended()
            {
                self.record_deadline(&outcome, decision);
                self.record_bootstrap(&outcome, decision, facts);
                self.change_taint(&outcome, decision);
                self.record_owner(&outcome, decision, owners);
            }
            self.plan.outcomes.push(outcome);
        }
        if governing.is_none() {
            self.clean_up(key, effect, claims, owners);
        }
        self.end_taint(Some((key, effect)));
    }

    /// The outcome of one rule that names the taint. Records and reports follow from it alone.
    fn evaluate(
        &mut self,
        (rule, spec): Active<'a>,
        governing: Option<&'a Rule>,
        owners: &[Ownership<'_>],
        facts: &Facts<'_, 'a>,
    ) -> Outcome<'a> {
        let (key, effect, now) = (&*spec.taint.key, spec.effect, self.now);
        let governs = governing.is_some_and(|it| ptr::eq(it, rule));
        let tainted = self.taints_of(key, effect).next().is_some();
        let bootstrap = BootstrapRecord::of(rule, spec, facts);
        let regates_on_reboot = spec.ours.regate_on.contains(&RegateOn::Reboot);
        let rebooted = self.state.observations.reboot(bootstrap.last_boot());
        let rebooted = rebooted.filter(|_| regates_on_reboot && !bootstrap.counts());
        let trust = Trust {
            heartbeat_timeout: spec.ours.heartbeat_timeout,
            sees_heartbeats: !self.cluster.stale.contains(&Watch::Nodes),
            rebooted,
            is_held: tainted,
        };
        let (met, findings) = evaluate(spec, &Facts { trust, ..*facts });

        let mut memories = self.history.memories.iter();
        let known = memories.find(|memory| memory.rule == rule.uid);
        let past = Past {
            rule,
            created: self.node.created,
            joined: self.state.joined,
            memory: known,
            is_known: self.history.is_known,
            tainted,
            owners,
            met,
        };
        let is_held_back = self.history.held_back.contains(&rule.uid);
        // A bootstrap-only rule gates nodes as they join and reboot, and those that it found as it came into force.
        let is_in_use = is_held_back && !past.was_in_force() && rebooted.is_none();
        let (mut memory, mut held) = (None, is_in_use.then_some(WaitReason::FirstGating));
        if spec.mode == EnforcementMode::Continuous {
            let joining = past.is_joining(now);
            let unmet_since = past.unmet_since(spec.policy, &findings, now);
            let permits = (!is_held_back, self.history.may_gate.contains(&rule.uid));
            held = unmet_since
                .filter(|_| !joining)
                .and_then(|since| held_back(spec, &findings, since, permits, now));
            // Another rule, which governs the taint, may have released the node: pods may come, whatever this rule finds.
            let is_governed = governing.is_some() && !governs && !spec.dry_run;
            memory = Some(Memory {
                rule: rule.uid.clone(),
                was_met: met || known.is_some_and(|known| known.was_met),
                joining: joining && (tainted || !is_governed),
                tainted,
                unmet_since,
            });
        }
        let completed = bootstrap.counts() || rule.leaves_alone(self.node.created);
        let policy = spec.ours.taint_policy;
        // A remove-only rule never gates again, so its record does no harm.
        let is_early = policy == TaintPolicy::AddAndRemove && !self.node.is_introduced();
        let (mut decision, mut completes) =
            decide(spec.mode, policy, met, tainted, completed, held);
        completes &= !is_early;
        if rule.is_suspended() {
            (decision, completes) = (Decision::nothing(tainted), false);
        }
        if let Some(instead) = self.instead((rule, spec), (decision, completes), governs, &findings)
        {
            (decision, completes) = (instead, false);
        }
        let (mut deadline, mut verdict) = (None, None);
        if !rule.is_suspended() && !met {
            deadline = self.deadline((rule, spec), decision, now);
            let deadline = deadline.as_ref();
            verdict = self.verdict((rule, spec), deadline, (governs, tainted), &findings);
        }
        if governs && verdict == Some(Verdict::Release) && decision == Decision::Hold {
            decision = self
                .instead((rule, spec), (Decision::GiveUp, true), governs, &findings)
                .unwrap_or(Decision::GiveUp);
            completes = decision == Decision::GiveUp;
        }
        if governs && decision.releases() && self.has_pending_governor(rule, spec) {
            (decision, completes) = (Decision::Hold, false);
        }

        self.requeue(&findings, decision, deadline.as_ref());
        let is_held = decision == Decision::Hold && !met && !rule.is_suspended();
        Outcome {
            rule,
            spec,
            standing: match governing {
                _ if spec.dry_run => Standing::DryRun(decision),
                Some(with) if !governs => Standing::Conflicted {
                    with: with.name.clone(),
                },
                _ => Standing::Governs(decision),
            },
            completes,
            met,
            findings,
            tainted,
            origin: self
                .origin((rule, spec), tainted, owners)
                .filter(|_| governs && is_held),
            memory,
            rebooted: rebooted.map(|reboot| reboot.seen),
            bootstrap,
            deadline,
            verdict,
        }
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

    /// What to do instead of a decision while what it depends on has not been seen yet, or is stale.
    fn instead(
        &mut self,
        (rule, spec): Active<'a>,
        (decision, completes): (Decision, bool),
        governs: bool,
        findings: &[ConditionOutcome<'_>],
    ) -> Option<Decision> {
        let is_new = is_new(self.state.joined, self.now);
        let instead = decision.on_stale_evidence(completes, is_new)?;
        if self.cluster.is_to_be_seen(spec) {
            return Some(instead);
        }
        if !governs {
            return None;
        }
        // A reporter is silent only if the nodes are known as of a time after its heartbeat was due.
        let is_early = |finding: &ConditionOutcome<'_>| {
            let mut condition = finding.condition.iter();
            condition.any(|it| {
                matches!(it.detail, Detail::HeartbeatMissed { .. })
                    && it.transition > Some(self.cluster.nodes_as_of)
            })
        };
        let early = unmet(findings).any(is_early).then_some(Watch::Nodes);
        let mut stale = self.cluster.stale_for(spec).chain(early).peekable();
        stale.peek()?;
        self.plan.stale.extend(stale);
        self.plan.awaiting.push(rule.uid.clone());
        Some(instead)
    }

    /// How the rule came to own a taint that the controller did not add.
    fn origin(
        &self,
        (rule, spec): Active<'a>,
        tainted: bool,
        owners: &[Ownership<'_>],
    ) -> Option<Origin> {
        if owners.is_empty() {
            return Some(Origin::Adopted);
        }
        let mut taints = self.taints_of(&spec.taint.key, spec.effect);
        let is_born_with_it = tainted
            && !self.history.is_known
            && is_new(self.state.joined, self.now)
            && taints.all(|taint| taint.time_added.is_none())
            && owners.iter().any(|owner| *owner.rule_uid == *rule.uid);
        is_born_with_it.then_some(Origin::Birth)
    }

    /// Records the node's readiness deadline under the governing rule, or removes it.
    fn record_deadline(&mut self, outcome: &Outcome<'a>, decision: Decision) {
        let rule = outcome.rule;
        let is_over = match decision {
            Decision::Hold | Decision::Wait(_) | Decision::GiveUp => false,
            Decision::Release => true,
            // A node that was given up stays late for as long as it is not ready. Any other node that is not held has no
            // deadline.
            Decision::Gate | Decision::NotHeld => {
                outcome.met || !has_been_released(self.node, rule)
            }
        };
        if let Some(Ok(deadline)) = &outcome.deadline
            && decision.holds()
        {
            self.set_annotation(Deadline::key(&rule.uid), deadline.value());
        } else if is_over && outcome.spec.ours.repair.is_some() {
            self.forget_deadline(&rule.uid);
        }
    }

    /// Records a completed bootstrap, or what the record of one lacks.
    fn record_bootstrap(
        &mut self,
        outcome: &Outcome<'a>,
        decision: Decision,
        facts: &Facts<'_, 'a>,
    ) {
        let rule = outcome.rule;
        if outcome.completes || outcome.bootstrap == BootstrapRecord::Unstamped {
            let key = rule.completion_keys[0].clone();
            self.set_annotation(key, completion_value(rule, outcome.spec, facts));
        }
        // A node that was given up does not count as ready.
        if outcome.completes && decision != Decision::GiveUp {
            self.writes.completes.push(rule.uid.clone());
        }
    }

    /// Adds or removes the taint.
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
                let removed: SmallVec<[&Taint; 2]> =
                    self.taints_of(&spec.taint.key, spec.effect).collect();
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
            components_ready: removed && !gave_up && outcome.spec.waits_for_components(),
            gave_up,
        };
        self.writes.changes.push(change);
    }

    /// Makes the governing rule the only owner of its taint.
    fn record_owner(
        &mut self,
        outcome: &Outcome<'a>,
        decision: Decision,
        owners: &[Ownership<'_>],
    ) {
        let (rule, spec, joining) = (outcome.rule, outcome.spec, outcome.joining());
        let owns = match decision {
            Decision::Gate => true,
            Decision::Hold => !owners.is_empty() || self.is_to_own(outcome),
            _ => false,
        };
        for owner in owners {
            if !owns || *owner.rule_uid != *rule.uid {
                self.remove_annotation(owner_key(owner.rule_uid));
            }
        }
        let is_said =
            |owner: &Ownership| *owner == Ownership::of(rule, spec, joining, owner.adopted);
        if owns && !owners.iter().any(is_said) {
            let adopted = decision == Decision::Hold && owners.iter().all(|it| it.adopted);
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
