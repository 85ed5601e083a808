//! The conditions in a rule's status.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::basis::{Basis, Unmade, whole_second};
use super::rule_stats::{Role, RuleStats};
use crate::api::RepairAction;
use crate::engine::cache::MOST_NAMED;
use crate::plan::{PassedOver, WhyPassedOver};
use crate::rule::CompiledSpec;
use crate::wording::enumerated;

const ACCEPTED: &str = "Accepted";
/// The condition type of a suspended rule.
pub(crate) const SUSPENDED: &str = "Suspended";

/// The conditions in the rule's status. `Accepted` and `Conflicted` are always present, the others only while they apply.
pub(super) fn conditions(stats: &RuleStats, basis: Basis<'_>) -> Vec<Condition> {
    let rule = basis.rule;
    let condition = |kind: &str, holds: bool, reason: &str, message: String| {
        let status = if holds { "True" } else { "False" };
        let previous = basis
            .previous
            .conditions
            .iter()
            .find(|known| known.type_ == kind && known.status == status);
        Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message,
            observed_generation: Some(rule.generation),
            last_transition_time: previous.map_or(Time(whole_second(basis.now)), |known| {
                known.last_transition_time.clone()
            }),
        }
    };
    let spec = match &rule.spec {
        Ok(spec) => spec,
        Err(rejection) => {
            return vec![condition(
                ACCEPTED,
                false,
                rejection.reason(),
                rejection.to_string(),
            )];
        }
    };
    let is_suspended = rule.is_suspended();
    let message = if is_suspended {
        "the rule is suspended"
    } else {
        "the rule is in force"
    };
    let mut conditions = vec![condition(ACCEPTED, true, "Valid", message.into())];

    conditions.push(match conflict(stats, spec, basis.governors) {
        Some((reason, message)) => condition("Conflicted", true, reason, message),
        None => condition(
            "Conflicted",
            false,
            "NoConflict",
            "no other rule governs the same taint".into(),
        ),
    });
    if let Some(obstacle) = basis.obstacle {
        let message = format!("no node can be repaired: {obstacle}");
        let repair = spec.repair.as_ref().map(|repair| repair.action);
        let reason = match repair {
            Some(RepairAction::Remediate | RepairAction::AnnotateMachine) => "RemediationRefused",
            _ => "NoNodeClaims",
        };
        conditions.push(condition("RepairUnavailable", true, reason, message));
    }
    if let Some(report) = basis.disruption {
        let limits = report.waiting > 0;
        let reason = match limits {
            true if report.all_zones_disrupted => "AllZonesDisrupted",
            true => "NodesHeldBack",
            false => "NoNodeHeldBack",
        };
        conditions.push(condition(
            "DisruptionLimited",
            limits,
            reason,
            report.to_string(),
        ));
    }
    if let Some(message) = unmade(basis.unmade) {
        conditions.push(condition(
            "ConditionsNotMade",
            true,
            "CountedAsAbsent",
            message,
        ));
    }
    if let Some(unknown) = basis.after_unknown {
        let (reason, message) = (unknown.reason(), unknown.to_string());
        conditions.push(condition("AfterUnknown", true, reason, message));
    }
    if !basis.empty_classes.is_empty() {
        let message = nothing_to_wait_for(basis.empty_classes);
        conditions.push(condition(
            "NothingToWaitFor",
            true,
            "NoDaemonSetInClass",
            message,
        ));
    }
    for (why, kind, reason) in PASSED_OVER {
        if let Some(message) = passed_over_message(spec, basis.passed_over, why) {
            conditions.push(condition(kind, true, reason, message));
        }
    }
    if is_suspended {
        let message = "nothing is changed for the rule, on nodes or in its counts";
        conditions.push(condition(SUSPENDED, true, "Suspended", message.into()));
    }
    conditions
}

/// The message about classes that have no `DaemonSet`, and how to fix that.
fn nothing_to_wait_for(classes: &[&str]) -> String {
    let classes = enumerated(classes.iter().map(|it| (*it).to_owned()));
    format!(
        "no DaemonSet is of the critical component class that the rule waits for, so that it opens every node on which no \
         labelled pod runs: {classes} (label the DaemonSets and their pod templates, or name them by \
         daemonset.nodegate.dev/<namespace>.<name>)"
    )
}

