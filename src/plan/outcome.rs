//! The result of one rule on one node.

use jiff::Timestamp;

use super::decision::Decision;
use super::evaluate::Evaluation;
use crate::api::RepairAction;
use crate::repair::{Deadline, NoTtl, Verdict};
use crate::rule::Rule;
use crate::rule::ownership::BootstrapRecord;

/// The result of one rule on one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What the rule may do here, and what it decides.
    pub standing: Standing<'a>,
    /// The rule's conditions on the node.
    pub evaluation: Evaluation<'a>,
    /// Whether the node has the rule's taint, before the plan is carried out.
    pub tainted: bool,
    /// How the rule came to own the taint, if that may have to be announced.
    pub origin: Option<Origin>,
    /// Whether the node has never been open under a continuous rule, so that closing it disrupts nothing.
    pub joining: bool,
    /// Since when the conditions have been unmet, for a continuous rule.
    pub unmet_since: Option<Timestamp>,
    /// Whether a continuous rule has evaluated its conditions on the node: not while it has only waited for another rule.
    pub is_decided: bool,
    /// When this process noticed a reboot for which the rule gates the node again.
    pub rebooted: Option<Timestamp>,
    /// The record of the node's bootstrap under the rule.
    pub(crate) bootstrap: BootstrapRecord<'a>,
    /// The node's readiness deadline, or why it is unknown. Set if the rule gates a node that has never been open and has a
    /// `repair`.
    pub deadline: Option<Result<Deadline, NoTtl>>,
    /// What to do with a late node under a governing rule, or what a dry run would do; `None` while repair is postponed.
    pub verdict: Option<Verdict<'a>>,
}

/// How a rule came to own a taint that the controller did not add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It has no recorded owner: the rule adopts it.
    Adopted,
    /// The API server added it for the rule as the node was created, and the node is seen for the first time.
    Birth,
}

impl Outcome<'_> {
    /// Whether the rule adopts a taint that it did not add.
    pub fn adopts(&self) -> bool {
        self.origin == Some(Origin::Adopted)
    }

    /// Whether the rule is a dry run, which changes nothing.
    pub fn is_dry_run(&self) -> bool {
        matches!(self.standing, Standing::DryRun(_))
    }

    /// Whether the rule is a dry run that would repair the node, or would if too many others were not unhealthy.
    pub fn would_repair(&self) -> bool {
        let is_meant = match self.verdict {
            Some(Verdict::DeleteNodeClaim(_) | Verdict::Release) => true,
            Some(Verdict::Blocked(_)) => !self.only_reports(),
            _ => false,
        };
        self.is_dry_run() && is_meant
    }

    /// Whether the rule only reports late nodes.
    pub(crate) fn only_reports(&self) -> bool {
        let repair = self.rule.active().and_then(|spec| spec.repair.as_ref());
        repair.is_some_and(|repair| repair.action == RepairAction::None)
    }

    /// The message that the node is late, and what it lacks.
    pub(crate) fn lateness(&self) -> String {
        let lacks = self.evaluation.why();
        match self.deadline {
            Some(Ok(Deadline::At(at))) => {
                format!("The node should have been ready by {at:.0}: {lacks}")
            }
            _ => lacks,
        }
    }
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
