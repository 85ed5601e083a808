//! Findings about one rule and what it waits for: by what stands behind its conditions on the nodes that are there, or by all
//! that could ever be on its nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Check, Finding};
use crate::api::{self, ConditionStatus, EnforcementMode, TaintEffect, TaintPolicy};
use crate::condition::{
    CriticalComponentClass, Source, can_share_a_node, is_under_our_domain, tolerates,
};
use crate::object::{DaemonSet, ObjectKey};
use crate::plan::{Backing, PassedOver, WhyPassedOver, WhyUnmade};
use crate::rule::{CompiledSpec, RequiredCondition};
use crate::wording::counted;

/// Kubelet heartbeats come every 5 minutes and may be a minute late.
const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(6 * 60);

/// The condition type of a rule's status that says that it waits for nothing.
const NOTHING_TO_WAIT_FOR: &str = "NothingToWaitFor";

/// What a cluster has for a rule. What could not be read is `None`, and nothing is said of it.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub classes: &'a [CriticalComponentClass],
    /// Whether the `DaemonSet`s of every class matter, not only those of classes that the rule waits for.
    pub of_any_class: bool,
    /// All `DaemonSet`s, each with its own labels.
    pub daemon_sets: Option<Vec<(&'a DaemonSet, &'a BTreeMap<String, String>)>>,
    /// Whether the rule selects any node.
    pub has_nodes: bool,
    /// The types of conditions that nodes have.
    pub reported: Option<BTreeSet<&'a str>>,
    /// The CSI drivers that any node has registered.
    pub csi_drivers: Option<BTreeSet<&'a str>>,
}

/// What is wrong with a rule by the nodes that are there.
pub(crate) fn of_backing(rule: &str, spec: &CompiledSpec, backing: &Backing) -> Vec<Finding> {
    let mut missing: Vec<_> = backing.unmade.iter().collect();
    missing.sort_by_key(|it| it.why);
    let missing = missing
        .into_iter()
        .map(|it| unmade(rule, it.why, &it.missing));
    let empty = backing.empty_classes.iter();
    let empty = empty.map(|class| empty_class(rule, class));
    let nowhere = backing.placements.iter().filter(|it| it.runs_on == 0);
    let nowhere = nowhere.map(|it| on_no_node(rule, &it.daemon_set, it.selected));
    let passed_over = backing
        .passed_over
        .iter()
        .map(|it| of_passed_over(spec, it));
    missing
        .chain(empty)
        .chain(nowhere)
        .chain(passed_over)
        .collect()
}

/// A `DaemonSet` that a rule does not wait for, or in vain.
pub(crate) fn of_passed_over(spec: &CompiledSpec, it: &PassedOver) -> Finding {
    match (it.why, &it.class) {
        (WhyPassedOver::OutsideNamespaces, Some(class)) => {
            outside_namespaces(&it.daemon_set, class)
        }
        (_, class) => shut_out(spec, &it.daemon_set, class.is_none()),
    }
}

/// What is wrong with a rule by all that could ever be on its nodes. `heartbeat` is its heartbeat timeout.
pub(crate) fn of_rule(
    rule: &str,
    spec: &CompiledSpec,
    heartbeat: Option<api::Duration>,
    facts: &Facts<'_>,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = evicts(rule, spec).into_iter().collect();
    found.extend(heartbeat.and_then(|timeout| short_heartbeat(rule, timeout)));
    let conditions = spec.conditions.iter();
    found.extend(conditions.filter_map(|it| of_condition(rule, it, facts)));
    let Some(daemon_sets) = &facts.daemon_sets else {
        return found;
    };
    let there = |key: &ObjectKey| daemon_sets.iter().find(|it| it.0.key == *key);
    let missing = spec.daemon_sets().filter(|key| there(key).is_none());
    found.extend(missing.map(|key| unmade(rule, WhyUnmade::NoDaemonSet, &key.to_string())));
    for (daemon_set, labels) in daemon_sets {
        if !can_share_a_node(daemon_set, &spec.selector) {
            continue;
        }
        let is_named = spec.daemon_sets().any(|key| *key == daemon_set.key);
        let mut is_of_class = false;
        for (index, class) in facts.classes.iter().enumerate() {
            let is_waited_for = spec.waits_for_class(index);
            if !class.selector.matches(labels) {
                continue;
            }
            if class.has(daemon_set) {
                is_of_class |= is_waited_for || facts.of_any_class;
            } else if is_waited_for && class.labels(daemon_set) {
                found.push(outside_namespaces(&daemon_set.key, &class.name));
            }
        }
        if (is_named || is_of_class) && !tolerates(daemon_set, &spec.taint) {
            found.push(shut_out(spec, &daemon_set.key, is_named));
        }
    }
    found
}

/// A condition that is met on no node.
fn of_condition(rule: &str, condition: &RequiredCondition, facts: &Facts<'_>) -> Option<Finding> {
    let kind = &*condition.kind;
    match &condition.source {
        Source::Nobody => Some(unmade(rule, WhyUnmade::NoSuchName, kind)),
        Source::CsiDriver(driver) => {
            let drivers = facts.csi_drivers.as_ref()?;
            let is_missing = facts.has_nodes && !drivers.contains(driver.as_str());
            let is_wanted = condition.required != ConditionStatus::False;
            (is_missing && is_wanted).then(|| unmade(rule, WhyUnmade::NoCsiDriver, driver))
        }
        Source::Node if is_under_our_domain(kind) => {
            let is_reported = facts.reported.as_ref()?.contains(kind);
            (!is_reported).then(|| unmade(rule, WhyUnmade::NoSuchPrefix, kind))
        }
        _ => None,
    }
}

