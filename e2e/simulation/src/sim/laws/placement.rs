//! The `DaemonSet`s that a node waits for: those with a live pod there, and those that the `DaemonSet` controller would run there,
//! ignoring taints that will go by themselves (`docs/conditions.md`).

use std::collections::BTreeMap;

use nodegate_core::condition::CriticalComponentClass as Class;
use serde_json::Value;

use super::rule::{Rule, TaintId};
use super::truth::{Answer, Facts};
use crate::sim::actors::ask::{is_going, items, name, text};
use crate::sim::actors::placement;

/// Whether the `DaemonSet` and its pods have the labels of the class.
pub(super) fn is_of_class(class: &Class, daemon_set: &Value) -> bool {
    has(class, daemon_set)
        && is_selected(class, &daemon_set["spec"]["template"]["metadata"]["labels"])
}

/// Whether the node waits for a pod of the `DaemonSet`, for the class.
pub(super) fn expects(facts: &Facts<'_>, class: &Class, daemon_set: &Value) -> Answer {
    if !is_of_class(class, daemon_set) {
        return Answer::No;
    }
    expects_by(facts, daemon_set, |kind| {
        kind.starts_with(&class.condition_prefix)
    })
}

/// Whether the `DaemonSet` is meant for the node by its name, its labels and its role.
pub(super) fn is_meant_by_what_it_is(facts: &Facts<'_>, daemon_set: &Value) -> bool {
    is_selected_by(facts, daemon_set) && is_of_its_role(facts.node, daemon_set)
}

/// Whether the `DaemonSet` selects the node by its name and labels, as they are or as they are recalled.
fn is_selected_by(facts: &Facts<'_>, daemon_set: &Value) -> bool {
    placement::selects(&daemon_set["spec"]["template"]["spec"], facts.node)
        || facts
            .recalled
            .is_some_and(|it| it.expects(daemon_set, name(facts.node)))
}

/// Whether the `DaemonSet` tolerates the taints that say what the node is.
fn is_of_its_role(node: &Value, daemon_set: &Value) -> bool {
    let role = |taint: TaintId| taint.key.starts_with("node-role.kubernetes.io/");
    !kept_away_by(node, daemon_set).any(role)
}

/// Whether labels may still come by which the `DaemonSet` is meant for the node: whoever introduces the node has yet to give it
/// labels, and nothing else leaves the `DaemonSet` out. Perhaps where a taint that may stay does.
pub(super) fn may_still_be_meant(facts: &Facts<'_>, daemon_set: &Value) -> Answer {
    const GIVE_LABELS: [&str; 2] = [
        "node.cluster.x-k8s.io/uninitialized",
        "karpenter.sh/unregistered",
    ];
    let node = facts.node;
    let mut taints = TaintId::all(node);
    let may_come = taints.any(|(taint, _)| GIVE_LABELS.contains(&taint.key.as_str()))
        && placement::selects_by(&daemon_set["spec"]["template"]["spec"], name(node), None)
        && is_of_its_role(node, daemon_set);
    if !may_come
        || is_deleted(daemon_set)
        || is_selected_by(facts, daemon_set)
        || has_pod(facts, daemon_set)
    {
        return Answer::No;
    }
    are_passing(facts, daemon_set).max(Answer::Maybe)
}

/// Whether all taints that keep the `DaemonSet` off the node will go by themselves.
fn are_passing(facts: &Facts<'_>, daemon_set: &Value) -> Answer {
    let passing = kept_away_by(facts.node, daemon_set).map(|taint| facts.is_passing(&taint));
    passing.min().unwrap_or(Answer::Yes)
}

fn has_pod(facts: &Facts<'_>, daemon_set: &Value) -> bool {
    let mut pods = facts.pods.iter();
    pods.any(|pod| is_live(pod) && owns(daemon_set, pod))
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
    if is_deleted(daemon_set) {
        Answer::No
    } else if has_pod(facts, daemon_set) {
        Answer::Yes
    } else if !is_meant_by_what_it_is(facts, daemon_set) {
        Answer::No
    } else {
        are_passing(facts, daemon_set)
    }
}

/// Whether rules with conditions of these types wait for a pod of the `DaemonSet` on the node.
pub(super) fn expects_by(
    facts: &Facts<'_>,
    daemon_set: &Value,
    asks: impl Fn(&str) -> bool,
) -> Answer {
    is_meant(facts, daemon_set).min(can_start(facts, daemon_set, asks))
}

/// Whether a pod of the `DaemonSet` can start on the node under the rules with conditions of these types.
pub(super) fn can_start(
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
    let mut answer = Answer::Yes;
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

/// Whether the `DaemonSet` is being deleted, and not only until its pods are left to themselves: that takes time.
pub(super) fn is_deleted(daemon_set: &Value) -> bool {
    let mut finalizers = items(&daemon_set["metadata"]["finalizers"]).iter();
    is_going(daemon_set) && !finalizers.any(|it| it == "orphan")
}

/// Whether the `DaemonSet` controls the pod, or will adopt it: nobody controls it, and it has the labels.
pub(super) fn owns(daemon_set: &Value, pod: &Value) -> bool {
    let (meta, of_pod) = (&daemon_set["metadata"], &pod["metadata"]);
    let is_its = match placement::controller(pod) {
        Some(owner) => owner["kind"] == "DaemonSet" && owner["uid"] == meta["uid"],
        None => placement::adopts(daemon_set, pod),
    };
    meta["namespace"] == of_pod["namespace"] && is_its
}
