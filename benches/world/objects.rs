//! Nodes, rules, `DaemonSet`s and pods as the API server sends them, for one node and for a whole fleet.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The condition of rules that wait for an agent.
pub(crate) const REPORTED: &str = "example.com/AgentReady";

/// The condition of rules that wait for critical components.
pub(crate) const CRITICAL: &str = "node.gardener.cloud/CriticalComponentsReady";

/// The label of critical components.
const CLASS: &str = "node.gardener.cloud/critical-component";

pub(crate) fn decode<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).expect("an object as the API server sends it")
}

/// A continuous rule for all Linux nodes.
pub(crate) fn rule(index: usize, condition: &str) -> Value {
    json!({
        "metadata": {
            "name": rule_name(index),
            "uid": rule_uid(index),
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["readiness.node.x-k8s.io/cleanup-taints"],
        },
        "spec": {
            "conditions": [{"type": condition, "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": taint_key(index), "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
        },
    })
}

pub(crate) fn rule_name(rule: usize) -> String {
    format!("rule-{rule}")
}

pub(crate) fn rule_uid(rule: usize) -> String {
    format!("7e0b8a52-96f0-4d4c-a4f5-{rule:012}")
}

pub(crate) fn taint_key(rule: usize) -> String {
    format!("readiness.k8s.io/rule-{rule}")
}

/// An untainted Linux node with a healthy kubelet; `reported` is the status of its last condition, an agent's.
pub(crate) fn node(name: &str, uid: &str, reported: bool) -> Value {
    let condition = |kind: &str, is: bool| json!({"type": kind, "status": status(is), "lastTransitionTime": "2026-01-01T00:10:00Z"});
    json!({
        "metadata": {
            "name": name,
            "uid": uid,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name},
            "annotations": {},
        },
        "spec": {"taints": []},
        "status": {"conditions": [
            condition("MemoryPressure", false),
            condition("DiskPressure", false),
            condition("PIDPressure", false),
            condition("Ready", true),
            condition(REPORTED, reported),
        ]},
    })
}

/// A critical component.
pub(crate) fn daemon_set(index: usize) -> Value {
    let name = component(index);
    json!({
        "metadata": {
            "namespace": "kube-system",
            "name": name,
            "uid": format!("{name}-uid"),
            "resourceVersion": "1",
            "labels": {CLASS: "true"},
        },
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, CLASS: "true"}},
                "spec": {"tolerations": [{"operator": "Exists"}]},
            },
        },
    })
}

/// A critical component's pod on a node; its name has this suffix.
pub(crate) fn pod(daemon_set: usize, ending: &str, node: &str, ready: bool) -> Value {
    let owner = component(daemon_set);
    let pod = format!("{owner}-{ending}");
    json!({
        "metadata": {
            "namespace": "kube-system",
            "name": pod,
            "uid": format!("{pod}-uid"),
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:05:00Z",
            "labels": {"app": owner, CLASS: "true"},
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": owner,
                "uid": format!("{owner}-uid"),
                "controller": true,
            }],
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": "Running",
            "conditions": [{
                "type": "Ready",
                "status": status(ready),
                "lastTransitionTime": "2026-01-01T00:10:00Z",
            }],
        },
    })
}

fn component(index: usize) -> String {
    format!("component-{index}")
}

fn status(is: bool) -> &'static str {
    if is { "True" } else { "False" }
}
