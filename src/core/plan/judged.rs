//! A rule's conditions on a node, evaluated as things are, and as they were until a moment ago.

use super::outcome::ConditionOutcome;
use crate::api::ConditionPolicy;
use crate::condition::{Absence, Facts, Recall};
use crate::rule::{CompiledSpec, RequiredCondition};

pub(super) struct Judged<'a> {
    pub met: bool,
    pub findings: Vec<ConditionOutcome<'a>>,
    /// What has just gone, if they are met or unmet only because of that. Then `met` and `findings` leave the node as it is.
    pub absence: Option<Absence>,
}

impl<'a> Judged<'a> {
    /// Of a node that has the rule's taint or not.
    pub(super) fn of(spec: &'a CompiledSpec, tainted: bool, facts: &Facts<'_, 'a>) -> Self {
        let notes = Recall::new(facts.observations, facts.now);
        let recall = Some(&notes);
        let recalled = evaluate(spec, &Facts { recall, ..*facts });
        let absence = notes.absence();
        // Where nothing counted that is gone, things are so.
        let as_is = absence.as_ref().map(|_| evaluate(spec, facts));
        let absence = absence.filter(|_| as_is.as_ref().is_some_and(|it| it.0 != recalled.0));
        let is_kept_by_recall = absence.is_some() && recalled.0 != tainted;
        let (met, findings) = as_is.filter(|_| !is_kept_by_recall).unwrap_or(recalled);
        Self {
            met,
            findings,
            absence,
        }
    }
}

/// Evaluates a rule's conditions on a node, whether or not the rule selects it: whether they are met, and each one.
fn evaluate<'a>(
    spec: &'a CompiledSpec,
    facts: &Facts<'_, 'a>,
) -> (bool, Vec<ConditionOutcome<'a>>) {
    let outcome = |requirement: &'a RequiredCondition| {
        let except = &requirement.except;
        let facts = &Facts { except, ..*facts };
        let condition = facts.condition(&requirement.kind, &requirement.source);
        let judged = condition.as_ref();
        let judged = judged.map(|condition| requirement.judge(condition, facts.labels()));
        let (current, judgement) = judged.unwrap_or((requirement.status_if_missing(), None));
        ConditionOutcome {
            requirement,
            current,
            condition,
            judgement,
        }
    };
    let findings: Vec<_> = spec.conditions.iter().map(outcome).collect();
    let met = match spec.policy {
        ConditionPolicy::AllOf => findings.iter().all(ConditionOutcome::is_met),
        ConditionPolicy::AnyOf => findings.iter().any(ConditionOutcome::is_met),
    };
    (met, findings)
}
