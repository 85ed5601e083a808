//! Findings about one rule and what it waits for.

use std::time::Duration;

use super::{Check, Finding};
use crate::api::{self, ConditionStatus, EnforcementMode, TaintEffect, TaintPolicy};
use crate::condition::{Placement, Source, is_under_our_domain, placement, tolerates};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::rule::{CompiledSpec, RequiredCondition, RuleSet};
use crate::text::counted;

/// Kubelet heartbeats come every 5 minutes and may be a minute late.
const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(6 * 60);

/// The condition type of a rule's status that says that it waits for nothing.
const NOTHING_TO_WAIT_FOR: &str = "NothingToWaitFor";

/// That of a rule for whose sake a `DaemonSet` cannot start, and the reason.
const SHUT_OUT: &str = "DaemonSetsShutOut";
const TAINT_NOT_TOLERATED: &str = "TaintNotTolerated";

/// The reason for conditions that nothing makes.
const COUNTED_AS_ABSENT: &str = "CountedAsAbsent";

/// A condition that is met on no node.
pub(super) fn of_condition(
    rule: &str,
    condition: &RequiredCondition,
    lacks_driver: impl Fn(&str) -> bool,
    is_reported: impl Fn(&str) -> bool,
) -> Option<Finding> {
    let kind = &*condition.kind;
    let (message, reason) = match &condition.source {
        Source::Nobody => {
            let message = format!(
                "nothing makes conditions of type {kind}, though their prefix is Nodegate's: counted as absent on every node; \
                 check the spelling"
            );
            (message, COUNTED_AS_ABSENT)
        }
        Source::CsiDriver(driver)
            if condition.required != ConditionStatus::False && lacks_driver(driver) =>
        {
            let message = format!(
                "no node has CSI driver {driver} today: until one has, no node meets the condition; check the driver's name"
            );
            (message, "NoSuchCSIDriver")
        }
        Source::Node if is_under_our_domain(kind) && !is_reported(kind) => {
            let message = format!(
                "no node reports {kind}, and Nodegate makes no conditions with that prefix: counted as absent on every node; \
                 check the spelling"
            );
            (message, COUNTED_AS_ABSENT)
        }
        _ => return None,
    };
    Some(not_made(Check::NOBODY, rule, message, reason))
}

fn of(check: Check, rule: &str, message: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding::new(check, format!("rule/{rule}"), message, fix)
}

fn not_made(check: Check, rule: &str, message: String, reason: &'static str) -> Finding {
    of(check, rule, message, "").published("ConditionsNotMade", reason)
}

pub(crate) fn no_daemon_set(rule: &str, key: &ObjectKey) -> Finding {
    let message = format!(
        "there is no DaemonSet {key} today: until there is one, no node meets the condition; check namespace and name"
    );
    not_made(Check::NO_SUCH_DAEMON_SET, rule, message, "NoSuchDaemonSet")
}

pub(super) fn not_served(rule: &str, kind: &str) -> Finding {
    let message = format!(
        "this API server has no resource.k8s.io/v1 ResourceSlices (Kubernetes 1.34 has them), so that no node meets {kind}"
    );
    not_made(Check::NOBODY, rule, message, "NoSuchKind")
}

pub(super) fn empty_class(rule: &str, class: &str) -> Finding {
    let message = format!(
        "no DaemonSet is of critical component class '{class}', for which the rule waits: it releases every node on which no \
         labelled pod runs"
    );
    let fix = "label the DaemonSets and their pod templates, or name them by daemonset.nodegate.dev/<namespace>.<name>";
    let found = of(Check::EMPTY_CLASS, rule, message, fix);
    found.published(NOTHING_TO_WAIT_FOR, "NoDaemonSetInClass")
}

/// Where a `DaemonSet` that a rule names runs, of the nodes that the rule selects.
pub(super) struct Placements<'a> {
    pub daemon_set: &'a DaemonSet,
    pub runs_on: usize,
    pub of: usize,
    /// How many nodes only a taint that stays keeps it off, and the first such taint.
    kept_off: usize,
    taint: Option<&'a Taint>,
}

/// Where these `DaemonSet`s run once the rule, which names them, is in force, whatever pods they have now. Those that do not
/// tolerate the rule's own taint are left out.
pub(super) fn placements<'a>(
    spec: &CompiledSpec,
    rules: &RuleSet,
    named: impl Iterator<Item = &'a DaemonSet>,
    selected: impl Iterator<Item = &'a Node>,
) -> Vec<Placements<'a>> {
    let tolerant = named.filter(|daemon_set| tolerates(daemon_set, &spec.taint));
    let mut placements: Vec<_> = tolerant
        .map(|daemon_set| Placements {
            daemon_set,
            runs_on: 0,
            of: 0,
            kept_off: 0,
            taint: None,
        })
        .collect();
    if placements.is_empty() {
        return placements;
    }
    for node in selected {
        let staying = staying(spec, rules, node);
        for it in &mut placements {
            it.of += 1;
            match placement(it.daemon_set, node, &staying, || false) {
                Placement::Meant => it.runs_on += 1,
                Placement::NotMeant => {}
                Placement::KeptAway(taint) => {
                    it.kept_off += 1;
                    it.taint.get_or_insert(taint);
                }
            }
        }
    }
    placements
}

