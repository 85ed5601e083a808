//! All that follows for one node.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::change::{ChangeKind, TaintChange};
use super::conditions::ConditionChanges;
use super::decision::{Decision, WaitReason};
use super::doubts::Doubts;
use super::few::Few;
use super::outcome::{Outcome, Standing};
use super::waiting::Waiting;
use crate::object::{NodeClaim, Taint};
use crate::repair::{Deadline, Postponed, Remedy, Verdict};
use crate::rule::Rule;
use crate::rule::ownership::{completion_keys, owner_key};

/// All that follows for one node: what to write, what to report, and when to look again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodePlan<'a> {
    /// What each rule that selects the node makes of it. A rule that is being deleted has no outcome.
    pub outcomes: Few<Outcome<'a>>,
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
    pub waiting: Option<Waiting<'a>>,
    /// When to evaluate again even if nothing happens.
    pub recheck: Option<Timestamp>,
    /// What has to be read again before that is done which the plan leaves out, because it could hurt.
    pub look: Doubts,
    /// Why nobody is judged though the node's time is up, if that is so. What has been told of its repair stays as it is.
    pub postponed: Option<Postponed>,
}

impl<'a> NodePlan<'a> {
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
        self.taints.is_some() || !self.annotations.is_empty()
    }

    /// Whether the taint of this rule is lifted.
    #[must_use]
    pub fn lifts_for(&self, rule: &Rule) -> bool {
        let is_its_taint = |change: &TaintChange| {
            change.kind == ChangeKind::Removed && change.rule_uid == *rule.uid
        };
        self.changes.iter().any(is_its_taint)
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
