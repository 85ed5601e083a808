//! One plan per node: the decisions of all rules that concern it, merged into the least that has to be written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::compile::{CompiledSpec, Rule};
use super::decision::{Decision, Held, decide};
use super::evaluate::{Evaluation, evaluate};
use super::ownership::{
    Completion, Ownership, completion_keys, completion_value, owner_key, owner_value,
};
use super::patience::{Memory, held_back, unmet_since};
use super::set::RuleSet;
use crate::api::{ConditionStatus, EnforcementMode, TaintEffect, TaintPolicy};
use crate::condition::{
    self, ClassFacts, CriticalComponentClass, Detail, Facts, Sightings, Source, Trust,
};
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod, Taint};
use crate::repair::{Deadline, Karpenter, NoTtl, ReadinessTtl, has_been_open, in_force};

/// What is the same for every node.
#[derive(Debug, Clone, Copy)]
pub struct ClusterState<'a> {
    /// The configured critical component classes.
    pub classes: &'a [CriticalComponentClass],
    /// The labelled `DaemonSet`s of each class, in the order of `classes`.
    pub daemon_sets: &'a [BTreeMap<ObjectKey, DaemonSet>],
    /// All rules.
    pub rules: &'a RuleSet,
    /// Whether synthesized conditions are published on nodes.
    pub publish_conditions: bool,
    /// Whether heartbeats can be seen at the moment. While they cannot, nobody's silence means anything.
    pub sees_heartbeats: bool,
}

/// What is known about one node.
#[derive(Debug, Clone, Copy)]
pub struct NodeState<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// The pods of each class that are bound to it, in the order of the classes.
    pub pods: &'a [Vec<Pod>],
    /// Indices of the active rules that select it ([`RuleSet::selecting`]).
    pub selecting: &'a [usize],
    /// What this process has seen of the node over time.
    pub sightings: &'a Sightings,
    /// Whether the node joined while this process was in charge of it: if it was never gated, it has run nothing yet.
    pub is_new: bool,
    /// What this process remembers of continuous rules on the node.
    pub memories: &'a [Memory],
    /// UIDs of the rules whose disruption guard lets the node be closed now.
    pub may_close: &'a [Arc<str>],
    /// What Karpenter has to say about the node.
    pub karpenter: Karpenter<'a>,
    /// Since when this process has been in charge of nodes.
    pub watching_since: Timestamp,
    /// UIDs of the rules that release the node now although their conditions are not met: its time is up.
    pub given_up_by: &'a [Arc<str>],
}

/// All that follows for one node: what to write, what to report, and when to look again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan<'a> {
    /// What each rule that selects the node makes of it. A rule that is being deleted has no outcome.
    pub outcomes: Vec<Outcome<'a>>,
    /// The node's new taints, where they change.
    pub taints: Option<Vec<Taint>>,
    /// Annotations to set (`Some`) or to remove (`None`).
    pub annotations: BTreeMap<String, Option<String>>,
    /// Annotations whose evaluated state the plan relies on: a completion that nobody may have written in between.
    pub relied_on: Vec<String>,
    /// The changes behind `taints`, for events and metrics.
    pub changes: Vec<TaintChange>,
    /// Synthesized conditions to publish or withdraw.
    pub conditions: ConditionChanges<'a>,
    /// What the critical components on the node lack, where a held taint waits for them.
    pub waiting: Option<Waiting>,
    /// When to evaluate again even if nothing happens.
    pub recheck: Option<Timestamp>,
}

impl NodePlan<'_> {
    /// Whether the Node object itself (taints or annotations) has to be written.
    #[must_use]
    pub fn writes_node(&self) -> bool {
        self.taints.is_some() || !self.annotations.is_empty()
    }

    /// Whether something of this rule, its taint or one of its annotations, has to be written.
    #[must_use]
    pub fn writes_for(&self, rule: &Rule) -> bool {
        let [by_uid, by_name] = completion_keys(rule);
        self.changes
            .iter()
            .any(|change| change.rule_uid == *rule.uid)
            || [
                by_uid,
                by_name,
                owner_key(&rule.uid),
                Deadline::key(&rule.uid),
            ]
            .iter()
            .any(|key| self.annotations.contains_key(key))
    }
}

