//! Builds a rule's status: exact counts, bounded lists, and no change without a reason.

mod conditions;
mod tally;
#[cfg(test)]
mod tests;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::error::EVALUATION_ERROR;
pub(crate) use conditions::{
    CONFLICTED, DISRUPTION_LIMITED, FIELDS_PRUNED, NOT_MADE, OUTSIDE_NAMESPACES,
    REPAIR_UNAVAILABLE, SHUT_OUT, remarks,
};
pub use conditions::{
    HELD_BACK, MET_BY_NO_NODE, REMARKS, SELECTS_NO_NODE, holding, says, says_all_suspended,
};
use conditions::{conditions, stall, state};
use nodegate_core::api::{
    ConditionResult, ConditionStatus, DryRunResults, MAX_PAUSES, NodeEvaluation, NodeFailure,
    NodeReadinessRuleStatus, NodeShare, NodegateStatus, Pause, Permission, Setback, TaintEffect,
    TaintPolicy, TaintStatus,
};
use nodegate_core::finding::Backing;
use nodegate_core::guard::Report;
use nodegate_core::object::whole_second;
use nodegate_core::plan::{Decision, Standing, WaitReason};
use nodegate_core::rule::{CompiledSpec, Rule, WouldGate};
use nodegate_core::text::{counted, cut, enumerated};
pub(super) use tally::{Found, Record, Tally};
pub(super) use written::WrittenStatus;

/// The size of a status's lists as JSON, in bytes, including the API server's record of field managers.
const LIST_BUDGET: usize = 40_000;
/// The longest failure message, in bytes.
const MAX_MESSAGE: usize = 256;
/// The longest summary of a dry run, in bytes.
const MAX_SUMMARY: usize = 4096;

/// Inputs of a rule's status besides the tally.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub rule: &'a Rule,
    pub suspends_all: bool,
    pub backing: &'a Backing,
    pub prospects: (usize, usize),
    /// What keeps the rule from repairing any node.
    pub obstacle: Option<&'a str>,
    /// The report of the rule's disruption guard, if it has one.
    pub disruption: Option<&'a Report>,
    /// The limit of what the rule may gate as it comes into force, if there is one.
    pub first_limit: Option<NodeShare>,
    /// If the rule is held back, since it would gate more, how many it gated a moment ago.
    pub held_back: Option<usize>,
    /// Which nodes in use the rule may gate.
    pub permission: Option<&'a Permission>,
    pub setbacks: &'a [Setback],
    /// How many nodes the rule selects, if some have yet to be evaluated.
    pub selected: usize,
    /// How many nodes there are.
    pub nodes: usize,
    /// The rules that govern nodes that this rule selects as well.
    pub governors: &'a [Arc<str>],
    pub node_limit: usize,
    /// The status that was last written. Unchanged entries keep its times.
    pub previous: &'a NodeReadinessRuleStatus,
    /// The time of changed entries.
    pub now: Timestamp,
}

pub(super) fn build(tally: &Tally<'_>, basis: Basis<'_>) -> NodeReadinessRuleStatus {
    let rule = basis.rule;
    let is_suspended = rule.is_suspended() && rule.spec.is_ok();
    let mut conditions = if is_suspended {
        conditions::suspended(tally, basis)
    } else {
        conditions(tally, basis)
    };
    let (matched, held, lingering) = (tally.matched(), tally.held(), tally.lingering());
    let ours = NodegateStatus {
        state: state(rule, &conditions).into(),
        matched_nodes: count(matched.max(basis.selected) + lingering),
        held_nodes: count(held + lingering),
        released_nodes: count(matched - held),
        failed_node_count: count(tally.failures().count()),
        permission: basis.permission.cloned(),
        setbacks: basis.setbacks.to_vec(),
        pauses: Vec::new(),
    };
    stall(&mut conditions, basis);
    let before = is_suspended.then(|| basis.previous.clone());
    let mut status = NodeReadinessRuleStatus {
        observed_generation: Some(rule.generation.max(1)),
        conditions,
        nodegate: Some(ours),
        ..before.unwrap_or_default()
    };
    if is_suspended {
        return status;
    }
    let mut budget = LIST_BUDGET;
    status.failed_nodes = failures(&mut budget, tally, basis);
    if let Some(ours) = &mut status.nodegate {
        let pauses = tally.pauses().take(MAX_PAUSES);
        let fits = |it: &&Pause| spend(&mut budget, it.node_name.len() + it.message.len() + 110);
        ours.pauses = pauses.take_while(fits).cloned().collect();
    }
    if let Ok(spec) = &rule.spec {
        if spec.dry_run {
            status.dry_run_results = Some(dry_run_results(tally, basis));
        }
        list_nodes(&mut status, &mut budget, spec, tally, basis);
    }
    status
}

