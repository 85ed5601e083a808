//! Settles one taint: which rule governs it, what that rule decides, and which rule then owns it.

use std::ptr;

use jiff::{SignedDuration, Timestamp};
use smallvec::SmallVec;

use super::change::{ChangeKind, TaintChange};
use super::decision::{Decision, WaitReason, decide};
use super::draft::{Contender, Draft, earliest};
use super::evaluate::{Evaluation, Finding, evaluate};
use super::outcome::{Origin, Outcome, Standing};
use super::patience::{Past, held_back, is_new, unmet_since};
use super::waiting::Waiting;
use crate::api::{EnforcementMode, RegateOn, TaintEffect, TaintPolicy};
use crate::condition::{Detail, Facts, Reboot, Source, Trust};
use crate::object::Taint;
use crate::repair::{Deadline, NoTtl, Verdict, has_been_open};
use crate::rule::Rule;
use crate::rule::ownership::{
    BootstrapRecord, Ownership, completion_value, owner_key, owner_value,
};

/// A node that opens within this time after it joined is written once: ownership of a taint that it registered with is recorded
/// only later.
const ADOPTION: SignedDuration = SignedDuration::from_secs(1);

/// How long a continuous rule has to wait before it closes a node with unmet conditions.
#[derive(Debug, Clone, Copy, Default)]
struct Patience {
    joining: bool,
    /// Whether the rule has evaluated its conditions on the node.
    is_decided: bool,
    unmet_since: Option<Timestamp>,
    held: Option<WaitReason>,
}

/// A taint to settle.
struct Dispute<'s, 'a> {
    tainted: bool,
    /// The first rule that may govern it.
    governing: Option<Contender<'a>>,
    /// Its owners, by the node's annotations.
    owners: &'s [Ownership<'s>],
    /// Whether the node has just joined with the taint.
    came_with_it: bool,
    facts: &'s Facts<'s, 'a>,
}

impl Dispute<'_, '_> {
    fn is_governed_by(&self, rule: &Rule) -> bool {
        self.governing
            .is_some_and(|governing| ptr::eq(governing.rule, rule))
    }

    /// Whether a contender waits until all taints are settled: it comes after others and governs nothing, so that nothing waits
    /// for it.
    fn postpones(&self, Contender { rule, spec, .. }: Contender<'_>) -> bool {
        !spec.after.is_empty() && !self.is_governed_by(rule)
    }
}

/// What one rule decides about one taint.
struct Ruling<'a> {
    contender: Contender<'a>,
    governs: bool,
    evaluation: Evaluation<'a>,
    completion: BootstrapRecord<'a>,
    rebooted: Option<Reboot>,
    patience: Patience,
    deadline: Option<Result<Deadline, NoTtl>>,
    verdict: Option<Verdict<'a>>,
    /// What is really done: records and reports follow from this alone.
    decision: Decision,
}

