//! Evaluates a rule's conditions on a node.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::{ConditionPolicy, ConditionStatus};
use crate::condition::{Condition, Detail, Facts, Source};
use crate::rule::{CompiledSpec, RequiredCondition};

/// A rule's conditions on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation<'a> {
    /// Whether the conditions are met under the rule's policy.
    pub met: bool,
    /// Each condition, in the rule's order.
    pub results: Vec<Finding<'a>>,
    /// The name of the rule that has to let the node go first: no condition was evaluated.
    pub waits_for: Option<&'a Arc<str>>,
}

/// The reason why a rule that waits for another one keeps a node closed or open.
pub(crate) const WAITS_FOR_RULE: &str = "WaitsForRule";

/// One condition of a rule on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding<'a> {
    /// What the rule requires.
    pub requirement: &'a RequiredCondition,
    /// The status that counts: the node's as the rule's minimum and reasons judge it, else the rule's default, else
    /// `Unknown`.
    pub current: ConditionStatus,
    /// The condition, if the node has it: the same for every rule.
    pub condition: Option<Condition<'a>>,
    /// Why the condition counts as it does, if the rule's minimum or reasons decide that.
    pub judgement: Option<Detail<'a>>,
}

impl<'a> Finding<'a> {
    /// The reason for the status that counts, if the node has the condition.
    pub fn detail(&self) -> Option<&Detail<'a>> {
        let condition = self.condition.as_ref();
        let judgement = self.judgement.as_ref();
        judgement.or(condition.map(|condition| &condition.detail))
    }

    /// When the status that counts last changed, if that is known. The Node has no times of counts and reasons.
    pub fn transition(&self) -> Option<Timestamp> {
        let condition = self.condition.as_ref();
        condition.filter(|_| self.judgement.is_none())?.transition
    }

    /// Whether the status is the required one.
    pub fn is_met(&self) -> bool {
        self.current == self.requirement.required
    }

    /// Whether the condition has not been observed yet.
    pub fn is_to_be_seen(&self) -> bool {
        let condition = self.condition.as_ref();
        condition.is_some_and(Condition::is_to_be_seen)
    }

    /// The status that counts; `None` if the node lacks the condition.
    pub fn observed(&self) -> Option<ConditionStatus> {
        self.condition.as_ref().map(|_| self.current)
    }

    /// Why it is unmet, as a complete phrase.
    pub fn why(&self) -> String {
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

impl<'a> Evaluation<'a> {
    /// Nothing is evaluated while the rule of this name holds the node.
    pub(super) fn waiting(rule: &'a Arc<str>) -> Self {
        Self {
            met: false,
            results: Vec::new(),
            waits_for: Some(rule),
        }
    }

    /// The unmet conditions.
    pub fn unmet(&self) -> impl Iterator<Item = &Finding<'a>> {
        self.results.iter().filter(|result| !result.is_met())
    }

    /// Whether any condition has not been observed yet.
    pub fn is_to_be_seen(&self) -> bool {
        self.results.iter().any(Finding::is_to_be_seen)
    }

    /// Why the conditions are unmet, as complete phrases.
    pub fn why(&self) -> String {
        if let Some(rule) = self.waits_for {
            return format!("{WAITS_FOR_RULE}: rule '{rule}' holds this node, and comes first");
        }
        let whys = self.unmet().map(Finding::why);
        whys.collect::<Vec<_>>().join("; ")
    }

    /// Whether the node lacks any condition entirely.
    pub fn misses_a_condition(&self) -> bool {
        self.results.iter().any(|result| result.condition.is_none())
    }

    /// When to evaluate again even if nothing happens.
    pub fn recheck(&self) -> Option<Timestamp> {
        self.results
            .iter()
            .filter_map(|result| result.condition.as_ref()?.recheck)
            .min()
    }

    /// The latest transition time of any condition, as reported.
    pub fn latest_transition(&self) -> Option<Timestamp> {
        self.results.iter().filter_map(Finding::transition).max()
    }
}

/// Evaluates a rule's conditions on a node. It does not check whether the rule selects the node.
pub(super) fn evaluate<'a>(spec: &'a CompiledSpec, facts: &Facts<'_, 'a>) -> Evaluation<'a> {
    let results: Vec<_> = spec
        .conditions
        .iter()
        .map(|requirement| {
            let condition = facts.condition(&requirement.kind, &requirement.source);
            let judged = condition.as_ref();
            let judged = judged.map(|condition| requirement.judge(condition, facts.node));
            let (current, judgement) = judged.unwrap_or((requirement.status_if_missing(), None));
            Finding {
                requirement,
                current,
                condition,
                judgement,
            }
        })
        .collect();
    Evaluation {
        met: match spec.policy {
            ConditionPolicy::AllOf => results.iter().all(Finding::is_met),
            ConditionPolicy::AnyOf => results.iter().any(Finding::is_met),
        },
        results,
        waits_for: None,
    }
}