/// What one rule makes of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What the rule may do here, and what it does.
    pub standing: Standing<'a>,
    /// The rule's conditions on the node.
    pub evaluation: Evaluation<'a>,
    /// Whether the node has the rule's taint, before the plan is carried out.
    pub tainted: bool,
    /// Whether the rule holds a taint that it did not add.
    pub adopts: bool,
    /// Whether the node has never been open under a continuous rule, so that closing it takes nothing away.
    pub joining: bool,
    /// Since when the conditions have been unmet, where the rule is continuous.
    pub unmet_since: Option<Timestamp>,
    /// When the node was seen to have rebooted, where the rule gates it again for that.
    pub rebooted: Option<Timestamp>,
    /// When the node's time is up, or why nobody can say, where the rule gates a node that has never been open and says
    /// what happens to it then.
    pub deadline: Option<Result<Deadline, NoTtl>>,
}

/// What a rule may do on a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing<'a> {
    /// The rule governs its taint here: its decision is carried out.
    Governs(Decision),
    /// The rule is a dry run: its decision is only counted.
    DryRun(Decision),
    /// An earlier rule governs the same taint here.
    Conflicted {
        /// The rule that governs.
        with: &'a Rule,
    },
}

/// A taint that is put on or lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintChange {
    /// Put on or lifted.
    pub kind: ChangeKind,
    /// Name of the rule in whose name this is done.
    pub rule_name: String,
    /// UID of that rule.
    pub rule_uid: String,
    /// Key of the taint.
    pub key: String,
    /// Effect of the taint.
    pub effect: TaintEffect,
    /// When the latest of the rule's conditions changed, by its reporter's clock.
    pub transition: Option<Timestamp>,
    /// Why, in words that stand alone.
    pub why: String,
    /// Whether the rule waited for critical components, which are ready now.
    pub components_ready: bool,
    /// Whether the node's time was up, and its conditions are not met.
    pub gave_up: bool,
}

/// What happens to a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is put on.
    Added,
    /// It is lifted.
    Removed,
}

/// What changes in a node's published conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConditionChanges<'a> {
    /// Conditions to write, because they are new or say something else now.
    pub set: Vec<NewCondition<'a>>,
    /// Types of conditions to take away, because nothing makes them any more.
    pub withdraw: Vec<&'a str>,
}

impl ConditionChanges<'_> {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.withdraw.is_empty()
    }

    /// Whether more changes than the message of what is published already.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        !self.withdraw.is_empty()
            || self
                .set
                .iter()
                .any(|condition| condition.status_changes || condition.reason_changes)
    }
}

/// A condition to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition<'a> {
    /// The condition type.
    pub kind: &'a str,
    /// The status.
    pub status: ConditionStatus,
    /// The reason in one word.
    pub reason: &'a str,
    /// The message.
    pub message: String,
    /// Whether the status differs from what is published, or nothing is.
    pub status_changes: bool,
    /// Whether the reason differs from what is published, or nothing is.
    pub reason_changes: bool,
    /// When the status that is published changed last, to be kept where it stays.
    pub transition: Option<Timestamp>,
}

/// Which of Gardener's questions about critical components is not answered with yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The event reason that Gardener's controller has for it.
    pub reason: &'static str,
    /// What is missing.
    pub message: String,
}

impl Waiting {
    fn of(detail: &Detail<'_>) -> Option<Self> {
        let reason = match detail {
            Detail::DaemonSetPodMissing { .. } => "UnscheduledNodeCriticalDaemonSets",
            Detail::PodNotReady { .. } | Detail::PodOlderThanNode { .. } => {
                "UnreadyNodeCriticalPods"
            }
            Detail::CsiDriverMissing { .. } | Detail::CsiDriverWithoutCount { .. } => {
                "UnreadyRequiredCSIDrivers"
            }
            _ => return None,
        };
        Some(Self {
            reason,
            message: detail.to_string(),
        })
    }
}

