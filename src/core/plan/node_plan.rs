//! The plan for one node: what to write and report, and when to evaluate it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::decision::{Decision, WaitReason};
use super::outcome::Outcome;
use crate::api::{ConditionStatus, words};
use crate::condition::{Detail, Source, Watch};
use crate::object::{Node, NodeClaim, ObjectKey, Taint};
use crate::repair::{Deadline, Verdict};
use crate::rule::{Rule, ownership::owner_key};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan<'a> {
    /// The outcome of each rule that selects the node. A rule that is being deleted has none.
    pub outcomes: Vec<Outcome<'a>>,
    /// The writes of the Node itself, by taint. None is empty, and no annotation is in two of them.
    pub taints: Vec<TaintPlan>,
    pub conditions: ConditionChanges<'a>,
    /// When to evaluate again even if nothing happens.
    pub recheck: Option<Timestamp>,
    /// The watches that must be current before a change that could hurt, which this plan therefore omits.
    pub stale: BTreeSet<Watch>,
    /// UIDs of the rules that wait for them.
    pub awaiting: Vec<Arc<str>>,
    /// Whether repair is postponed although the node is late, because evidence is or was stale. Earlier announcements stand.
    pub repair_is_postponed: bool,
}

impl<'a> NodePlan<'a> {
    pub fn changes(&self) -> impl Iterator<Item = &TaintChange> {
        self.taints.iter().flat_map(|taint| &taint.changes)
    }

    pub fn outcome_of(&self, rule: &str) -> Option<&Outcome<'a>> {
        self.outcomes.iter().find(|it| *it.rule.uid == *rule)
    }

    /// Whether a rule would gate the node if its disruption guard permitted it.
    pub fn waits_for_a_guard(&self) -> bool {
        let waiting = Some(Decision::Wait(WaitReason::Disruption));
        self.outcomes.iter().any(|it| it.governs() == waiting)
    }

    /// What the critical components on the node lack, as far as held taints wait for them.
    pub fn missing_parts(&self) -> impl Iterator<Item = &Detail<'a>> {
        let holds = |outcome: &&Outcome<'a>| {
            !outcome.rule.is_suspended() && outcome.governs().is_some_and(Decision::holds)
        };
        let unmet = self.outcomes.iter().filter(holds).flat_map(Outcome::unmet);
        unmet.filter_map(|finding| match finding.requirement.source {
            Source::Class { .. } | Source::Component(_) | Source::DaemonSetsScheduled => {
                Some(&finding.condition.as_ref()?.detail)
            }
            _ => None,
        })
    }

    /// The claim to delete, so that a new node replaces this one, and the first outcome that demands it.
    pub fn deletion(&self) -> Option<(&'a NodeClaim, &Outcome<'a>)> {
        let mut outcomes = self.outcomes.iter();
        outcomes.find_map(|it| match it.verdict {
            Some(Verdict::DeleteNodeClaim(claim)) if !it.is_dry_run() => Some((claim, it)),
            _ => None,
        })
    }

    pub fn releases_for(&self, rule: &Rule) -> bool {
        let is_its_taint = |change: &TaintChange| {
            change.kind == ChangeKind::Removed && change.rule_uid == *rule.uid
        };
        self.changes().any(is_its_taint)
    }

    /// Whether this rule waits for what it depends on to be current before it may act.
    pub fn awaits_evidence(&self, rule: &Rule) -> bool {
        self.awaiting.contains(&rule.uid)
    }

    pub fn writes_for(&self, rule: &Rule) -> impl Iterator<Item = &TaintPlan> {
        let (uid, others) = (&*rule.uid, [owner_key(&rule.uid), Deadline::key(&rule.uid)]);
        self.taints.iter().filter(move |it| {
            let mut keys = rule.completion_keys.iter().chain(&others);
            let mut changes = it.changes.iter();
            changes.any(|change| change.rule_uid == uid)
                || keys.any(|key| it.annotations.contains_key(key))
        })
    }
}

/// The writes for one taint and its annotations, which are never written separately.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaintPlan {
    /// The taint as `key:effect`; `None` for annotations that belong to no taint, and for several taints at once.
    pub taint: Option<String>,
    /// Annotations to set, or to remove if the value is `None`.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Annotations whose present values the decision depends on: the write must fail if they differ.
    pub relied_on: Vec<String>,
    pub changes: Vec<TaintChange>,
    /// UIDs of the rules whose bootstrap it completes.
    pub completes: Vec<Arc<str>>,
}

impl TaintPlan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.annotations.is_empty()
    }

    /// The node's taints once it is carried out; `None` if they do not change.
    pub fn taints(&self, node: &Node) -> Option<Vec<Taint>> {
        if self.changes.is_empty() {
            return None;
        }
        let of_kind = |kind| {
            let changes = self.changes.iter().filter(move |it| it.kind == kind);
            changes.map(|change| &change.taint)
        };
        let stays = |taint: &&Taint| of_kind(ChangeKind::Removed).all(|it| it != *taint);
        let kept = node.taints.iter().filter(stays);
        Some(kept.chain(of_kind(ChangeKind::Added)).cloned().collect())
    }

    pub fn merged(plans: Vec<Self>) -> Self {
        plans.into_iter().reduce(Self::and).unwrap_or_default()
    }

    fn and(mut self, other: Self) -> Self {
        self.taint = None;
        self.annotations.extend(other.annotations);
        self.relied_on.extend(other.relied_on);
        self.changes.extend(other.changes);
        self.completes.extend(other.completes);
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintChange {
    pub kind: ChangeKind,
    pub rule_name: String,
    pub rule_uid: String,
    /// As it is on the node, or will be.
    pub taint: Taint,
    /// When the latest of the rule's conditions changed, by its reporter's clock.
    pub transition: Option<Timestamp>,
    /// Why, as a complete sentence.
    pub why: String,
    /// The `DaemonSet` for lack of whose Ready pod the taint is added.
    pub missing: Option<ObjectKey>,
    /// Whether the rule waited for critical components, which are now ready.
    pub components_ready: bool,
    /// Whether the node was not ready in time, so that the taint is removed with unmet conditions.
    pub gave_up: bool,
}

words! {
    pub enum ChangeKind {
        Added = "add",
        Removed = "remove",
    }
}

/// What changes among the conditions that the controller publishes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConditionChanges<'a> {
    /// Conditions to write, because they are new or different.
    pub set: Vec<NewCondition<'a>>,
    /// Types of conditions to remove, because nothing provides them any more.
    pub withdraw: Vec<&'a str>,
}

impl ConditionChanges<'_> {
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.withdraw.is_empty()
    }

    pub fn urgency(&self) -> Urgency {
        let changes = self.set.iter().map(|condition| condition.urgency);
        let withdrawn = (!self.withdraw.is_empty()).then_some(Urgency::Status);
        changes.chain(withdrawn).max().unwrap_or(Urgency::Detail)
    }
}

/// How soon to write a change of a published condition, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Only reason or message change.
    Detail,
    /// It was absent or `True`: what a joining node lacks changes constantly, and a lost component is often back within a moment.
    Unsettled,
    /// Any other change of the status, or a removal.
    Status,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition<'a> {
    pub kind: &'a str,
    pub status: ConditionStatus,
    pub reason: &'a str,
    pub message: String,
    /// How it differs from the published condition.
    pub urgency: Urgency,
}
