//! Builds a rule's status: exact counts, bounded lists, and no change without a reason.
//!
//! Pure: the controller's findings go in, the status comes out.

mod basis;
mod conditions;
mod remarks;
mod rule_stats;
#[cfg(test)]
mod tests;
mod written;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{
    ConditionResult, ConditionStatus, DryRunResults, NodeEvaluation, NodeFailure,
    NodeReadinessRuleStatus, NodegateStatus, TaintPolicy, TaintStatus,
};
use crate::guard::Report;
use crate::plan::{Decision, WaitReason};
use crate::rule::{CompiledSpec, Rule, WouldGate};
use crate::wording::{counted, cut, enumerated};
use basis::whole_second;
pub(super) use basis::{Basis, Prospects};
use conditions::conditions;
pub(crate) use conditions::{FIELDS_PRUNED, says_all_suspended};
pub(crate) use remarks::{
    NOT_MADE, REMARKS, Remark, SHUT_OUT, partial_placements, passed_over_message, remarks,
};
use rule_stats::Role;
pub(super) use rule_stats::{Record, RuleFailure, RuleStats};
pub(super) use written::WrittenStatus;

/// The size of a status's lists as JSON, in bytes, including the API server's record of field managers.
const LIST_BUDGET: usize = 40_000;
/// The longest failure message, in bytes.
const MAX_MESSAGE: usize = 256;
/// The longest summary of a dry run, in bytes.
const MAX_SUMMARY: usize = 4096;

pub(super) fn build(stats: &RuleStats, basis: Basis<'_>) -> NodeReadinessRuleStatus {
    let rule = basis.rule;
    if rule.is_suspended() && rule.spec.is_ok() {
        return NodeReadinessRuleStatus {
            observed_generation: Some(rule.generation.max(1)),
            conditions: conditions::suspended(stats, basis),
            ..basis.previous.clone()
        };
    }
    let mut status = NodeReadinessRuleStatus {
        observed_generation: Some(rule.generation.max(1)),
        conditions: conditions(stats, basis),
        ..NodeReadinessRuleStatus::default()
    };
    let held = stats
        .nodes
        .iter()
        .filter(|(name, (record, _))| stats.is_held(name, record))
        .count();
    let lingering = stats.lingering();
    if rule.spec.is_ok() || lingering > 0 {
        status.nodegate = Some(NodegateStatus {
            matched_nodes: count(stats.nodes.len() + lingering),
            held_nodes: count(held + lingering),
            released_nodes: count(stats.nodes.len() - held),
            failed_node_count: count(stats.failures.len()),
        });
    }
    let mut budget = Budget(LIST_BUDGET);
    list_failures(&mut status, &mut budget, stats, basis);
    if let Ok(spec) = &rule.spec {
        if spec.dry_run {
            status.dry_run_results = Some(dry_run_results(stats, basis));
        }
        list_nodes(&mut status, &mut budget, spec, stats, basis);
    }
    status
}

/// The bytes that the lists of a status may still take.
struct Budget(usize);

impl Budget {
    /// Takes this many bytes and returns true. If fewer are left, takes them all and returns false.
    fn spend(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.0;
        self.0 = if fits { self.0 - bytes } else { 0 };
        fits
    }
}

/// Lists the nodes on which the rule failed, up to the limits.
fn list_failures(
    status: &mut NodeReadinessRuleStatus,
    budget: &mut Budget,
    stats: &RuleStats,
    basis: Basis<'_>,
) {
    for (name, (failure, at)) in stats.failures.iter().take(basis.node_limit) {
        let previous = basis
            .previous
            .failed_nodes
            .iter()
            .find(|known| known.node_name == **name);
        let mut failed = NodeFailure {
            node_name: name.to_string(),
            reason: Some(failure.reason.into()),
            message: Some(cut(failure.message.clone(), MAX_MESSAGE)),
            last_evaluation_time: Time(whole_second(*at)),
        };
        if let Some(previous) = previous
            && previous.reason == failed.reason
            && previous.message == failed.message
        {
            failed.last_evaluation_time = previous.last_evaluation_time.clone();
        }
        if !budget.spend(2 * (name.len() + 80) + failure.message.len().min(MAX_MESSAGE)) {
            break;
        }
        status.failed_nodes.push(failed);
    }
}

/// Lists the nodes that the rule selects, held ones first, up to the limits.
fn list_nodes(
    status: &mut NodeReadinessRuleStatus,
    budget: &mut Budget,
    spec: &CompiledSpec,
    stats: &RuleStats,
    basis: Basis<'_>,
) {
    let previous: BTreeMap<&str, &NodeEvaluation> = basis
        .previous
        .node_evaluations
        .iter()
        .map(|evaluation| (evaluation.node_name.as_str(), evaluation))
        .collect();
    let per_node: usize = spec
        .conditions
        .iter()
        .map(|condition| 2 * (condition.kind.len() + 130))
        .sum();
    let of = |held: bool| {
        stats
            .nodes
            .iter()
            .filter(move |(name, (record, _))| stats.is_held(name, record) == held)
    };
    for (name, (record, at)) in of(true).chain(of(false)).take(basis.node_limit) {
        if !budget.spend(per_node + 4 * name.len() + 260) {
            break;
        }
        if matches!(record.role, Role::Governs { .. }) && !stats.failures.contains_key(name) {
            status.applied_nodes.push(name.to_string());
        }
        let mut evaluation = evaluation(name, spec, record, *at);
        if let Some(previous) = previous.get(&**name)
            && previous.condition_results == evaluation.condition_results
            && previous.taint_status == evaluation.taint_status
        {
            evaluation.last_evaluation_time = previous.last_evaluation_time.clone();
        }
        status.node_evaluations.push(evaluation);
    }
}