/// A rule with a spec that can be evaluated and a selector that matches.
#[derive(Clone, Copy)]
struct Claim<'a> {
    rule: &'a Rule,
    spec: &'a CompiledSpec,
}

/// Decides for one node at one time. Nothing follows for a node that is being deleted.
#[must_use]
pub fn plan<'a>(cluster: ClusterState<'a>, state: NodeState<'a>, now: Timestamp) -> NodePlan<'a> {
    if state.node.deleting {
        return NodePlan::default();
    }
    let claims: Vec<Claim> = state
        .selecting
        .iter()
        .filter_map(|index| {
            let rule = &*cluster.rules.rules()[*index];
            rule.active().map(|spec| Claim { rule, spec })
        })
        .collect();
    let mut draft = Draft {
        cluster,
        state,
        node: state.node,
        plan: NodePlan::default(),
    };
    let owned: Vec<Ownership> = Ownership::all(state.node).collect();
    let staying = draft.staying(&owned);
    let gates: Vec<Vec<&Taint>> = (0..cluster.classes.len())
        .map(|class| {
            claims
                .iter()
                .filter(|claim| claim.rule.live().is_some() && claim.spec.waits_for_class(class))
                .flat_map(|claim| {
                    // The kubelet may have registered the taint with another value than the rule's.
                    let registered = state.node.taint(&claim.spec.taint.key, claim.spec.effect);
                    std::iter::once(&claim.spec.taint).chain(registered)
                })
                .collect()
        })
        .collect();
    let classes: Vec<ClassFacts> = cluster
        .classes
        .iter()
        .enumerate()
        .map(|(index, class)| ClassFacts {
            class,
            daemon_sets: &cluster.daemon_sets[index],
            pods: state.pods.get(index).map_or(&[], Vec::as_slice),
            staying: &staying,
            gates: &gates[index],
        })
        .collect();
    let facts = Facts {
        node: state.node,
        csi_node: state.csi_node,
        classes: &classes,
        sightings: state.sightings,
        trust: Trust::default(),
        now,
    };

    let claimed = claims
        .iter()
        .map(|claim| (claim.spec.taint.key.as_str(), claim.spec.effect));
    let with_owner = owned
        .iter()
        .map(|owner| (owner.taint_key.as_str(), owner.taint_effect));
    for (key, effect) in claimed.chain(with_owner).collect::<BTreeSet<_>>() {
        let claims: Vec<Claim> = claims
            .iter()
            .copied()
            .filter(|claim| claim.spec.taint.is(key, effect))
            .collect();
        let owners: Vec<&Ownership> = owned
            .iter()
            .filter(|owner| owner.is_of(key, effect))
            .collect();
        draft.settle(key, effect, &claims, &owners, &facts);
    }
    draft.forget_deleted_rules();
    draft.forget_deadlines();
    draft.publish();
    draft.plan
}

/// How a continuous rule that is not met on the node bears with it.
#[derive(Debug, Clone, Copy, Default)]
struct Patience {
    joining: bool,
    unmet_since: Option<Timestamp>,
    held: Option<Held>,
}

/// A plan in the making.
struct Draft<'a> {
    cluster: ClusterState<'a>,
    state: NodeState<'a>,
    node: &'a Node,
    plan: NodePlan<'a>,
}