/// Takes this many bytes of a budget and returns true. If fewer are left, takes them all and returns false.
fn spend(budget: &mut usize, bytes: usize) -> bool {
    let fits = bytes <= *budget;
    *budget = budget.saturating_sub(bytes);
    fits
}

fn failures(budget: &mut usize, tally: &Tally<'_>, basis: Basis<'_>) -> Vec<NodeFailure> {
    let failures = tally.failures().take(basis.node_limit);
    let failures = failures.map_while(|(name, (message, at))| {
        let failed = NodeFailure {
            node_name: name.to_string(),
            reason: Some(EVALUATION_ERROR.into()),
            message: Some(cut(message.clone(), MAX_MESSAGE)),
            last_evaluation_time: Time(whole_second(*at)),
        };
        let mut previous = basis.previous.failed_nodes.iter();
        let same = previous.find(|it| {
            it.node_name == **name && it.reason == failed.reason && it.message == failed.message
        });
        let failed = same.cloned().unwrap_or(failed);
        let bytes = 2 * (name.len() + 80) + message.len().min(MAX_MESSAGE);
        spend(budget, bytes).then_some(failed)
    });
    failures.collect()
}

/// Lists the nodes that the rule selects, held ones first, up to the limits.
fn list_nodes(
    status: &mut NodeReadinessRuleStatus,
    budget: &mut usize,
    spec: &CompiledSpec,
    tally: &Tally<'_>,
    basis: Basis<'_>,
) {
    let previous = basis.previous.node_evaluations.iter();
    let previous = previous.map(|evaluation| (evaluation.node_name.as_str(), evaluation));
    let previous: BTreeMap<&str, &NodeEvaluation> = previous.collect();
    let conditions = spec.conditions.iter();
    let per_node: usize = conditions.map(|it| 2 * (it.kind.len() + 130)).sum();
    let of = |held: bool| tally.nodes().filter(move |(_, it, _)| it.is_held() == held);
    for (name, record, found) in of(true).chain(of(false)).take(basis.node_limit) {
        if !spend(budget, per_node + 4 * name.len() + 260) {
            break;
        }
        if matches!(found.standing, Standing::Governs(_)) && record.failure.is_none() {
            status.applied_nodes.push(name.to_string());
        }
        let now = evaluation(name, spec, found, record.at);
        let same = previous.get(&**name).filter(|it| {
            it.condition_results == now.condition_results && it.taint_status == now.taint_status
        });
        let evaluation = same.map_or(now, |it| NodeEvaluation::clone(it));
        status.node_evaluations.push(evaluation);
    }
}

fn evaluation(name: &str, spec: &CompiledSpec, found: &Found, at: Timestamp) -> NodeEvaluation {
    let results = spec.conditions.iter().zip(&found.statuses);
    let results = results.map(|(requirement, observed)| ConditionResult {
        type_: requirement.kind.to_string(),
        current_status: observed.unwrap_or(ConditionStatus::Unknown),
        required_status: requirement.required,
        default_status: Some(requirement.status_if_missing()),
    });
    NodeEvaluation {
        node_name: name.into(),
        condition_results: results.collect(),
        taint_status: if found.tainted {
            TaintStatus::Present
        } else {
            TaintStatus::Absent
        },
        last_evaluation_time: Time(whole_second(at)),
    }
}