fn evaluation(name: &str, spec: &CompiledSpec, record: &Record, at: Timestamp) -> NodeEvaluation {
    NodeEvaluation {
        node_name: name.into(),
        condition_results: spec
            .conditions
            .iter()
            .zip(&record.statuses)
            .map(|(requirement, observed)| ConditionResult {
                type_: requirement.kind.to_string(),
                current_status: observed.unwrap_or(ConditionStatus::Unknown),
                required_status: requirement.required,
                default_status: Some(requirement.status_if_missing()),
            })
            .collect(),
        taint_status: if record.tainted {
            TaintStatus::Present
        } else {
            TaintStatus::Absent
        },
        last_evaluation_time: Time(whole_second(at)),
    }
}

fn dry_run_results(stats: &RuleStats, basis: Basis<'_>) -> DryRunResults {
    let Basis {
        disruption,
        prospects,
        ..
    } = basis;
    let counting = |decides: fn(Decision) -> bool| {
        let matches =
            |record: &Record| matches!(record.role, Role::DryRun(decision) if decides(decision));
        stats
            .nodes
            .values()
            .filter(|(record, _)| matches(record))
            .count()
    };
    let adds = counting(|decision| {
        matches!(
            decision,
            Decision::Gate | Decision::Wait(WaitReason::Disruption)
        )
    });
    let in_grace =
        counting(|decision| matches!(decision, Decision::Wait(WaitReason::Grace { .. })));
    let held_back = disruption.filter(|report| report.waiting > 0);
    let removes = counting(|decision| matches!(decision, Decision::Release { .. }));
    let risky = stats
        .nodes
        .values()
        .filter(|(record, _)| record.misses_a_condition)
        .count();
    let would_gate = would_gate(stats, basis);
    let joining = joining(stats, basis.rule);
    let wrong = basis.rule.spec.iter();
    let wrong = wrong.flat_map(|spec| remarks(spec, basis.backing));
    let parts: Vec<_> = [
        (adds, format!("would add {}", counted(adds, "taint"))),
        (
            held_back.map_or(0, |report| report.waiting),
            held_back.map_or_else(String::new, Report::to_string),
        ),
        (
            in_grace,
            if in_grace == 1 {
                "1 node is within its grace period".to_owned()
            } else {
                format!("{in_grace} nodes are within their grace period")
            },
        ),
        (
            removes,
            format!("would remove {}", counted(removes, "taint")),
        ),
        (
            risky,
            format!(
                "{} {} missing conditions",
                counted(risky, "node"),
                if risky == 1 { "has" } else { "have" }
            ),
        ),
        (
            prospects.repaired,
            format!("would repair {}", counted(prospects.repaired, "node")),
        ),
        (
            prospects.blocked,
            format!(
                "would not repair {} while so many are unhealthy",
                counted(prospects.blocked, "node")
            ),
        ),
        (would_gate.gated, would_gate.to_string()),
    ]
    .into_iter()
    .filter_map(|(number, text)| (number > 0).then_some(text))
    .chain(joining)
    .chain(wrong.map(|it| it.message))
    .collect();
    DryRunResults {
        affected_nodes: Some(count(stats.nodes.len())),
        taints_to_add: Some(count(adds)),
        taints_to_remove: Some(count(removes)),
        risky_operations: Some(count(risky)),
        summary: if parts.is_empty() {
            "No changes needed".into()
        } else {
            cut(parts.join(", "), MAX_SUMMARY)
        },
    }
}

/// Which nodes the rule would gate at once if it were no dry run.
fn would_gate<'a>(stats: &RuleStats, basis: Basis<'a>) -> WouldGate<'a> {
    let mut would_gate = WouldGate::of(stats.nodes.len());
    let conditions = basis.rule.spec.as_ref().map(|spec| &spec.conditions);
    for (record, _) in stats.nodes.values() {
        if matches!(record.role, Role::DryRun(Decision::Gate)) {
            let statuses = conditions.iter().copied().flatten().zip(&record.statuses);
            let missing = statuses.filter(|(requirement, status)| {
                status.is_none() && requirement.status_if_missing() != requirement.required
            });
            would_gate.add(missing.map(|(requirement, _)| &*requirement.kind));
        }
    }
    would_gate
}

/// What a node that joins now would wait for, judged by the nodes that the dry run would leave open although they do not meet the
/// conditions: those that are older than the rule or have been ready once.
fn joining(stats: &RuleStats, rule: &Rule) -> Option<String> {
    let spec = rule.spec.as_ref().ok()?;
    let records = stats.nodes.values().map(|(record, _)| record);
    let left_alone: Vec<&Record> = records
        .filter(|it| it.unmet && matches!(it.role, Role::DryRun(Decision::NotHeld { .. })))
        .collect();
    if left_alone.is_empty() || spec.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let lacking = spec.conditions.iter().enumerate().filter(|(index, asked)| {
        let is_unmet = |record: &&Record| {
            let status = record.statuses.get(*index).copied().flatten();
            status.unwrap_or(asked.status_if_missing()) != asked.required
        };
        left_alone.iter().any(is_unmet)
    });
    let lacking: Vec<String> = lacking.map(|(_, asked)| asked.kind.to_string()).collect();
    Some(format!(
        "{} of {} selected nodes {} unmet and not held, and left alone: a node that joins would wait for {}",
        left_alone.len(),
        stats.nodes.len(),
        if left_alone.len() == 1 { "is" } else { "are" },
        enumerated(lacking.into_iter())
    ))
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
