//! Where pods may run: tolerations, node selectors and node affinity, as the scheduler and the `DaemonSet` controller read
//! them.

use serde_json::{Value, json};

use super::ask::{items, taints, text};

const OF_DAEMONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The tolerations of a `DaemonSet`'s pods: those of its template and the default ones.
#[must_use]
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
#[must_use]
pub fn admits(node: &Value, tolerations: &[Value]) -> bool {
    are_tolerated(node, tolerations, &["NoSchedule", "NoExecute"])
}

/// Whether a node's taints let running pods with these tolerations stay.
#[must_use]
pub fn keeps(node: &Value, tolerations: &[Value]) -> bool {
    are_tolerated(node, tolerations, &["NoExecute"])
}

fn are_tolerated(node: &Value, tolerations: &[Value], effects: &[&str]) -> bool {
    taints(node)
        .iter()
        .filter(|taint| effects.contains(&text(&taint["effect"])))
        .all(|taint| tolerations.iter().any(|it| tolerates(it, taint)))
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let is = |field: &str| text(&toleration[field]) == text(&taint[field]);
    let is_any = |field: &str| text(&toleration[field]).is_empty();
    (is_any("effect") || is("effect"))
        && match text(&toleration["operator"]) {
            "Exists" => is_any("key") || is("key"),
            _ => is("key") && is("value"),
        }
}

/// Whether a node's name and labels match a pod spec.
#[must_use]
pub fn selects(pod_spec: &Value, node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let wanted = pod_spec["nodeSelector"].as_object();
    let has_all = wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels[key] == *value);
    let required =
        &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = items(&required["nodeSelectorTerms"]);
    has_all
        && (required.is_null()
            || terms.iter().any(|term| {
                let requirements = items(&term["matchExpressions"]);
                !requirements.is_empty() && requirements.iter().all(|it| matches(it, labels))
            }))
}

fn matches(requirement: &Value, labels: &Value) -> bool {
    let label = &labels[text(&requirement["key"])];
    let is_listed = items(&requirement["values"]).contains(label);
    match text(&requirement["operator"]) {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => !label.is_null(),
        "DoesNotExist" => label.is_null(),
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
            (with("DoesNotExist", json!([])), false),
        ] {
            assert_eq!(selects(&spec, &node), selected, "{spec}");
        }
    }
}
