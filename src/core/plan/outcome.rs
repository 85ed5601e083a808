//! The outcome of one rule on one node: built once, and what status, metrics, events and the command line read.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::decision::Decision;
use crate::api::{ConditionStatus, Pause, PauseReason, RepairAction};
use crate::condition::{Absence, Condition, Detail, Source};
use crate::object::{ObjectKey, whole_second};
use crate::repair::{Deadline, NoTtl, Verdict};
use crate::rule::{CompiledSpec, RequiredCondition, Rule, ownership::BootstrapRecord};
use crate::text::quoted;

#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Outcome<'a> {
    pub rule: &'a Rule,
    pub spec: &'a CompiledSpec,
    pub standing: Standing,
    /// Whether the decision completes the node's bootstrap under the rule.
    pub completes: bool,
    /// Whether the conditions are met under the rule's policy.
    pub met: bool,
    /// Each condition, in the rule's order.
    pub findings: Vec<ConditionOutcome<'a>>,
    /// Whether the node has the rule's taint, before the plan is carried out.
    pub tainted: bool,
    /// Whether gating the node takes capacity away: it is neither joining nor back from a reboot.
    pub in_use: bool,
    /// How the rule came to own the taint, if that may have to be announced.
    pub origin: Option<Origin>,
    /// Until when the conditions have to stay met before the node is released, if it waits for that alone.
    pub settles: Option<Timestamp>,
    /// What to remember of the node under a continuous rule, or one with a settle period.
    pub memory: Option<Memory>,
    /// When this process noticed a reboot for which the rule gates the node again.
    pub rebooted: Option<Timestamp>,
    pub bootstrap: BootstrapRecord<'a>,
    /// The readiness deadline, or why it is unknown, if a rule with a `repair` gates a node that it has never released.
    pub deadline: Option<Result<Deadline, NoTtl>>,
    /// What is gone that keeps the node as it is, because it may come back.
    pub absence: Option<Absence>,
    /// What to do with a late node under a governing rule, or what a dry run would do; `None` while repair is postponed.
    pub verdict: Option<Verdict<'a>>,
}

/// What a rule may do on a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// The rule governs its taint here: its decision is carried out.
    Governs(Decision),
    /// The rule is a dry run: its decision is only counted.
    DryRun(Decision),
    /// An earlier rule governs the same taint here.
    Conflicted { with: Arc<str> },
}

/// How a rule came to own a taint that the controller did not add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It has no recorded owner: the rule adopts it.
    Adopted,
    /// The API server added it for the rule as the node was created, and the node is seen for the first time.
    Birth,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionOutcome<'a> {
    pub requirement: &'a RequiredCondition,
    /// The status that counts: the node's as the rule's minimum and reasons judge it, else the default, else `Unknown`.
    pub current: ConditionStatus,
    /// The condition, if the node has it: the same for every rule.
    pub condition: Option<Condition<'a>>,
    /// Why the condition counts as it does, if the rule's minimum or reasons decide that.
    pub judgement: Option<Detail<'a>>,
}

impl<'a> Outcome<'a> {
    /// What the governing rule does.
    pub fn governs(&self) -> Option<Decision> {
        match self.standing {
            Standing::Governs(decision) => Some(decision),
            Standing::DryRun(_) | Standing::Conflicted { .. } => None,
        }
    }

    pub fn joining(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.joining)
    }

    /// Since when its conditions are unmet, in continuous mode.
    pub fn unmet_since(&self) -> Option<Timestamp> {
        self.memory.as_ref()?.unmet_since
    }

    pub fn adopts(&self) -> bool {
        self.origin == Some(Origin::Adopted)
    }

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

    pub fn only_reports(&self) -> bool {
        let repair = self.spec.ours.repair.as_ref();
        repair.is_some_and(|repair| repair.action == RepairAction::None)
    }

    pub fn lateness(&self) -> String {
        let lacks = self.why();
        match self.deadline {
            Some(Ok(Deadline::At(at))) => {
                format!("The node should have been ready by {at:.0}: {lacks}")
            }
            _ => lacks,
        }
    }

    /// What has just gone and keeps the rule from changing this node for now.
    pub fn waits_out(&self, node: &str) -> Option<Pause> {
        self.governs()?;
        let Absence { gone, until } = self.absence.as_ref()?;
        Some(Pause {
            node_name: node.to_owned(),
            reason: PauseReason::AbsenceNotLasted,
            message: format!("{gone} is gone, and may come back"),
            until: Some(Time(whole_second(*until))),
        })
    }

    pub fn unmet(&self) -> impl Iterator<Item = &ConditionOutcome<'a>> {
        unmet(&self.findings)
    }

    /// The `DaemonSet`s that lack a pod on the node.
    pub fn missing(&self) -> impl Iterator<Item = &'a ObjectKey> {
        let details = self.unmet().filter_map(ConditionOutcome::detail);
        details.flat_map(|it| match it {
            Detail::DaemonSetPodMissing { daemon_sets } => daemon_sets.iter().copied().collect(),
            _ => Vec::new(),
        })
    }

    pub fn is_to_be_seen(&self) -> bool {
        self.findings.iter().any(ConditionOutcome::is_to_be_seen)
    }

    /// What led to the decision: each condition with the status that counts, the required one, reason and message.
    pub fn evidence(&self) -> String {
        let each = self.findings.iter().map(|it| {
            let (kind, is, must) = (&it.requirement.kind, it.current, it.requirement.required);
            let detail = it.detail().map(|it| format!(": {}: {it}", it.reason()));
            let detail = detail.unwrap_or_default();
            quoted(format!("{kind} is {is}, must be {must}{detail}"))
        });
        each.collect::<Vec<_>>().join("; ")
    }

    /// Why the conditions are unmet, as complete phrases.
    pub fn why(&self) -> String {
        let whys = self.unmet().map(ConditionOutcome::why);
        whys.collect::<Vec<_>>().join("; ")
    }
}