fn of(check: Check, rule: &str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding::new(check, format!("rule/{rule}"), message, fix)
}

fn unmade(rule: &str, why: WhyUnmade, missing: &str) -> Finding {
    let (check, reason) = match why {
        WhyUnmade::NoDaemonSet => (Check::NO_SUCH_DAEMON_SET, "NoSuchDaemonSet"),
        WhyUnmade::NoCsiDriver => (Check::NOBODY, "NoSuchCSIDriver"),
        WhyUnmade::NotServed => (Check::NOBODY, "NoSuchKind"),
        WhyUnmade::NoSuchName | WhyUnmade::NoSuchPrefix | WhyUnmade::TooMany => {
            (Check::NOBODY, "CountedAsAbsent")
        }
    };
    of(check, rule, why.message(missing), "").published("ConditionsNotMade", reason)
}

fn empty_class(rule: &str, class: &str) -> Finding {
    let message = format!(
        "no DaemonSet is of critical component class '{class}', for which the rule waits: it releases every node on which no \
         labelled pod runs"
    );
    let fix = "label the DaemonSets and their pod templates, or name them by daemonset.nodegate.dev/<namespace>.<name>";
    let found = of(Check::EMPTY_CLASS, rule, message, fix);
    found.published(NOTHING_TO_WAIT_FOR, "NoDaemonSetInClass")
}

pub(crate) fn on_no_node(rule: &str, daemon_set: &ObjectKey, selected: usize) -> Finding {
    let message = format!(
        "DaemonSet {daemon_set} runs on 0 of the {} that the rule selects, so that none of them waits for it",
        counted(selected, "node")
    );
    let fix = "check its node selector, its affinity and its tolerations";
    let found = of(Check::ON_NO_NODE, rule, message, fix);
    found.published(NOTHING_TO_WAIT_FOR, "DaemonSetOnNoNode")
}

fn shut_out(spec: &CompiledSpec, daemon_set: &ObjectKey, is_named: bool) -> Finding {
    let (key, effect) = (&spec.taint.key, spec.effect);
    let (critical, waits) = if is_named {
        ("", "waited for in vain, as the rule names it")
    } else {
        ("critical ", "not waited for")
    };
    let message = format!(
        "{critical}DaemonSet {daemon_set} does not tolerate the taint {key}:{effect}: it cannot start on a node that has it, and \
         is {waits}"
    );
    let fix = format!("add to its pod template: tolerations: [{{key: {key}, operator: Exists}}]");
    let object = format!("daemonset/{daemon_set}");
    let found = Finding::new(Check::SHUT_OUT, object, message, fix);
    found.published("DaemonSetsShutOut", "TaintNotTolerated")
}

fn outside_namespaces(daemon_set: &ObjectKey, class: &str) -> Finding {
    let message = format!(
        "DaemonSet {daemon_set} is labelled as critical, but its namespace is none of class '{class}': it is not waited for"
    );
    let fix = "add the namespace to the class in the configuration file, or take the label off";
    let object = format!("daemonset/{daemon_set}");
    let found = Finding::new(Check::OUTSIDE_NAMESPACES, object, message, fix);
    found.published("DaemonSetsOutsideNamespaces", "NamespaceNotCovered")
}

/// `NoExecute` evicts running pods. Both texts begin as the upstream project's warnings do.
fn evicts(rule: &str, spec: &CompiledSpec) -> Option<Finding> {
    if spec.effect != TaintEffect::NoExecute || spec.ours.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let limit = match spec.ours.disruption {
        Some(_) => "",
        None => ", or set spec.nodegate.disruption to limit how fast",
    };
    let message = match spec.mode {
        EnforcementMode::BootstrapOnly => {
            "NOTE: NoExecute will evict existing pods without tolerations. Ensure critical system pods have appropriate \
             tolerations. Nodes that are in use when the rule is created are gated too; NoSchedule only keeps new pods away"
                .to_owned()
        }
        EnforcementMode::Continuous => format!(
            "CAUTION: NoExecute with continuous mode evicts pods when conditions fail, risking workload disruption. Consider \
             NoSchedule or bootstrap-only{limit}"
        ),
    };
    Some(of(Check::EVICTS, rule, message, ""))
}

/// A heartbeat timeout that is too short for kubelet and Node Problem Detector.
pub(crate) fn short_heartbeat(rule: &str, timeout: api::Duration) -> Option<Finding> {
    let message = format!(
        "heartbeatTimeout {timeout} is shorter than kubelet and Node Problem Detector need, which write every 5m: their \
         conditions would count as Unknown in between; use at least 6m for them"
    );
    let found = of(Check::SHORT_HEARTBEAT, rule, message, "");
    (timeout.as_std() < SHORTEST_HEARTBEAT).then_some(found)
}

/// A class that a rule waits for and that has no `DaemonSet`.
pub(crate) fn of_empty_classes<'a>(
    rule: &'a str,
    spec: &'a CompiledSpec,
    facts: &'a Facts<'_>,
) -> impl Iterator<Item = Finding> + 'a {
    let classes = facts.classes.iter().enumerate();
    let empty = classes.filter(|(index, class)| {
        let mut all = facts.daemon_sets.iter().flatten();
        spec.waits_for_class(*index)
            && facts.daemon_sets.is_some()
            && !all
                .any(|(daemon_set, labels)| class.selector.matches(labels) && class.has(daemon_set))
    });
    empty.map(|(_, class)| empty_class(rule, &class.name))
}