impl<'a> Draft<'a> {
    /// The node's taints that will not go by themselves. Those that a rule left behind are about to be lifted.
    fn staying(&self, owned: &[Ownership]) -> Vec<&'a Taint> {
        let is_left_behind = |taint: &Taint| {
            owned.iter().any(|owner| {
                taint.is(&owner.taint_key, owner.taint_effect) && self.is_orphan(owner)
            })
        };
        self.node
            .taints
            .iter()
            .filter(|taint| !self.cluster.rules.passing().contains(taint) && !is_left_behind(taint))
            .collect()
    }

    /// Settles one taint: which of the claims governs it, what that one decides, and whose the taint then is.
    fn settle(
        &mut self,
        key: &str,
        effect: TaintEffect,
        claims: &[Claim<'a>],
        owners: &[&Ownership],
        facts: &Facts<'_, 'a>,
    ) {
        let tainted = self.node.taint(key, effect).is_some();
        let governing = claims
            .iter()
            .find(|claim| claim.rule.live().is_some())
            .copied();
        let mut decided = None;
        for claim in claims.iter().filter(|claim| !claim.rule.deleting) {
            let Claim { rule, spec } = *claim;
            let completion = Completion::of(self.node, rule, spec);
            let rebooted = self
                .state
                .sightings
                .rebooted_at(completion.last_boot())
                .filter(|_| spec.regate_on_reboot && !completion.counts());
            let trust = Trust {
                heartbeat_timeout: spec
                    .heartbeat_timeout
                    .filter(|_| self.cluster.sees_heartbeats),
                rebooted,
            };
            let evaluation = evaluate(spec, &Facts { trust, ..*facts });
            let patience = self.patience(*claim, &evaluation, tainted, owners, facts.now);
            let decision = decide(
                spec.mode,
                spec.taint_policy,
                evaluation.met,
                tainted,
                completion.counts(),
                patience.held,
            );
            let decision = if self.state.given_up_by.contains(&rule.uid) {
                decision.given_up()
            } else {
                decision
            };
            let governs = governing.is_some_and(|governing| governing.rule.uid == rule.uid);
            let deadline = self.deadline(*claim, decision, facts.now);
            let standing = match governing {
                _ if spec.dry_run => Standing::DryRun(decision),
                Some(with) if !governs => Standing::Conflicted { with: with.rule },
                _ => Standing::Governs(decision),
            };
            self.plan.recheck = earliest(self.plan.recheck, evaluation.recheck());
            if let Decision::Wait(Held::Grace { until }) = decision {
                self.plan.recheck = earliest(self.plan.recheck, Some(until));
            }
            if let Some(Ok(Deadline::At(at))) = deadline
                && at > facts.now
            {
                self.plan.recheck = earliest(self.plan.recheck, Some(at));
            }
            if governs {
                if let Some(Ok(deadline)) = &deadline {
                    self.set_annotation(Deadline::key(&rule.uid), deadline.value());
                } else if evaluation.met && Deadline::rules(self.node).any(|uid| *uid == *rule.uid)
                {
                    // Not before: a node that was given up is past its time for as long as it is not ready.
                    self.remove_annotation(Deadline::key(&rule.uid));
                }
                decided = Some((*claim, decision, patience.joining));
                if completion == Completion::Unstamped {
                    let [key, _] = completion_keys(rule);
                    self.set_annotation(key, completion_value(self.node, rule, spec));
                }
            }
            self.plan.outcomes.push(Outcome {
                rule,
                standing,
                evaluation,
                tainted,
                adopts: governs && decision == Decision::Hold && owners.is_empty(),
                joining: patience.joining,
                unmet_since: patience.unmet_since,
                rebooted,
                deadline,
            });
        }
        match decided {
            Some((claim, decision, joining)) => self.carry_out(claim, decision, joining, owners),
            None => self.clean_up(key, effect, claims, owners),
        }
    }

    /// Whether and why a continuous rule has to wait before it closes the node.
    fn patience(
        &self,
        Claim { rule, spec }: Claim<'a>,
        evaluation: &Evaluation<'_>,
        tainted: bool,
        owners: &[&Ownership],
        now: Timestamp,
    ) -> Patience {
        if spec.mode == EnforcementMode::BootstrapOnly {
            return Patience::default();
        }
        let memory = self
            .state
            .memories
            .iter()
            .find(|memory| memory.rule == rule.uid);
        let was_met = evaluation.met || memory.is_some_and(|memory| memory.was_met);
        let joining = match owners {
            [] => tainted || (self.state.is_new && !was_met),
            owners => owners.iter().any(|owner| owner.joining),
        };
        let unmet_since = unmet_since(spec, evaluation, memory, now);
        let may_close = self.state.may_close.contains(&rule.uid);
        Patience {
            joining,
            unmet_since,
            held: unmet_since
                .filter(|_| !joining)
                .and_then(|since| held_back(spec, since, may_close, now)),
        }
    }

    /// When the time of a node is up that the rule gates and has never opened: what is on record, or what is to be.
    fn deadline(
        &self,
        Claim { rule, spec }: Claim<'a>,
        decision: Decision,
        now: Timestamp,
    ) -> Option<Result<Deadline, NoTtl>> {
        let repair = spec.repair.as_ref().filter(|_| {
            spec.mode == EnforcementMode::BootstrapOnly
                && decision.holds()
                && !has_been_open(self.node, rule)
        })?;
        if let Some(recorded) = Deadline::recorded(self.node, &rule.uid) {
            return Some(Ok(recorded));
        }
        let joined = self.node.created.max(rule.created);
        let ttl = in_force(repair, self.node, self.state.karpenter);
        Some(ttl.map(|ttl| match ttl {
            // A dry run leaves nothing on record, so that it counts from the same moment each time.
            ReadinessTtl::For(ttl) if spec.dry_run => Deadline::after(joined.unwrap_or(now), ttl),
            ttl => Deadline::first(joined, self.state.watching_since, now, ttl),
        }))
    }

    /// Drops the deadlines that mean nothing any more: their rule is gone, or is about other nodes now, or repairs
    /// none, or another one governs. A rule that may not act yet, or is a dry run, keeps them.
    fn forget_deadlines(&mut self) {
        let rules = self.cluster.rules.rules();
        let is_kept = |uid: &str| {
            let Some(index) = rules.iter().position(|rule| *rule.uid == *uid) else {
                return false;
            };
            let rule = &rules[index];
            let may_act = |spec: &CompiledSpec| {
                let mut outcomes = self.plan.outcomes.iter();
                let is_governed_by_another = outcomes.any(|outcome| {
                    outcome.rule.uid == rule.uid
                        && matches!(outcome.standing, Standing::Conflicted { .. })
                });
                spec.repair.is_some()
                    && self.state.selecting.contains(&index)
                    && !is_governed_by_another
            };
            !rule.deleting && rule.active().is_none_or(may_act)
        };
        let meaningless: Vec<String> = Deadline::rules(self.node)
            .filter(|uid| !is_kept(uid))
            .map(Deadline::key)
            .collect();
        for key in meaningless {
            self.remove_annotation(key);
        }
    }

    /// Carries out the decision of the rule that governs the taint, which then is the only one to own it.
    fn carry_out(
        &mut self,
        claim: Claim<'a>,
        decision: Decision,
        joining: bool,
        owners: &[&Ownership],
    ) {
        let Claim { rule, spec } = claim;
        if decision.completes_bootstrap() {
            let [key, _] = completion_keys(rule);
            self.set_annotation(key, completion_value(self.node, rule, spec));
        }
        match decision {
            Decision::Gate => {
                if spec.mode == EnforcementMode::BootstrapOnly {
                    self.plan.relied_on.extend(completion_keys(rule));
                }
                self.taints().push(spec.taint.clone());
                self.record(ChangeKind::Added, claim);
            }
            Decision::Release { .. } | Decision::GiveUp => {
                self.taints()
                    .retain(|taint| !taint.is(&spec.taint.key, spec.effect));
                self.record(ChangeKind::Removed, claim);
            }
            Decision::Hold | Decision::Wait(_) | Decision::Open { .. } => {}
        }
        let owns = decision == Decision::Gate || (decision == Decision::Hold && !owners.is_empty());
        for owner in owners {
            if !owns || *owner.rule_uid != *rule.uid {
                self.remove_annotation(owner_key(&owner.rule_uid));
            }
        }
        if owns {
            self.set_annotation(owner_key(&rule.uid), owner_value(rule, spec, joining));
        }
        if decision.holds() {
            self.note_waiting(rule);
        }
    }

    /// Lifts a taint that no live rule governs here, if it was put there for a rule that is going, gone, or about
    /// other nodes now.
    fn clean_up(
        &mut self,
        key: &str,
        effect: TaintEffect,
        claims: &[Claim<'a>],
        owners: &[&Ownership],
    ) {
        if self.has_heir(key, effect) {
            return;
        }
        let deleted_governor = claims
            .iter()
            .find(|claim| !claim.spec.dry_run)
            .filter(|claim| {
                claim.rule.deleting && claim.spec.taint_policy == TaintPolicy::AddAndRemove
            });
        let orphan = owners.iter().find(|owner| self.is_orphan(owner));
        let cause = deleted_governor
            .map(|claim| {
                (
                    claim.rule.name.to_string(),
                    claim.rule.uid.to_string(),
                    "the rule is being deleted",
                )
            })
            .or_else(|| {
                orphan.map(|owner| {
                    let why =
                        "the rule that added it does not select this node any more, or is gone";
                    (owner.rule_name.clone(), owner.rule_uid.clone(), why)
                })
            });
        let Some((rule_name, rule_uid, why)) = cause else {
            return;
        };
        for owner in owners {
            self.remove_annotation(owner_key(&owner.rule_uid));
        }
        if self.node.taint(key, effect).is_some() {
            self.taints().retain(|taint| !taint.is(key, effect));
            self.plan.changes.push(TaintChange {
                kind: ChangeKind::Removed,
                rule_name,
                rule_uid,
                key: key.into(),
                effect,
                transition: None,
                why: why.into(),
                components_ready: false,
                gave_up: false,
            });
        }
    }

    /// Whether a rule that will govern the taint here only waits for its finalizer. The node stays as it is until
    /// then, so that it does not open while one rule takes over from another.
    fn has_heir(&self, key: &str, effect: TaintEffect) -> bool {
        let is_heir = |rule: &Rule| {
            !rule.deleting
                && !rule.finalizer
                && rule.spec.as_ref().is_ok_and(|spec| {
                    !spec.dry_run
                        && spec.taint.is(key, effect)
                        && spec.selector.matches(&self.node.labels)
                })
        };
        let rules = self.cluster.rules.rules();
        rules.iter().any(|rule| is_heir(rule))
    }

    /// Whether the rule that added the taint is gone, going, or about other nodes now.
    ///
    /// A rule that is there but may not act yet (its finalizer is missing, or its spec cannot be used) keeps what
    /// it owns.
    fn is_orphan(&self, owner: &Ownership) -> bool {
        let rules = self.cluster.rules.rules();
        match rules.iter().position(|rule| *rule.uid == *owner.rule_uid) {
            None => true,
            Some(index) if rules[index].active().is_some() => {
                rules[index].deleting || !self.state.selecting.contains(&index)
            }
            Some(index) => rules[index].deleting,
        }
    }

    /// Drops every annotation of deleted rules, whatever became of their taints: nobody would know them any more,
    /// and a rule created under the same name starts anew.
    fn forget_deleted_rules(&mut self) {
        for rule in self
            .cluster
            .rules
            .rules()
            .iter()
            .filter(|rule| rule.deleting)
        {
            for key in completion_keys(rule) {
                self.remove_annotation(key);
            }
            let is_inherited = |spec: &CompiledSpec| self.has_heir(&spec.taint.key, spec.effect);
            if !rule.spec.as_ref().is_ok_and(is_inherited) {
                self.remove_annotation(owner_key(&rule.uid));
            }
        }
    }

    /// Finds out which synthesized conditions the node should carry, and how that differs from what it does.
    fn publish(&mut self) {
        let mut wanted = BTreeSet::new();
        if self.cluster.publish_conditions {
            for outcome in &self.plan.outcomes {
                for result in &outcome.evaluation.results {
                    let Some(condition) = result.condition.as_ref() else {
                        continue;
                    };
                    let kind = &*result.requirement.kind;
                    if !result.requirement.source.is_synthesized() || !wanted.insert(kind) {
                        continue;
                    }
                    let (reason, message) =
                        (condition.detail.reason(), condition.detail.to_string());
                    let published = self.node.condition(kind);
                    let status_changes =
                        published.is_none_or(|published| published.status != condition.status);
                    let reason_changes =
                        published.is_none_or(|published| published.reason != reason);
                    let message_changes =
                        published.is_none_or(|published| published.message != message);
                    if status_changes || reason_changes || message_changes {
                        self.plan.conditions.set.push(NewCondition {
                            kind,
                            status: condition.status,
                            reason,
                            message,
                            status_changes,
                            reason_changes,
                            transition: published.and_then(|published| published.transition),
                        });
                    }
                }
            }
        }
        self.plan.conditions.withdraw = self
            .node
            .conditions
            .iter()
            .filter(|published| {
                condition::is_ours(&published.kind, &published.reason)
                    && !wanted.contains(published.kind.as_str())
            })
            .map(|published| published.kind.as_str())
            .collect();
    }

    fn taints(&mut self) -> &mut Vec<Taint> {
        self.plan
            .taints
            .get_or_insert_with(|| self.node.taints.clone())
    }

    fn set_annotation(&mut self, key: String, value: String) {
        if self.node.annotation(&key) != Some(&value) {
            self.plan.annotations.insert(key, Some(value));
        }
    }

    fn remove_annotation(&mut self, key: String) {
        if self.node.annotation(&key).is_some() {
            self.plan.annotations.insert(key, None);
        }
    }

    /// The outcome of the rule, which has one by the time its decision is carried out.
    fn outcome(&self, rule: &Rule) -> Option<&Outcome<'a>> {
        self.plan
            .outcomes
            .iter()
            .rev()
            .find(|outcome| outcome.rule.uid == rule.uid)
    }

    fn record(&mut self, kind: ChangeKind, claim: Claim<'a>) {
        let Some(evaluation) = self.outcome(claim.rule).map(|outcome| &outcome.evaluation) else {
            return;
        };
        let waits_for_class = |spec: &CompiledSpec| {
            (0..self.cluster.classes.len()).any(|class| spec.waits_for_class(class))
        };
        let unmet = || {
            let whys = evaluation.unmet().map(super::ConditionResult::why);
            whys.collect::<Vec<_>>().join("; ")
        };
        let gave_up = kind == ChangeKind::Removed && !evaluation.met;
        let change = TaintChange {
            kind,
            rule_name: claim.rule.name.to_string(),
            rule_uid: claim.rule.uid.to_string(),
            key: claim.spec.taint.key.clone(),
            effect: claim.spec.effect,
            transition: evaluation.latest_transition().filter(|_| !gave_up),
            why: match kind {
                ChangeKind::Added => unmet(),
                ChangeKind::Removed if gave_up => format!("its time is up; {}", unmet()),
                ChangeKind::Removed => "the conditions are met".into(),
            },
            components_ready: kind == ChangeKind::Removed
                && !gave_up
                && waits_for_class(claim.spec),
            gave_up,
        };
        self.plan.changes.push(change);
    }

    fn note_waiting(&mut self, rule: &Rule) {
        let waiting = self.outcome(rule).and_then(|outcome| {
            outcome
                .evaluation
                .unmet()
                .filter(|result| matches!(result.requirement.source, Source::Class { .. }))
                .find_map(|result| Waiting::of(&result.condition.as_ref()?.detail))
        });
        if self.plan.waiting.is_none() {
            self.plan.waiting = waiting;
        }
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}