fn dry_run_results(tally: &Tally<'_>, basis: Basis<'_>) -> DryRunResults {
    let counting = |decides: fn(Decision) -> bool| {
        let matches =
            |it: &&Found| matches!(it.standing, Standing::DryRun(decision) if decides(decision));
        tally.found().filter(matches).count()
    };
    let adds = counting(|it| matches!(it, Decision::Gate | Decision::Wait(WaitReason::Disruption)));
    let in_grace = counting(|it| matches!(it, Decision::Wait(WaitReason::Grace { .. })));
    let limited = basis.disruption.filter(|report| report.waiting > 0);
    let removes = counting(|it| it == Decision::Release);
    let keeps = counting(|it| it == Decision::Hold);
    let mut specs = basis.rule.spec.iter();
    let evicting = specs.any(|it| it.effect == TaintEffect::NoExecute) && adds > 0;
    let is_risky = |it: &&Found| it.statuses.contains(&None);
    let risky = tally.found().filter(is_risky).count();
    let mut would_gate = would_gate(basis.rule, tally.matched(), tally.found());
    would_gate.limit = basis.first_limit;
    let joining = joining(tally, basis.rule);
    let wrong = remarks(&basis.backing.findings).into_iter();
    let nodes = |number| counted(number, "node");
    let taints = |number| counted(number, "taint");
    let grace = if in_grace == 1 {
        "is within its grace period"
    } else {
        "are within their grace period"
    };
    let have = if risky == 1 { "has" } else { "have" };
    let (repaired, blocked) = basis.prospects;
    #[rustfmt::skip]
    let parts = [
        (adds, format!("would add {}", taints(adds))),
        (evicting.into(), "which would evict running pods (NoExecute)".into()),
        (limited.map_or(0, |it| it.waiting), limited.map(Report::to_string).unwrap_or_default()),
        (in_grace, format!("{} {grace}", nodes(in_grace))),
        (removes, format!("would remove {}", taints(removes))),
        (keeps, format!("leaves its taint on {}", nodes(keeps))),
        (risky, format!("{} {have} missing conditions", nodes(risky))),
        (repaired, format!("would repair {}", nodes(repaired))),
        (blocked, format!("would not repair {} while so many are unhealthy", nodes(blocked) )),
        (would_gate.gated, would_gate.to_string()),
    ];
    let parts = parts.into_iter();
    let parts = parts.filter_map(|(number, text)| (number > 0).then_some(text));
    let parts = parts.chain(joining).chain(wrong.map(|it| it.message));
    let parts: Vec<_> = parts.chain(basis.backing.notes.iter().cloned()).collect();
    DryRunResults {
        affected_nodes: Some(count(tally.matched())),
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

/// Which of these nodes, of so many that it selects, a rule would gate at once if it were no dry run, or were not held back.
pub(super) fn would_gate<'a, 'f>(
    rule: &'a Rule,
    selected: usize,
    found: impl Iterator<Item = &'f Found>,
) -> WouldGate<'a> {
    let mut would_gate = WouldGate::of(selected);
    let conditions = rule.spec.as_ref().map(|spec| &spec.conditions);
    for found in found {
        would_gate.in_use += usize::from(found.is_in_use());
        if found.is_held_back() || found.standing == Standing::DryRun(Decision::Gate) {
            let statuses = conditions.iter().copied().flatten().zip(&found.statuses);
            let missing = statuses.filter(|(requirement, status)| {
                status.is_none() && requirement.status_if_missing() != requirement.required
            });
            would_gate.add(missing.map(|(requirement, _)| &*requirement.kind));
        }
    }
    would_gate
}

/// What a node that joins now would wait for, judged by the nodes that the dry run would not gate although they do not meet the
/// conditions: those that are older than the rule or have been ready once.
fn joining(tally: &Tally<'_>, rule: &Rule) -> Option<String> {
    let spec = rule.spec.as_ref().ok()?;
    let left_alone: Vec<&Found> = tally
        .found()
        .filter(|it| it.unmet && matches!(it.standing, Standing::DryRun(Decision::NotHeld)))
        .collect();
    if left_alone.is_empty() || spec.ours.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let lacking = spec.conditions.iter().enumerate().filter(|(index, asked)| {
        let is_unmet = |found: &&Found| {
            let status = found.statuses.get(*index).copied().flatten();
            status.unwrap_or(asked.status_if_missing()) != asked.required
        };
        left_alone.iter().any(is_unmet)
    });
    let lacking: Vec<String> = lacking.map(|(_, asked)| asked.kind.to_string()).collect();
    Some(format!(
        "{} of {} selected nodes {} unmet and not held, and left alone: a node that joins would wait for {}",
        left_alone.len(),
        tally.matched(),
        if left_alone.len() == 1 { "is" } else { "are" },
        enumerated(lacking.into_iter())
    ))
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
