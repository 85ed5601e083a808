//! The plan for one node.

use std::sync::Arc;

use jiff::Timestamp;

use super::change::{ChangeKind, TaintChange};
use super::conditions::ConditionChanges;
use super::decision::{Decision, WaitReason};
use super::outcome::{Outcome, Standing};
use super::stale_kinds::StaleKinds;
use super::taint_plan::TaintPlan;
use super::waiting::Waiting;
use crate::object::NodeClaim;
use crate::repair::{Deadline, Verdict};
use crate::rule::Rule;
use crate::rule::ownership::owner_key;

/// The plan for one node: what to write and report, and when to evaluate it again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan<'a> {
    /// The outcome of each rule that selects the node. A rule that is being deleted has none.
    pub outcomes: Vec<Outcome<'a>>,
    /// The writes, by taint. None is empty, and no annotation is in two of them.
    pub taints: Vec<TaintPlan>,
    /// Synthesized conditions to publish or remove.
    pub conditions: ConditionChanges<'a>,
    /// What the critical components on the node lack, if a held taint waits for them.
    pub waiting: Option<Waiting<'a>>,
    /// When to evaluate again even if nothing happens.
    pub recheck: Option<Timestamp>,
    /// The kinds to read live before a change that could hurt, which this plan therefore omits.
    pub live_read: StaleKinds,
    /// UIDs of the rules that need the live read.
    pub looking: Vec<Arc<str>>,
    /// Whether repair is postponed although the node is late, because evidence is or was stale. Earlier announcements stand.
    pub repair_is_postponed: bool,
}

impl<'a> NodePlan<'a> {
    /// Adds kinds to read live.
    pub(super) fn read_live(&mut self, kinds: StaleKinds) {
        self.live_read = std::mem::take(&mut self.live_read).and(kinds);
    }

    /// All taint changes.
    pub fn changes(&self) -> impl Iterator<Item = &TaintChange> {
        self.taints.iter().flat_map(|taint| &taint.changes)
    }

    /// Whether a rule would close the node if its disruption guard permitted it.
    pub fn waits_for_a_guard(&self) -> bool {
        let waits = |outcome: &Outcome<'_>| {
            let waiting = Decision::Wait(WaitReason::Disruption);
            matches!(outcome.standing, Standing::Governs(decision) if decision == waiting)
        };
        self.outcomes.iter().any(waits)
    }

    /// The claim to delete, so that a new node replaces this one, and the outcome that demands it. A claim is repaired once:
    /// the first of several rules does it.
    pub fn deletion(&self) -> Option<(&'a NodeClaim, &Outcome<'a>)> {
        self.outcomes
            .iter()
            .find_map(|outcome| match outcome.verdict {
                Some(Verdict::DeleteNodeClaim(claim)) if !outcome.is_dry_run() => {
                    Some((claim, outcome))
                }
                _ => None,
            })
    }

    /// Whether the Node object itself (taints or annotations) has to be written.
    pub fn writes_node(&self) -> bool {
        !self.taints.is_empty()
    }

    /// Whether this rule's taint is removed.
    pub fn lifts_for(&self, rule: &Rule) -> bool {
        let is_its_taint = |change: &TaintChange| {
            change.kind == ChangeKind::Removed && change.rule_uid == *rule.uid
        };
        self.changes().any(is_its_taint)
    }

    /// Whether this rule needs a live read before it may act.
    pub fn is_looking_for(&self, rule: &Rule) -> bool {
        self.looking.contains(&rule.uid)
    }

    /// Whether this rule's taint or one of its annotations must be written.
    pub fn writes_for(&self, rule: &Rule) -> bool {
        let uid = &rule.uid;
        let others = [owner_key(uid), Deadline::key(uid)];
        let mut keys = rule.completion_keys.iter().chain(&others);
        let is_written = |key| {
            self.taints
                .iter()
                .any(|it| it.annotations.contains_key(key))
        };
        self.changes().any(|change| change.rule_uid == **uid) || keys.any(is_written)
    }
}