/// The node's taints that will not go once the rule is in force.
pub(super) fn staying<'a>(spec: &CompiledSpec, rules: &RuleSet, node: &'a Node) -> Vec<&'a Taint> {
    let mut staying = rules.staying(node);
    staying.retain(|taint| !taint.is(&spec.taint.key, spec.effect));
    staying
}

impl Placements<'_> {
    /// That it runs on none of the nodes, or cannot on some.
    pub(super) fn finding(&self, rule: &str) -> Option<Finding> {
        let (daemon_set, kept_off, of) = (&self.daemon_set.key, self.kept_off, self.of);
        let Some(Taint { key, effect, .. }) = self.taint else {
            return (self.runs_on == 0 && of > 0).then(|| on_no_node(rule, daemon_set, of));
        };
        let message = format!(
            "DaemonSet {daemon_set} does not tolerate the taint {key}:{effect}: the rule holds nodes with such a taint ({kept_off} \
             of the {of} selected) until the DaemonSet has a Ready pod there"
        );
        let fix = format!(
            "add to its pod template: tolerations: [{{key: {key}, operator: Exists}}]; or leave such nodes out of the rule's \
             nodeSelector"
        );
        let object = format!("daemonset/{daemon_set}");
        let found = Finding::new(Check::SHUT_OUT, object, message, fix);
        Some(found.published(SHUT_OUT, TAINT_NOT_TOLERATED))
    }
}

fn on_no_node(rule: &str, daemon_set: &ObjectKey, selected: usize) -> Finding {
    let message = format!(
        "DaemonSet {daemon_set} runs on 0 of the {} that the rule selects, so that none of them waits for it",
        counted(selected, "node")
    );
    let fix = "check its node selector, its affinity and its tolerations";
    let found = of(Check::ON_NO_NODE, rule, message, fix);
    found.published(NOTHING_TO_WAIT_FOR, "DaemonSetOnNoNode")
}

pub(super) fn shut_out(spec: &CompiledSpec, daemon_set: &ObjectKey, is_named: bool) -> Finding {
    let (key, effect) = (&spec.taint.key, spec.effect);
    let (critical, waits) = if is_named {
        ("", "a node for which it is meant waits in vain")
    } else {
        ("critical ", "is not waited for")
    };
    let message = format!(
        "{critical}DaemonSet {daemon_set} does not tolerate the taint {key}:{effect}: it cannot start on a node that has it, and \
         {waits}"
    );
    let fix = format!("add to its pod template: tolerations: [{{key: {key}, operator: Exists}}]");
    let object = format!("daemonset/{daemon_set}");
    let found = Finding::new(Check::SHUT_OUT, object, message, fix);
    found.published(SHUT_OUT, TAINT_NOT_TOLERATED)
}

/// A `DaemonSet` that the rule names, and that is Ready as soon as its containers run. Nothing is wrong where the rule also waits
/// for something else, such as what it provides.
pub(super) fn unprobed(spec: &CompiledSpec, daemon_set: &DaemonSet) -> Option<Finding> {
    let (key, container) = (&daemon_set.key, daemon_set.unprobed.as_ref()?);
    let message = format!(
        "no container of DaemonSet {key} has a readiness probe (the first is {container}): it counts as Ready once they run; wait \
         for what it provides: csidriver.nodegate.dev/<driver>, resource.nodegate.dev/<resource> or a reporter's condition"
    );
    let found = Finding::new(Check::UNPROBED, format!("daemonset/{key}"), message, "");
    (spec.daemon_sets().count() == spec.conditions.len()).then_some(found)
}

pub(super) fn outside_namespaces(daemon_set: &ObjectKey, class: &str) -> Finding {
    let message = format!(
        "DaemonSet {daemon_set} is labelled as critical, but its namespace is none of class '{class}': it is not waited for"
    );
    let fix = "add the namespace to the class in the configuration file, or take the label off";
    let object = format!("daemonset/{daemon_set}");
    let found = Finding::new(Check::OUTSIDE_NAMESPACES, object, message, fix);
    found.published("DaemonSetsOutsideNamespaces", "NamespaceNotCovered")
}

/// `NoExecute` evicts running pods. Both texts begin as the upstream project's warnings do.
pub(crate) fn evicts(rule: &str, spec: &CompiledSpec) -> Option<Finding> {
    if spec.effect != TaintEffect::NoExecute || spec.ours.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let limit = match spec.ours.guard() {
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
