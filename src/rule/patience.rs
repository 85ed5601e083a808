//! When a node that does not meet a rule's conditions may be closed: at once while it is still joining, otherwise after
//! the grace period, and when the disruption guard lets it.

use std::sync::Arc;

use jiff::Timestamp;

use super::compile::CompiledSpec;
use super::decision::Held;
use super::evaluate::Evaluation;
use super::few::Few;
use super::plan::Outcome;
use crate::api::{ConditionPolicy, EnforcementMode};

/// What this process remembers of one rule on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// UID of the rule.
    pub rule: Arc<str>,
    /// Whether the conditions have been seen to be met.
    pub was_met: bool,
    /// Since when the conditions have been unmet; `None` while they are met.
    pub unmet_since: Option<Timestamp>,
}

impl Memory {
    /// What is remembered after these outcomes; `None` where that is nothing new.
    #[must_use]
    pub fn after(outcomes: &Few<Outcome<'_>>, memories: &[Self]) -> Option<Vec<Self>> {
        let remembered = || {
            outcomes.iter().filter_map(|outcome| {
                let spec = outcome.rule.active()?;
                let before = memories
                    .iter()
                    .find(|memory| memory.rule == outcome.rule.uid);
                (spec.mode == EnforcementMode::Continuous).then(|| Self {
                    rule: outcome.rule.uid.clone(),
                    was_met: outcome.evaluation.met || before.is_some_and(|before| before.was_met),
                    unmet_since: outcome.unmet_since,
                })
            })
        };
        (!remembered().eq(memories.iter().cloned())).then(|| remembered().collect())
    }
}

/// Since when a rule's conditions have been unmet; `None` where they are met.
///
/// Where this process has seen them turn, that is when. Otherwise the times on the Node tell, so that a restart neither
/// adds to a grace period nor takes from it.
#[must_use]
pub fn unmet_since(
    spec: &CompiledSpec,
    evaluation: &Evaluation<'_>,
    memory: Option<&Memory>,
    now: Timestamp,
) -> Option<Timestamp> {
    if evaluation.met {
        return None;
    }
    let seen = memory.and_then(|memory| memory.unmet_since).unwrap_or(now);
    if memory.is_some_and(|memory| memory.was_met) {
        return Some(seen);
    }
    let mut transitions = evaluation
        .unmet()
        .map(|result| result.condition.as_ref()?.transition);
    let on_record = match spec.policy {
        // One is enough for the rule to be unmet, so it has been since the first of them turned.
        ConditionPolicy::AllOf => transitions.flatten().min(),
        // It takes all of them, so it has been since the last one turned.
        ConditionPolicy::AnyOf => transitions
            .try_fold(Timestamp::MIN, |last, at| Some(last.max(at?)))
            .filter(|last| *last > Timestamp::MIN),
    };
    Some(on_record.map_or(seen, |on_record| on_record.min(seen)))
}

/// Why a node that was open and has been unmet since then is not closed yet; `None` where it may be.
#[must_use]
pub fn held_back(
    spec: &CompiledSpec,
    unmet_since: Timestamp,
    may_close: bool,
    now: Timestamp,
) -> Option<Held> {
    let grace = spec
        .grace_period
        .and_then(|period| unmet_since.checked_add(period.as_std()).ok());
    match grace {
        Some(until) if now < until => Some(Held::Grace { until }),
        _ if spec.disruption.is_some() && !may_close => Some(Held::Disruption),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NodeBuilder, at, node, rule, world};
    use serde_json::json;

    fn condition(node: NodeBuilder, kind: &str, status: &str, since: i64) -> NodeBuilder {
        node.condition_with(
            json!({ "type": kind, "status": status, "lastTransitionTime": at(since) }),
        )
    }

    fn remembers(was_met: bool, unmet_since: i64) -> Memory {
        Memory {
            rule: "r-uid".into(),
            was_met,
            unmet_since: Some(at(unmet_since)),
        }
    }

    #[test]
    fn the_time_on_the_node_counts_where_this_process_has_not_seen_the_conditions_turn() {
        let with = |conditions: &[(&str, &str, i64)]| {
            conditions
                .iter()
                .fold(node("n"), |node, (kind, status, since)| {
                    condition(node, kind, status, *since)
                })
        };
        let now = 1000;
        for (name, policy, conditions, memory, expected) in [
            (
                "met",
                "allOf",
                &[("A", "True", 5), ("B", "True", 9)][..],
                None,
                None,
            ),
            (
                "by the node",
                "allOf",
                &[("A", "False", 5), ("B", "True", 9)],
                None,
                Some(5),
            ),
            (
                "the first that turned",
                "allOf",
                &[("A", "False", 5), ("B", "False", 9)],
                None,
                Some(5),
            ),
            (
                "any: the last that turned",
                "anyOf",
                &[("A", "False", 5), ("B", "False", 9)],
                None,
                Some(9),
            ),
            (
                "any: one with no time",
                "anyOf",
                &[("A", "False", 5)],
                None,
                Some(now),
            ),
            ("never reported", "allOf", &[], None, Some(now)),
            (
                "never reported, remembered",
                "allOf",
                &[],
                Some(remembers(false, 700)),
                Some(700),
            ),
            (
                "seen to turn",
                "allOf",
                &[("A", "False", 5), ("B", "True", 9)],
                Some(remembers(true, 600)),
                Some(600),
            ),
            (
                "unmet for longer than either condition",
                "allOf",
                &[("A", "False", 800), ("B", "True", 900)],
                Some(remembers(false, 300)),
                Some(300),
            ),
            (
                "a clock that is ahead",
                "allOf",
                &[("A", "False", 5000), ("B", "True", 9)],
                None,
                Some(now),
            ),
        ] {
            let rule = rule("r")
                .taint("readiness.k8s.io/gate", "NoSchedule")
                .waits_for("A")
                .waits_for("B")
                .spec(&format!("conditionPolicy: {policy}"));
            let world = world(&with(conditions)).rule(&rule).now(at(now));
            let plan = world.plan();
            let spec = world.rules()[0].live().unwrap();
            let evaluation = &plan.outcomes[0].evaluation;
            assert_eq!(
                unmet_since(spec, evaluation, memory.as_ref(), at(now)),
                expected.map(at),
                "{name}"
            );
        }
    }
}
