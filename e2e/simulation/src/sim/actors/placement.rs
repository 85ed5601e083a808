//! Where pods may run: tolerations, node selectors and node affinity, as the scheduler, the `DaemonSet` controller and the laws
//! read them.

use serde_json::{Value, json};

use super::ask::{items, name, taints, text};

const OF_DAEMONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The tolerations of a `DaemonSet`'s pods: those of its template and the default ones.
pub fn daemon_tolerations(template: &Value) -> Vec<Value> {
    let mut tolerations = items(&template["spec"]["tolerations"]).to_vec();
    let host_network = template["spec"]["hostNetwork"] == true;
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let more = OF_DAEMONS
        .into_iter()
        .chain(host_network.then_some(network));
    tolerations.extend(
        more.map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})),
    );
    tolerations
}

/// Whether a node's taints admit new pods with these tolerations.
pub fn admits(node: &Value, tolerations: &[Value]) -> bool {
    are_tolerated(node, tolerations, &["NoSchedule", "NoExecute"])
}

/// Whether a node's taints let running pods with these tolerations stay.
pub fn keeps(node: &Value, tolerations: &[Value]) -> bool {
    are_tolerated(node, tolerations, &["NoExecute"])
}

fn are_tolerated(node: &Value, tolerations: &[Value], effects: &[&str]) -> bool {
    taints(node).iter().all(|taint| {
        let [key, effect, value] = ["key", "effect", "value"].map(|field| text(&taint[field]));
        let mut tolerations = tolerations.iter();
        !effects.contains(&effect) || tolerations.any(|it| tolerates(it, key, effect, value))
    })
}

/// Whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Value, key: &str, effect: &str, value: &str) -> bool {
    let is = |field: &str, wanted: &str| text(&toleration[field]) == wanted;
    (is("effect", "") || is("effect", effect))
        && match text(&toleration["operator"]) {
            "Exists" => is("key", "") || is("key", key),
            _ => is("key", key) && is("value", value),
        }
}

/// Whether a node's name and labels match a pod spec: node name, node selector and required node affinity.
pub(crate) fn selects(pod_spec: &Value, node: &Value) -> bool {
    selects_by(pod_spec, name(node), Some(&node["metadata"]["labels"]))
}

/// The same of a node of this name with these labels; `None` for whatever labels match.
pub(crate) fn selects_by(pod_spec: &Value, name: &str, labels: Option<&Value>) -> bool {
    let fields = json!({"metadata.name": name});
    let has = |key: &str, value: &Value| labels.is_none_or(|it| it.get(key) == Some(value));
    let is_so = |it: &Value| labels.is_none_or(|labels| matches(it, labels));
    let is_named = ["", name].contains(&text(&pod_spec["nodeName"]));
    let mut wanted = pod_spec["nodeSelector"].as_object().into_iter().flatten();
    let required =
        &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let is_met = |term: &Value| {
        let by_label = items(&term["matchExpressions"]);
        let by_field = items(&term["matchFields"]);
        !(by_label.is_empty() && by_field.is_empty())
            && by_label.iter().all(is_so)
            && by_field.iter().all(|it| matches(it, &fields))
    };
    is_named
        && wanted.all(|(key, value)| has(key, value))
        && (required.is_null() || items(&required["nodeSelectorTerms"]).iter().any(is_met))
}

/// The owner that controls an object, if there is one.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    let mut owners = items(&object["metadata"]["ownerReferences"]).iter();
    owners.find(|owner| owner["controller"] == true)
}

/// Whether a `DaemonSet` takes a pod of its namespace for its own that nobody controls.
pub(crate) fn adopts(daemon_set: &Value, pod: &Value) -> bool {
    let selector = &daemon_set["spec"]["selector"];
    !selector.is_null() && matches_labels(selector, &pod["metadata"]["labels"])
}

/// Whether a label selector matches these labels.
pub(crate) fn matches_labels(selector: &Value, labels: &Value) -> bool {
    let mut equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = items(&selector["matchExpressions"]).iter();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|it| matches(it, labels))
}

/// Whether labels match one expression of a label selector or of a node affinity.
pub(crate) fn matches(expression: &Value, labels: &Value) -> bool {
    let label = labels.get(text(&expression["key"]));
    let is_listed = || label.is_some_and(|label| items(&expression["values"]).contains(label));
    match text(&expression["operator"]) {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_goes_where_its_tolerations_and_selectors_let_it() {
        let node = json!({
            "metadata": {"labels": {"zone": "a"}},
            "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        });
        for (toleration, admitted) in [
            (json!({}), false),
            (json!({"operator": "Exists"}), true),
            (json!({"operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "k", "operator": "Exists"}), true),
            (json!({"key": "k", "value": "v"}), true),
            (json!({"key": "k", "value": "w"}), false),
        ] {
            assert_eq!(
                admits(&node, std::slice::from_ref(&toleration)),
                admitted,
                "{toleration}"
            );
            assert!(keeps(&node, &[toleration]));
        }
        let with = |operator: &str, values: Value| {
            let requirement = json!({"key": "zone", "operator": operator, "values": values});
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}})
        };
        for (spec, selected) in [
            (json!({}), true),
            (json!({"nodeSelector": {"zone": "a"}}), true),
            (json!({"nodeSelector": {"zone": "b"}}), false),
            (with("In", json!(["a", "b"])), true),
            (with("NotIn", json!(["a"])), false),
            (with("Exists", json!([])), true),
            (with("DoesNotExist", json!([])), false),
        ] {
            assert_eq!(selects(&spec, &node), selected, "{spec}");
        }
    }
}
