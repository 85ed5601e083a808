//! Findings about one rule and what it waits for.

use std::time::Duration;

use super::{Around, Check, Finding, Severity};
use crate::api::{self, ConditionStatus, EnforcementMode, TaintEffect, TaintPolicy};
use crate::condition::{Component, Source, is_under_our_domain};
use crate::object::{DaemonSet, ObjectKey, Taint};
use crate::rule::{CompiledSpec, RequiredCondition};
use crate::text::counted;

/// Kubelet heartbeats come every 5 minutes and may be a minute late.
const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(6 * 60);

/// A condition that is met on no node.
pub(super) fn of_condition(
    rule: &str,
    condition: &RequiredCondition,
    around: &Around<'_>,
    lacks_driver: impl Fn(&str) -> bool,
    is_reported: impl Fn(&str) -> bool,
) -> Option<Finding> {
    let kind = &*condition.kind;
    let needs_it = condition.required != ConditionStatus::False;
    let (check, message) = match &condition.source {
        Source::Component(Component::DaemonSet(key))
            if needs_it && around.named.get(key) == Some(&None) =>
        {
            let standing = around.standing.and_then(|it| it.get(key));
            let or = standing.map_or("check namespace and name", String::as_str);
            let message = format!(
                "there is no DaemonSet {key} today: until there is one, no node meets the condition; {or}"
            );
            (Check::NO_SUCH_DAEMON_SET, message)
        }
        Source::Component(Component::Devices(_)) if around.lacks_slices => {
            let message = format!(
                "this API server has no resource.k8s.io/v1 ResourceSlices (Kubernetes 1.34 has them), so that no node meets {kind}"
            );
            (Check::NO_SUCH_KIND, message)
        }
        Source::Nobody => {
            let message = format!(
                "nothing makes conditions of type {kind}, though their prefix is Nodegate's: counted as absent on every node; \
                 check the spelling"
            );
            (Check::NOBODY, message)
        }
        Source::NoClass => (Check::NO_SUCH_CLASS, condition.lacks_class()?),
        Source::CsiDriver(driver) if needs_it && lacks_driver(driver) => {
            let message = format!(
                "no node has CSI driver {driver} today: until one has, no node meets the condition; check the driver's name"
            );
            (Check::NO_SUCH_CSI_DRIVER, message)
        }
        Source::Node if is_under_our_domain(kind) && !is_reported(kind) => {
            let message = format!(
                "no node reports {kind}, and Nodegate makes no conditions with that prefix: counted as absent on every node; \
                 check the spelling"
            );
            (Check::NOBODY, message)
        }
        Source::Node
        | Source::Class { .. }
        | Source::CsiDriver(_)
        | Source::Resource(_)
        | Source::Label(_)
        | Source::Component(_)
        | Source::DaemonSetsScheduled => return None,
    };
    Some(Finding::of_rule(check, rule, message, ""))
}

pub(super) fn empty_class(rule: &str, class: &str) -> Finding {
    let message = format!(
        "no DaemonSet is of critical component class '{class}', for which the rule waits: it releases every node on which no \
         labelled pod runs"
    );
    let fix = "label the DaemonSets and their pod templates, or name them by daemonset.nodegate.dev/<namespace>.<name>";
    Finding::of_rule(Check::EMPTY_CLASS, rule, message, fix)
}

/// A `DaemonSet` that does not tolerate a taint, what follows, and how to fix it other than by the toleration.
fn intolerant(daemon_set: &ObjectKey, [key, effect]: [&str; 2], so: &str, or: &str) -> Finding {
    let message =
        format!("DaemonSet {daemon_set} does not tolerate the taint {key}:{effect}: {so}");
    let fix = format!("{}{or}", toleration(key));
    Finding::of_daemon_set(Check::SHUT_OUT, daemon_set, message, &fix)
}

/// How to let a `DaemonSet` tolerate taints with this key, in its own manifest.
pub(super) fn toleration(key: &str) -> String {
    format!("add to its pod template: tolerations: [{{key: {key}, operator: Exists}}]")
}

/// How to let a `DaemonSet` tolerate the taint of a rule, where the policy of `config/tolerations` is installed or could be.
pub fn remedy(daemon_set: &ObjectKey, rule: &str, key: &str, is_installed: bool) -> String {
    let ObjectKey { namespace, name } = daemon_set;
    if is_installed {
        return format!(
            "once the rule is in force, have the API server add the toleration, which rolls its pods once, as any change of a \
             template does: kubectl -n {namespace} annotate --overwrite ds/{name} nodegate.dev/tolerate={rule}"
        );
    }
    let by_hand = toleration(key);
    format!("{by_hand}, or have the API server add it: config/tolerations")
}