impl<'a> Draft<'a> {
    /// Settles one taint: which contender governs it, what that contender decides, and which rule then owns it.
    pub(super) fn settle(
        &mut self,
        key: &str,
        effect: TaintEffect,
        contenders: &[Contender<'a>],
        owners: &[Ownership<'_>],
        facts: &Facts<'_, 'a>,
    ) {
        let dispute = self.dispute(key, effect, contenders, owners, facts);
        let mut decided = None;
        let is_its_turn = |it: &&Contender<'a>| !it.rule.deleting && !dispute.postpones(**it);
        for contender in contenders.iter().filter(is_its_turn) {
            let ruling = self.rule_on(*contender, &dispute);
            self.schedule(&ruling);
            if ruling.governs {
                if !contender.rule.is_suspended() {
                    self.put_on_record(&ruling, facts);
                }
                decided = Some((*contender, ruling.decision, ruling.patience.joining));
            }
            self.plan.outcomes.push(ruling.outcome(&dispute));
        }
        match decided {
            Some((contender, ..)) if contender.rule.is_suspended() => {}
            Some((contender, decision, joining)) => {
                self.carry_out(contender, decision, joining, owners, facts);
            }
            None => self.clean_up(key, effect, contenders, owners),
        }
    }

    /// Settles what is left of a taint once all of them have been settled: what rules would do that come after others and
    /// govern nothing.
    pub(super) fn settle_postponed(
        &mut self,
        key: &str,
        effect: TaintEffect,
        contenders: &[Contender<'a>],
        owners: &[Ownership<'_>],
        facts: &Facts<'_, 'a>,
    ) {
        let dispute = self.dispute(key, effect, contenders, owners, facts);
        let is_left = |it: &&Contender<'a>| !it.rule.deleting && dispute.postpones(**it);
        for contender in contenders.iter().filter(is_left) {
            let ruling = self.rule_on(*contender, &dispute);
            self.schedule(&ruling);
            self.plan.outcomes.push(ruling.outcome(&dispute));
        }
    }

    fn dispute<'s>(
        &self,
        key: &str,
        effect: TaintEffect,
        contenders: &[Contender<'a>],
        owners: &'s [Ownership<'s>],
        facts: &'s Facts<'s, 'a>,
    ) -> Dispute<'s, 'a> {
        let may_govern = |contender: &&Contender<'a>| contender.rule.live().is_some();
        let tainted = self.taints_of(key, effect).next().is_some();
        let is_undated = |taint: &Taint| taint.time_added.is_none();
        Dispute {
            tainted,
            came_with_it: tainted
                && !self.history.is_known
                && is_new(self.state.joined, self.now)
                && self.taints_of(key, effect).all(is_undated),
            governing: contenders.iter().find(may_govern).copied(),
            owners,
            facts,
        }
    }

    /// What one contender decides about the taint.
    fn rule_on(&mut self, contender: Contender<'a>, dispute: &Dispute<'_, 'a>) -> Ruling<'a> {
        let Contender { rule, spec, .. } = contender;
        let (tainted, facts) = (dispute.tainted, dispute.facts);
        let completion = BootstrapRecord::of(rule, spec, facts);
        let rebooted = self
            .state
            .observations
            .reboot(completion.last_boot())
            .filter(|_| spec.regate_on.contains(&RegateOn::Reboot) && !completion.counts());
        let trust = Trust {
            heartbeat_timeout: spec.heartbeat_timeout,
            sees_heartbeats: !self.stale.nodes,
            rebooted,
            is_closed: tainted,
        };
        let evaluation = match self.waits_for(contender) {
            Some(rule) => Evaluation::waiting(rule),
            None => evaluate(spec, &Facts { trust, ..*facts }),
        };
        let patience = self.patience(contender, &evaluation, tainted, dispute.owners, facts.now);
        let completed = completion.counts() || rule.leaves_alone(self.node.created);
        let decision = if evaluation.waits_for.is_some() && patience.is_decided {
            Decision::nothing(tainted)
        } else {
            decide(
                spec.mode,
                spec.taint_policy,
                evaluation.met,
                tainted,
                completed,
                patience.held,
            )
        };
        // A remove-only rule never gates again, so its record does no harm.
        let is_early = spec.taint_policy == TaintPolicy::AddAndRemove && !self.node.is_introduced();
        let mut ruling = Ruling {
            contender,
            governs: dispute.is_governed_by(rule),
            evaluation,
            completion,
            rebooted,
            patience,
            deadline: None,
            verdict: None,
            decision: match decision {
                _ if rule.is_suspended() => Decision::nothing(tainted),
                decision if is_early => decision.without_completion(),
                decision => decision,
            },
        };
        self.wait_for_evidence(&mut ruling);
        if !rule.is_suspended() && !ruling.evaluation.met {
            ruling.deadline = self.deadline(contender, ruling.decision, facts.now);
            let deadline = ruling.deadline.as_ref();
            ruling.verdict = self.verdict(contender, deadline, ruling.governs, tainted);
        }
        if ruling.gives_up() {
            ruling.decision = ruling.decision.given_up();
            self.wait_for_evidence(&mut ruling);
        }
        if ruling.governs && ruling.decision.lifts() && self.has_rival(rule, spec) {
            ruling.decision = Decision::Hold;
        }
        ruling
    }

    /// Replaces a harmful decision while what it depends on has not been seen yet, or is stale.
    fn wait_for_evidence(&mut self, ruling: &mut Ruling<'a>) {
        let is_new = is_new(self.state.joined, self.now);
        let Some(instead) = ruling.decision.on_stale_evidence(is_new) else {
            return;
        };
        let contender = ruling.contender;
        let is_to_be_seen = self.cluster.is_to_be_seen(contender.spec);
        if is_to_be_seen || self.awaits_a_rule(contender) || self.reads_live(ruling) {
            ruling.decision = instead;
        }
    }

    /// Whether a governing rule's harmful decision waits for a live read, which is planned. A silent reporter is always checked
    /// by one: its write may still be on its way.
    fn reads_live(&mut self, ruling: &Ruling<'a>) -> bool {
        if !ruling.governs {
            return false;
        }
        let is_silent = |result: &Finding<'_>| {
            let condition = result.condition.as_ref();
            condition.is_some_and(|it| matches!(it.detail, Detail::HeartbeatMissed { .. }))
        };
        let spec = ruling.contender.spec;
        let mut look = self.stale.about(spec, self.cluster.named);
        look.nodes |= !self.history.read_live.nodes && ruling.evaluation.unmet().any(is_silent);
        if look.is_empty() {
            return false;
        }
        self.plan.read_live(look);
        let rule = ruling.contender.rule;
        self.plan.looking.push(rule.uid.clone());
        true
    }

    /// Schedules the next evaluation, if time alone may change the decision.
    fn schedule(&mut self, ruling: &Ruling<'_>) {
        let mut recheck = earliest(self.plan.recheck, ruling.evaluation.recheck());
        if let Decision::Wait(WaitReason::Grace { until }) = ruling.decision {
            recheck = earliest(recheck, Some(until));
        }
        if let Some(Ok(Deadline::At(at))) = ruling.deadline
            && at > self.now
        {
            recheck = earliest(recheck, Some(at));
        }
        self.plan.recheck = recheck;
    }

    /// Records on the node its readiness deadline under the governing rule, and its boot ID if that is missing.
    fn put_on_record(&mut self, ruling: &Ruling<'a>, facts: &Facts<'_, 'a>) {
        let Contender { rule, spec, .. } = ruling.contender;
        let is_over = match ruling.decision {
            Decision::Hold | Decision::Wait(_) | Decision::GiveUp => false,
            Decision::Release { .. } => true,
            // A node that was given up stays late for as long as it is not ready. Any other open node has no deadline.
            Decision::Gate | Decision::Open { .. } => {
                ruling.evaluation.met || !has_been_open(self.node, rule)
            }
        };
        if let Some(Ok(deadline)) = &ruling.deadline
            && ruling.decision.holds()
        {
            self.set_annotation(Deadline::key(&rule.uid), deadline.value());
        } else if is_over && spec.repair.is_some() {
            self.forget_deadline(&rule.uid);
        }
        if matches!(ruling.completion, BootstrapRecord::Unstamped) {
            let key = rule.completion_keys[0].clone();
            let value = completion_value(rule, spec, facts);
            self.set_annotation(key, value);
        }
    }

    /// Whether and why a continuous rule has to wait before it closes the node.
    fn patience(
        &self,
        Contender { rule, spec, .. }: Contender<'a>,
        evaluation: &Evaluation<'_>,
        tainted: bool,
        owners: &[Ownership<'_>],
        now: Timestamp,
    ) -> Patience {
        if spec.mode == EnforcementMode::BootstrapOnly {
            return Patience::default();
        }
        let memory = self
            .history
            .memories
            .iter()
            .find(|memory| memory.rule == rule.uid);
        let past = Past {
            rule,
            created: self.node.created,
            joined: self.state.joined,
            memory,
            tainted,
            owners,
            met: evaluation.met,
        };
        let joining = past.is_joining(now);
        let is_known = self.history.is_known;
        let is_decided = evaluation.waits_for.is_none()
            || memory.map_or(!is_known && !joining, |memory| memory.is_decided);
        let unmet_since = if evaluation.waits_for.is_none() {
            let memory = memory.filter(|memory| memory.is_decided);
            unmet_since(rule, spec, evaluation, memory, is_known, now)
        } else {
            let waiting = memory.and_then(|memory| memory.unmet_since);
            (!is_decided).then_some(waiting.unwrap_or(now))
        };
        let may_close = self.history.may_close.contains(&rule.uid);
        Patience {
            joining,
            is_decided,
            unmet_since,
            held: unmet_since
                .filter(|_| !joining)
                .and_then(|since| held_back(spec, evaluation, since, may_close, now)),
        }
    }

    /// Carries out the decision of the governing rule, which then is the only owner of the taint.
    fn carry_out(
        &mut self,
        contender: Contender<'a>,
        decision: Decision,
        joining: bool,
        owners: &[Ownership<'_>],
        facts: &Facts<'_, 'a>,
    ) {
        let Contender { rule, spec, .. } = contender;
        if decision.completes_bootstrap() {
            let key = rule.completion_keys[0].clone();
            let value = completion_value(rule, spec, facts);
            self.set_annotation(key, value);
            // A node that was given up does not count as ready.
            if decision != Decision::GiveUp {
                self.writes.completes.push(rule.uid.clone());
            }
        }
        match decision {
            Decision::Gate => {
                if spec.mode == EnforcementMode::BootstrapOnly {
                    let keys = rule.completion_keys.iter().cloned();
                    self.writes.relied_on.extend(keys);
                }
                let taint = spec.taint.clone().added_at(self.now);
                self.writes.added.push(taint);
                self.record(ChangeKind::Added, contender, spec.effect);
            }
            Decision::Release { .. } | Decision::GiveUp => {
                let lifted: SmallVec<[&Taint; 2]> =
                    self.taints_of(&spec.taint.key, spec.effect).collect();
                for taint in lifted {
                    self.writes.lifted.push(taint.clone());
                    let effect = taint.effect.parse().unwrap_or(spec.effect);
                    self.record(ChangeKind::Removed, contender, effect);
                }
            }
            Decision::Hold | Decision::Wait(_) | Decision::Open { .. } => {}
        }
        let owns = match decision {
            Decision::Gate => true,
            Decision::Hold => !owners.is_empty() || self.is_to_own(contender),
            _ => false,
        };
        for owner in owners {
            if !owns || *owner.rule_uid != *rule.uid {
                self.remove_annotation(owner_key(owner.rule_uid));
            }
        }
        let is_said = |owner: &Ownership| owner.is_as_of(rule, spec, joining);
        if owns && !owners.iter().any(is_said) {
            let adopted = decision == Decision::Hold && owners.iter().all(|it| it.adopted);
            let value = owner_value(rule, spec, joining, adopted);
            self.set_annotation(owner_key(&rule.uid), value);
        }
        if decision.holds() {
            self.note_waiting(rule);
        }
    }

    /// Whether to record now that the rule owns a taint that someone else added.
    fn is_to_own(&mut self, Contender { rule, spec, .. }: Contender<'a>) -> bool {
        let adopts = self.outcome(rule).is_some_and(Outcome::adopts);
        if !adopts || spec.taint_policy == TaintPolicy::RemoveOnly {
            return false;
        }
        let joined = self.state.joined;
        match joined.and_then(|joined| joined.checked_add(ADOPTION).ok()) {
            Some(settled) if self.now < settled => {
                self.plan.recheck = earliest(self.plan.recheck, Some(settled));
                false
            }
            _ => true,
        }
    }

    fn record(&mut self, kind: ChangeKind, contender: Contender<'a>, effect: TaintEffect) {
        let Some(evaluation) = self
            .outcome(contender.rule)
            .map(|outcome| &outcome.evaluation)
        else {
            return;
        };
        let unmet = || evaluation.why();
        let gave_up = kind == ChangeKind::Removed && !evaluation.met;
        let change = TaintChange {
            kind,
            rule_name: contender.rule.name.to_string(),
            rule_uid: contender.rule.uid.to_string(),
            key: contender.spec.taint.key.clone(),
            effect,
            transition: evaluation.latest_transition().filter(|_| !gave_up),
            why: match kind {
                ChangeKind::Added => unmet(),
                ChangeKind::Removed if gave_up => {
                    format!("its readiness TTL has passed; {}", unmet())
                }
                ChangeKind::Removed => "the conditions are met".into(),
            },
            components_ready: kind == ChangeKind::Removed
                && !gave_up
                && contender.spec.waits_for_components(),
            gave_up,
        };
        self.writes.changes.push(change);
    }

    fn note_waiting(&mut self, rule: &Rule) {
        let waiting = self.outcome(rule).and_then(|outcome| {
            outcome
                .evaluation
                .unmet()
                .filter(|result| {
                    let source = &result.requirement.source;
                    matches!(source, Source::Class { .. } | Source::Component(_))
                })
                .find_map(|result| Waiting::of(&result.condition.as_ref()?.detail))
        });
        if self.plan.waiting.is_none() {
            self.plan.waiting = waiting;
        }
    }
}

impl<'a> Ruling<'a> {
    /// Whether the rule opens the node because it did not become ready in time.
    fn gives_up(&self) -> bool {
        let is_evaluated = self.evaluation.waits_for.is_none();
        self.governs && is_evaluated && self.verdict == Some(Verdict::Release)
    }

    /// The outcome to report.
    fn outcome(self, dispute: &Dispute<'_, 'a>) -> Outcome<'a> {
        let Contender { rule, spec, .. } = self.contender;
        let is_held =
            self.decision == Decision::Hold && !self.evaluation.met && !rule.is_suspended();
        let is_owner = |owner: &Ownership| *owner.rule_uid == *rule.uid;
        let origin = match dispute.owners {
            [] => Some(Origin::Adopted),
            owners if dispute.came_with_it && owners.iter().any(is_owner) => Some(Origin::Birth),
            _ => None,
        };
        Outcome {
            rule,
            standing: match dispute.governing {
                _ if spec.dry_run => Standing::DryRun(self.decision),
                Some(with) if !self.governs => Standing::Conflicted { with: with.rule },
                _ => Standing::Governs(self.decision),
            },
            evaluation: self.evaluation,
            tainted: dispute.tainted,
            origin: origin.filter(|_| self.governs && is_held),
            joining: self.patience.joining,
            unmet_since: self.patience.unmet_since,
            is_decided: self.patience.is_decided,
            rebooted: self.rebooted.map(|reboot| reboot.seen),
            bootstrap: self.completion,
            deadline: self.deadline,
            verdict: self.verdict,
        }
    }
}
