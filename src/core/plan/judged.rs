//! A rule's conditions on a node, evaluated as things are, and as they were until a moment ago.

use super::outcome::ConditionOutcome;
use crate::api::ConditionPolicy;
use crate::condition::{Absence, Facts};
use crate::rule::{CompiledSpec, Minimum, RequiredCondition};

/// What a rule's conditions on a node say.
pub(super) struct Judged<'a> {
    /// Whether they are met under the rule's policy.
    pub met: bool,
    pub findings: Vec<ConditionOutcome<'a>>,
    /// What has just gone, if they are met or unmet only because of that. Then `met` and `findings` are those that leave the node
    /// as it is.
    pub absence: Option<Absence<'a>>,
}

impl<'a> Judged<'a> {
    /// Of a node that has the rule's taint or not.
    pub(super) fn of(spec: &'a CompiledSpec, tainted: bool, facts: &Facts<'_, 'a>) -> Self {
        let (met, findings) = evaluate(spec, facts);
        let absences = findings.iter().flat_map(|it| {
            let RequiredCondition { kind, source, .. } = it.requirement;
            let label = it.requirement.minimum.as_ref().and_then(Minimum::label);
            let label = label.and_then(|label| facts.absent_label(label));
            let condition = it.condition.as_ref();
            let before = condition.and_then(|it| facts.published(kind, source, it));
            [facts.absence(source), label, before.map(|it| it.1)]
        });
        let absence = absences.flatten().min();
        let recalls = Facts {
            recalls: true,
            ..*facts
        };
        let recalled = absence.map(|_| evaluate(spec, &recalls));
        match recalled.filter(|recalled| recalled.0 != met) {
            None => Self {
                met,
                findings,
                absence: None,
            },
            Some((_, recalled)) => Self {
                met: !tainted,
                findings: if met == tainted { recalled } else { findings },
                absence,
            },
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
