//! The `DaemonSet`s that a node waits for: those with a live pod there, and those that the `DaemonSet` controller would run there,
//! ignoring taints that will go by themselves (`docs/conditions.md`).

use std::collections::BTreeMap;

use nodegate_core::condition::CriticalComponentClass as Class;
use serde_json::Value;

use super::rule::{Rule, TaintId};
use super::truth::{Answer, Facts};
use crate::sim::actors::ask::{is_going, items, text};
use crate::sim::actors::placement;

/// Whether the node waits for a pod of the `DaemonSet`, for the class.
pub(super) fn expects(facts: &Facts<'_>, class: &Class, daemon_set: &Value) -> Answer {
    let is_of_class = has(class, daemon_set)
        && is_selected(class, &daemon_set["spec"]["template"]["metadata"]["labels"]);
    if !is_of_class {
        return Answer::No;
    }
    expects_by(facts, daemon_set, |kind| {
        kind.starts_with(&class.condition_prefix)
    })
}

/// Whether the `DaemonSet` is meant for the node by its name, its labels and its role.
pub(super) fn is_meant_by_what_it_is(node: &Value, daemon_set: &Value) -> bool {
    let role = |taint: &TaintId| taint.key.starts_with("node-role.kubernetes.io/");
    placement::selects(&daemon_set["spec"]["template"]["spec"], node)
        && !kept_away_by(node, daemon_set).any(|taint| role(&taint))
}

/// The taints that keep new pods of the `DaemonSet` off the node.
fn kept_away_by<'a>(node: &'a Value, daemon_set: &'a Value) -> impl Iterator<Item = TaintId> {
    let spec = &daemon_set["spec"]["template"]["spec"];
    let taints =
        TaintId::all(node).filter(|(taint, it)| !tolerates(spec, taint, text(&it["value"])));
    taints.map(|(taint, _)| taint)
}

/// Whether the `DaemonSet` is meant for the node: it has a live pod there, or selects the node and tolerates the taints that
/// stay.
fn is_meant(facts: &Facts<'_>, daemon_set: &Value) -> Answer {
    let has_pod = || {
        let mut pods = facts.pods.iter();
        pods.any(|pod| is_live(pod) && owns(daemon_set, pod))
    };
    if is_going(daemon_set) {
        Answer::No
    } else if has_pod() {
        Answer::Yes
    } else if !is_meant_by_what_it_is(facts.node, daemon_set) {
        Answer::No
    } else {
        let passing = kept_away_by(facts.node, daemon_set).map(|taint| facts.is_passing(&taint));
        passing.min().unwrap_or(Answer::Yes)
    }
}

/// Whether rules with conditions of these types wait for a pod of the `DaemonSet` on the node.
pub(super) fn expects_by(
    facts: &Facts<'_>,
    daemon_set: &Value,
    asks: impl Fn(&str) -> bool,
) -> Answer {
    let spec = &daemon_set["spec"]["template"]["spec"];
    // A pod that the waiting rule's own taint keeps away is not waited for.
    let waits = |rule: &Rule| {
        let mut conditions = rule.spec.conditions.iter();
        rule.is_live() && rule.selects(facts.node) && conditions.any(|it| asks(&it.type_))
    };
    let waiting = facts.rules.iter().filter(|rule| waits(rule));
    let mut answer = is_meant(facts, daemon_set);
    for rule in waiting {
        let taint = rule.taint();
        let value = rule.spec.taint.value.as_deref().unwrap_or_default();
        let mut of_rule = TaintId::all(facts.node).filter(|(taint, _)| rule.is_about(taint));
        if !tolerates(spec, &taint, value)
            || of_rule.any(|(taint, it)| !tolerates(spec, &taint, text(&it["value"])))
        {
            // A rule without its finalizer does not count yet.
            answer = answer.min(if rule.has_finalizer {
                Answer::No
            } else {
                Answer::Maybe
            });
        }
    }
    answer
}

/// Whether pods of this template tolerate a taint, or its effect needs no toleration.
pub(super) fn tolerates(pod_spec: &Value, taint: &TaintId, value: &str) -> bool {
    let mut tolerations = items(&pod_spec["tolerations"]).iter();
    taint.effect == "PreferNoSchedule"
        || tolerations.any(|it| placement::tolerates(it, &taint.key, &taint.effect, value))
}

/// Whether a pod is neither terminating nor finished.
pub(super) fn is_live(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str();
    !is_going(pod) && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether an object is in a namespace of the class and has its labels.
pub(super) fn has(class: &Class, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let namespace = text(&metadata["namespace"]);
    class.namespaces.contains(namespace) && is_selected(class, &metadata["labels"])
}

/// Whether these labels match the class.
fn is_selected(class: &Class, labels: &Value) -> bool {
    let labels: BTreeMap<String, String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    class.selector.matches(&labels)
}

/// Whether the `DaemonSet` controls the pod.
pub(super) fn owns(daemon_set: &Value, pod: &Value) -> bool {
    let (meta, of_pod) = (&daemon_set["metadata"], &pod["metadata"]);
    let mut owners = items(&of_pod["ownerReferences"]).iter();
    let owner = owners.find(|it| it["kind"] == "DaemonSet" && it["controller"] == true);
    meta["namespace"] == of_pod["namespace"] && owner.is_some_and(|it| it["uid"] == meta["uid"])
}
