//! What the rules together make of a node: the status of its `NodeReadinessEvaluation`.
//!
//! | taint | decision | the rule's state |
//! |---|---|---|
//! | there | it stays, and the conditions are unmet | `NotReady` |
//! | not there | it stays away | `Ready` |
//! | either | the rule waits for another one, or the taint is to be added or removed | `Pending` |

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::decision::Decision;
use super::outcome::{Outcome, Standing};
use crate::api::{
    EvaluationState, MAX_RULES, MAX_SUMMARY, NodeReadinessEvaluationStatus, RuleEvaluation,
    RuleReference,
};
use crate::object::Node;
use crate::rule::CompiledSpec;
use crate::wording::{cut, enumerated};

/// The status for a node with these outcomes, given the last one; `None` if no rule governs a taint there. Rules that change
/// nothing on the node (dry runs, and those that yield to an older one) are not in it.
#[must_use]
pub(crate) fn evaluate_node(
    node: &Node,
    outcomes: &[Outcome<'_>],
    known: Option<&NodeReadinessEvaluationStatus>,
    now: Timestamp,
) -> Option<NodeReadinessEvaluationStatus> {
    let known = known.map_or(&[][..], |status| &status.rules);
    let evaluated = outcomes.iter().filter_map(|outcome| {
        let (Standing::Governs(decision), Some(spec)) = (outcome.standing, outcome.rule.active())
        else {
            return None;
        };
        let uid = &*outcome.rule.uid;
        let known = known.iter().find(|known| known.rule_ref.uid == uid);
        Some(evaluate_rule(node, outcome, spec, decision, known, now))
    });
    let mut rules: Vec<_> = evaluated.collect();
    rules.sort_by(|a, b| (a.state, &a.rule_ref.name).cmp(&(b.state, &b.rule_ref.name)));
    let state = rules.first()?.state;
    let summary = cut(summary(state, &rules), MAX_SUMMARY);
    rules.truncate(MAX_RULES);
    Some(NodeReadinessEvaluationStatus {
        state,
        summary,
        rules,
    })
}

fn evaluate_rule(
    node: &Node,
    outcome: &Outcome<'_>,
    spec: &CompiledSpec,
    decision: Decision,
    known: Option<&RuleEvaluation>,
    now: Timestamp,
) -> RuleEvaluation {
    let now = whole(now);
    let last_added = known.and_then(|known| known.taint_added_at.clone());
    let last_removed = known.and_then(|known| known.taint_removed_at.clone());
    let was_tainted = last_added.is_some() && last_removed.is_none();
    let (added, removed) = match (outcome.tainted, was_tainted) {
        (true, _) => {
            let taint = node.taint(&spec.taint.key, spec.effect);
            let dated = taint.and_then(|taint| taint.time_added.as_deref()?.parse().ok());
            let first_seen = match (known, node.created) {
                (None, Some(created)) => Time(created),
                _ => now.clone(),
            };
            let seen = last_added.filter(|_| was_tainted);
            let added = dated.map(whole).or(seen).unwrap_or(first_seen);
            (Some(added), None)
        }
        (false, true) => (last_added, Some(now.clone())),
        (false, false) => (last_added, last_removed),
    };
    RuleEvaluation {
        rule_ref: RuleReference {
            name: outcome.rule.name.to_string(),
            uid: outcome.rule.uid.to_string(),
        },
        state: state(outcome, decision),
        taint_added_at: added,
        taint_removed_at: removed,
        first_evaluated_at: known.map_or(now, |known| known.first_evaluated_at.clone()),
    }
}

fn state(outcome: &Outcome<'_>, decision: Decision) -> EvaluationState {
    let evaluation = &outcome.evaluation;
    match (outcome.tainted, decision) {
        _ if evaluation.waits_for.is_some() => EvaluationState::Pending,
        (true, Decision::Hold) if !evaluation.met => EvaluationState::NotReady,
        (false, Decision::Open { .. }) => EvaluationState::Ready,
        _ => EvaluationState::Pending,
    }
}

/// How many of the rules have this state, and which, if it keeps the node from being ready.
fn summary(state: EvaluationState, rules: &[RuleEvaluation]) -> String {
    let concerned: Vec<_> = rules.iter().filter(|rule| rule.state == state).collect();
    let rules = match (concerned.len(), rules.len()) {
        (1, 1) => "1 rule".to_owned(),
        (all, count) if all == count => format!("{count} rules"),
        (some, count) => format!("{some} of {count} rules"),
    };
    let is_one = concerned.len() == 1;
    let verb = match (state, is_one) {
        (EvaluationState::NotReady, true) => "keeps this node closed",
        (EvaluationState::NotReady, false) => "keep this node closed",
        (EvaluationState::Pending, true) => "is pending",
        (EvaluationState::Pending, false) => "are pending",
        (EvaluationState::Ready, true) => return format!("{rules} leaves this node open"),
        (EvaluationState::Ready, false) => return format!("{rules} leave this node open"),
    };
    let names = concerned.iter().map(|rule| rule.rule_ref.name.clone());
    format!("{rules} {verb}: {}", enumerated(names))
}

/// The time in whole seconds, as the API server keeps times.
fn whole(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}