/// The conditions of a suspended rule. What they say of its nodes stays unchanged.
pub(super) fn suspended(stats: &RuleStats, basis: Basis<'_>) -> Vec<Condition> {
    let mut conditions = conditions(stats, basis);
    let stays = |kind: &str| ![ACCEPTED, SUSPENDED].contains(&kind);
    let before: Vec<_> = basis.previous.conditions.iter().collect();
    conditions.retain(|it| !stays(&it.type_) || before.iter().all(|known| known.type_ != it.type_));
    let kept = before.into_iter().filter(|known| stays(&known.type_));
    conditions.splice(1..1, kept.cloned());
    conditions
}

/// The message about conditions that nothing provides, and how to fix that; `None` if there are none.
fn unmade(conditions: &[(Arc<str>, Unmade)]) -> Option<String> {
    let of = |wanted: Unmade| {
        let them = conditions.iter().filter(|(_, why)| *why == wanted);
        let names: Vec<String> = them.map(|(kind, _)| kind.to_string()).collect();
        (!names.is_empty()).then(|| enumerated(names.into_iter()))
    };
    let unknown = of(Unmade::NoSuchThing)
        .map(|kinds| format!("there is nothing of this name: {kinds} (check the spelling)"));
    let too_many = of(Unmade::TooMany).map(|kinds| {
        format!("earlier rules name {MOST_NAMED} others, and no more are watched: {kinds}")
    });
    let not_served = of(Unmade::NotServed).map(|kinds| {
        format!("this API server has no resource.k8s.io/v1 ResourceSlices (Kubernetes 1.34 has them): {kinds}")
    });
    let parts = unknown.into_iter().chain(too_many).chain(not_served);
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("counted as absent on every node; {}", parts.join("; ")))
}

/// Which earlier rules govern this rule's taint on existing nodes or, failing that, on possible nodes, as reason and message.
fn conflict(
    stats: &RuleStats,
    spec: &CompiledSpec,
    governors: &[Arc<str>],
) -> Option<(&'static str, String)> {
    let governed: Vec<&Arc<str>> = stats
        .nodes
        .values()
        .filter_map(|(record, _)| match &record.role {
            Role::Conflicted { with } => Some(with),
            _ => None,
        })
        .collect();
    let (key, effect) = (&spec.taint.key, spec.effect);
    let quoted = |name: &Arc<str>| format!("'{name}'");
    if !governed.is_empty() {
        let names: BTreeSet<&Arc<str>> = governed.iter().copied().collect();
        let message = format!(
            "{} of {} nodes have taint {key}:{effect} governed by an earlier rule: {}",
            governed.len(),
            stats.nodes.len(),
            enumerated(names.into_iter().map(quoted)),
        );
        Some(("TaintGovernedByAnotherRule", message))
    } else if !governors.is_empty() {
        let message = format!(
            "an earlier rule governs taint {key}:{effect} on every node that both select, though there is none now: {}",
            enumerated(governors.iter().map(quoted)),
        );
        Some(("SelectorsOverlap", message))
    } else {
        None
    }
}

/// Why a rule does not wait for labelled `DaemonSet`s, with the condition type (also the event's reason) and its reason.
pub(crate) const PASSED_OVER: [(WhyPassedOver, &str, &str); 2] = [
    (
        WhyPassedOver::ShutOut,
        "DaemonSetsShutOut",
        "TaintNotTolerated",
    ),
    (
        WhyPassedOver::OutsideNamespaces,
        "DaemonSetsOutsideNamespaces",
        "NamespaceNotCovered",
    ),
];

/// The message about labelled `DaemonSet`s that a rule does not wait for, and how to fix that; `None` if there are none.
#[must_use]
pub(crate) fn passed_over_message(
    spec: &CompiledSpec,
    passed_over: &[PassedOver],
    why: WhyPassedOver,
) -> Option<String> {
    let meant: Vec<&PassedOver> = passed_over.iter().filter(|it| it.why == why).collect();
    if meant.is_empty() {
        return None;
    }
    let names = meant.iter().map(|it| it.daemon_set.to_string());
    Some(match why {
        WhyPassedOver::ShutOut => format!(
            "not waited for, because they do not tolerate taint {}:{}: DaemonSet {} (add the toleration to their pod template)",
            spec.taint.key,
            spec.effect,
            enumerated(names),
        ),
        WhyPassedOver::OutsideNamespaces => {
            let classes: BTreeSet<String> =
                meant.iter().map(|it| format!("'{}'", it.class)).collect();
            format!(
                "not waited for, because their namespaces are not among those of class {}: DaemonSet {} (add the namespaces to \
                 the class in the configuration file, or take the label off)",
                enumerated(classes.into_iter()),
                enumerated(names),
            )
        }
    })
}