pub(super) fn unmet<'f, 'a>(
    findings: &'f [ConditionOutcome<'a>],
) -> impl Iterator<Item = &'f ConditionOutcome<'a>> {
    findings.iter().filter(|finding| !finding.is_met())
}

impl<'a> ConditionOutcome<'a> {
    /// The reason for the status that counts, if the node has the condition.
    pub fn detail(&self) -> Option<&Detail<'a>> {
        let condition = self.condition.as_ref();
        let judgement = self.judgement.as_ref();
        judgement.or(condition.map(|condition| &condition.detail))
    }

    /// When the status that counts last changed. The Node has no times of counts and reasons, nor of what a rule leaves out.
    pub fn transition(&self) -> Option<Timestamp> {
        let is_on_node = self.judgement.is_none() && self.requirement.except.is_empty();
        self.condition.as_ref().filter(|_| is_on_node)?.transition
    }

    pub fn is_met(&self) -> bool {
        self.current == self.requirement.required
    }

    pub fn is_to_be_seen(&self) -> bool {
        let condition = self.condition.as_ref();
        condition.is_some_and(Condition::is_to_be_seen)
    }

    /// The status that counts; `None` if the node lacks the condition.
    pub fn observed(&self) -> Option<ConditionStatus> {
        self.condition.as_ref().map(|_| self.current)
    }

    /// Why it is unmet, as a complete phrase: in one line, and cut where somebody wrote very much.
    pub fn why(&self) -> String {
        quoted(self.says())
    }

    fn says(&self) -> String {
        let kind = &self.requirement.kind;
        let (current, required) = (self.current, self.requirement.required);
        match self.detail() {
            None if self.requirement.source == Source::Nobody => format!(
                "nothing makes {kind}, though its prefix is Nodegate's (counts as {current}, must be {required})"
            ),
            None => format!("{kind} is not reported (counts as {current}, must be {required})"),
            // The detail suffices, unless the rule requires that something is missing.
            Some(detail)
                if self.requirement.source.is_synthesized()
                    && required == ConditionStatus::True
                    && !matches!(detail, Detail::ReasonNotAccepted { .. }) =>
            {
                detail.to_string()
            }
            Some(detail) => {
                let (reason, message) = (detail.reason(), detail.to_string());
                let why = match (reason, message.as_str()) {
                    ("", "") => String::new(),
                    (text, "") | ("", text) => format!(": {text}"),
                    (reason, message) => format!(": {reason}: {message}"),
                };
                format!("{kind} is {current}, must be {required}{why}")
            }
        }
    }
}

/// What this process remembers about one rule on one node between evaluations: a continuous one, or one with a settle period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// UID of the rule.
    pub rule: Arc<str>,
    /// Whether the conditions have been met at any evaluation.
    pub was_met: bool,
    /// Whether the rule has never released the node, so that gating it disrupts nothing.
    pub joining: bool,
    /// Whether the node had the taint at the last evaluation.
    pub tainted: bool,
    /// Since when the conditions have been unmet; `None` while they are met.
    pub unmet_since: Option<Timestamp>,
    /// Since when they have been met without a break, under a rule with a settle period; `None` while they are unmet.
    pub met_since: Option<Timestamp>,
}

impl Memory {
    /// The memories after these outcomes; `None` if they are unchanged.
    pub fn after(outcomes: &[Outcome<'_>], memories: &[Self]) -> Option<Vec<Self>> {
        let remembered = || outcomes.iter().filter_map(|it| it.memory.as_ref());
        (!remembered().eq(memories)).then(|| remembered().cloned().collect())
    }
}