/// A `DaemonSet` that the rule names, and that a taint that stays, of this key and effect, keeps off some of the selected nodes.
pub(super) fn kept_off(key: &ObjectKey, taint: [&str; 2], kept_off: usize, of: usize) -> Finding {
    let so = format!(
        "the rule holds nodes with such a taint ({kept_off} of the {of} selected) until the DaemonSet has a Ready pod there"
    );
    let or = "; or leave such nodes out of the rule's nodeSelector";
    intolerant(key, taint, &so, or)
}

/// A `DaemonSet` that the rule does not name, and that a taint of a node, which stays, keeps off it.
pub(super) fn kept_away(key: &ObjectKey, taint: &Taint) -> Finding {
    let so = "it does not run on this node, and is not waited for";
    let or = ", if it should run there";
    intolerant(key, [&taint.key, &taint.effect], so, or)
}

pub(super) fn on_no_node(rule: &str, daemon_set: &ObjectKey, selected: usize) -> Finding {
    let message = format!(
        "DaemonSet {daemon_set} runs on 0 of the {} that the rule selects, so that none of them waits for it",
        counted(selected, "node")
    );
    let fix = "check its node selector, its affinity and its tolerations";
    Finding::of_rule(Check::ON_NO_NODE, rule, message, fix)
}

pub(super) fn shut_out(spec: &CompiledSpec, daemon_set: &ObjectKey, is_named: bool) -> Finding {
    let so = if is_named {
        "it cannot start on a node that has it, and a node for which it is meant waits in vain"
    } else {
        "it cannot start on a node that has it, and is not waited for"
    };
    let taint = [spec.taint.key.as_str(), spec.effect.as_str()];
    intolerant(daemon_set, taint, so, "")
}

/// A named `DaemonSet` that is Ready as soon as its containers run, unless the rule also waits for something else.
pub(super) fn unprobed(spec: &CompiledSpec, daemon_set: &DaemonSet) -> Option<Finding> {
    let (key, container) = (&daemon_set.key, daemon_set.unprobed.as_ref()?);
    let message = format!(
        "no container of DaemonSet {key} has a readiness probe (the first is {container}): it counts as Ready once they run; wait \
         for what it provides: csidriver.nodegate.dev/<driver>, resource.nodegate.dev/<resource> or a reporter's condition"
    );
    let found = Finding::of_daemon_set(Check::UNPROBED, key, message, "");
    (spec.daemon_sets().count() == spec.conditions.len()).then_some(found)
}

pub(super) fn outside_namespaces(daemon_set: &ObjectKey, class: &str) -> Finding {
    let message = format!(
        "DaemonSet {daemon_set} is labelled as critical, but its namespace is none of class '{class}': it is not waited for"
    );
    let fix = "add the namespace to the class in the configuration file, or take the label off";
    Finding::of_daemon_set(Check::OUTSIDE_NAMESPACES, daemon_set, message, fix)
}

/// `NoExecute` evicts running pods. Both texts begin as the upstream project's warnings do. `has_fields`: ours can be set.
pub fn evicts(rule: &str, spec: &CompiledSpec, has_fields: bool) -> Option<Finding> {
    if spec.effect != TaintEffect::NoExecute || spec.ours.taint_policy == TaintPolicy::RemoveOnly {
        return None;
    }
    let limit = match spec.ours.guard() {
        None if has_fields => ", or set spec.nodegate.disruption to limit how fast",
        _ => "",
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
    let severity = match spec.mode {
        EnforcementMode::Continuous if spec.ours.guard().is_none() => Severity::Error,
        _ => Check::EVICTS.severity,
    };
    Some(Finding::of_rule(Check::EVICTS, rule, message, "").but(severity))
}

/// A condition to which the rule's heartbeat timeout does not apply.
pub(super) fn never_renewed(rule: &str, kind: &str) -> Finding {
    let message = format!(
        "no reporter of {kind} has ever renewed it on a node of this rule: heartbeatTimeout does not apply to it until one does"
    );
    let fix =
        "leave heartbeatTimeout out if it is written once, as NetworkUnavailable is by Calico";
    Finding::of_rule(Check::NEVER_RENEWED, rule, message, fix)
}

pub fn short_heartbeat(rule: &str, timeout: api::Duration) -> Option<Finding> {
    let message = format!(
        "heartbeatTimeout {timeout} is shorter than kubelet and Node Problem Detector need, which write every 5m: their \
         conditions would count as Unknown in between; use at least 6m for them"
    );
    let found = Finding::of_rule(Check::SHORT_HEARTBEAT, rule, message, "");
    (timeout.as_std() < SHORTEST_HEARTBEAT).then_some(found)
}
