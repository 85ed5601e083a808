//! All that follows for one node.

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
use crate::repair::{Deadline, Postponed, Remedy, Verdict};
use crate::rule::Rule;
use crate::rule::ownership::{completion_keys, owner_key};

/// All that follows for one node: what to write, what to report, and when to look again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan<'a> {
    /// What each rule that selects the node makes of it. A rule that is being deleted has no outcome.
    pub outcomes: Vec<Outcome<'a>>,
    /// What there is to write, taint by taint: none of them is empty, and no annotation is in two of them.
    pub taints: Vec<TaintPlan>,
    /// Synthesized conditions to publish or withdraw.
    pub conditions: ConditionChanges<'a>,
    /// What the critical components on the node lack, where a held taint waits for them.
    pub waiting: Option<Waiting<'a>>,
    /// When to evaluate again even if nothing happens.
    pub recheck: Option<Timestamp>,
    /// What has to be read again before that is done which the plan leaves out, because it could hurt.
    pub look: StaleKinds,
    /// UIDs of the rules for whose sake that is read.
    pub looking: Vec<Arc<str>>,
    /// Why nobody is judged though the node's time is up, if that is so. What has been told of its repair stays as it is.
    pub postponed: Option<Postponed>,
}

impl<'a> NodePlan<'a> {
    /// Has these kinds read again, too.
    pub(super) fn look_at(&mut self, kinds: StaleKinds) {
        self.look = std::mem::take(&mut self.look).and(kinds);
    }

    /// The taints that are put on or lifted.
    pub fn changes(&self) -> impl Iterator<Item = &TaintChange> {
        self.taints.iter().flat_map(|taint| &taint.changes)
    }

    /// Whether a rule would close the node if its disruption guard let it.
    #[must_use]
    pub fn waits_for_a_guard(&self) -> bool {
        let waits = |outcome: &Outcome<'_>| {
            let waiting = Decision::Wait(WaitReason::Disruption);
            matches!(outcome.standing, Standing::Governs(decision) if decision == waiting)
        };
        self.outcomes.iter().any(waits)
    }

    /// The claim to delete, so that a new node takes the place of this one, and what the rule found that has it deleted.
    /// One claim, one repair: of several rules the first does it.
    #[must_use]
    pub fn deletion(&self) -> Option<(&'a NodeClaim, &Outcome<'a>)> {
        self.outcomes
            .iter()
            .find_map(|outcome| match (outcome.verdict, outcome.is_dry_run()) {
                (Some(Verdict::Repair(Remedy::DeleteNodeClaim(claim))), false) => {
                    Some((claim, outcome))
                }
                _ => None,
            })
    }

    /// Whether the Node object itself (taints or annotations) has to be written.
    #[must_use]
    pub fn writes_node(&self) -> bool {
        !self.taints.is_empty()
    }

    /// Whether the taint of this rule is lifted.
    #[must_use]
    pub fn lifts_for(&self, rule: &Rule) -> bool {
        let is_its_taint = |change: &TaintChange| {
            change.kind == ChangeKind::Removed && change.rule_uid == *rule.uid
        };
        self.changes().any(is_its_taint)
    }

    /// Whether something has to be read again before all is done that this rule wants.
    #[must_use]
    pub fn is_looking_for(&self, rule: &Rule) -> bool {
        self.looking.contains(&rule.uid)
    }

    /// Whether something of this rule, its taint or one of its annotations, has to be written.
    #[must_use]
    pub fn writes_for(&self, rule: &Rule) -> bool {
        let [by_uid, by_name] = completion_keys(rule);
        self.changes().any(|change| change.rule_uid == *rule.uid)
            || [
                by_uid,
                by_name,
                owner_key(&rule.uid),
                Deadline::key(&rule.uid),
            ]
            .iter()
            .any(|key| {
                self.taints
                    .iter()
                    .any(|it| it.annotations.contains_key(key))
            })
    }
}
