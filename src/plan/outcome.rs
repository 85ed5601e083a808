//! What one rule makes of one node.

use jiff::Timestamp;

use super::decision::Decision;
use super::evaluate::Evaluation;
use crate::repair::{Deadline, NoTtl, Remedy, Verdict};
use crate::rule::Rule;

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
    /// How the rule came by the taint, where that may have to be told.
    pub origin: Option<Origin>,
    /// Whether the node has never been open under a continuous rule, so that closing it takes nothing away.
    pub joining: bool,
    /// Since when the conditions have been unmet, where the rule is continuous.
    pub unmet_since: Option<Timestamp>,
    /// When the node was seen to have rebooted, where the rule gates it again for that.
    pub rebooted: Option<Timestamp>,
    /// When the node's time is up, or why nobody can say, where the rule gates a node that has never been open and says
    /// what happens to it then.
    pub deadline: Option<Result<Deadline, NoTtl>>,
    /// What is to be done about the node, or would be by a dry run, where its time is up under a rule that governs, or
    /// would; none while nobody is judged.
    pub verdict: Option<Verdict<'a>>,
}

/// How a rule has come by a taint that it holds, and that the controller has not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nothing says whose it is: the rule takes it over.
    Adopted,
    /// The API server has put it on in the rule's name as the node was created, and the node is seen for the first time.
    Birth,
}

impl Outcome<'_> {
    /// Whether the rule holds a taint that it did not add.
    #[must_use]
    pub fn adopts(&self) -> bool {
        self.origin == Some(Origin::Adopted)
    }

    /// Whether the rule is a dry run: nothing is done in its name.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        matches!(self.standing, Standing::DryRun(_))
    }

    /// Whether the rule is a dry run and would repair the node, or would but for how many others are unhealthy.
    #[must_use]
    pub fn would_repair(&self) -> bool {
        let is_news = !matches!(self.verdict, Some(Verdict::Repair(Remedy::Report)));
        let is_meant = matches!(self.verdict, Some(Verdict::Blocked(_) | Verdict::Repair(_)));
        self.is_dry_run() && is_meant && is_news
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
