//! Which fields of each object a dump keeps. It never reads a Secret, and keeps no environment, argument or volume of a pod; it
//! keeps arguments only of the controller itself.

use serde_json::{Map, Value};

use crate::cli::snapshot::ResourceKind;

/// The metadata fields that are kept, besides some annotations.
const META: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "finalizers",
];

/// Prefixes of the annotations that are kept, besides those that name CSI drivers to wait for.
const ANNOTATIONS: [&str; 5] = [
    "readiness.k8s.io/",
    "nodegate.dev/",
    "karpenter.sh/",
    "node.gardener.cloud/",
    "cluster-autoscaler.kubernetes.io/",
];

/// The paths that are kept of each kind, each with everything below it. A path applies to every element of a list.
fn paths(kind: ResourceKind) -> &'static [&'static str] {
    match kind {
        ResourceKind::Rules => &["spec", "status"],
        ResourceKind::Nodes => &[
            "spec.taints",
            "spec.unschedulable",
            "spec.providerID",
            "status.conditions",
            "status.allocatable",
            "status.nodeInfo.bootID",
            "status.nodeInfo.kubeletVersion",
        ],
        ResourceKind::CsiNodes => &["spec.drivers", "status.storageHealth"],
        ResourceKind::CsiDrivers => &["spec.preventPodSchedulingIfMissing"],
        ResourceKind::DaemonSets => &[
            "spec.selector",
            "spec.template.metadata.labels",
            "spec.template.spec.nodeName",
            "spec.template.spec.nodeSelector",
            "spec.template.spec.affinity",
            "spec.template.spec.tolerations",
            "spec.template.spec.hostNetwork",
            "spec.template.spec.priorityClassName",
            "spec.template.spec.containers.name",
            "spec.template.spec.containers.image",
            "spec.updateStrategy.type",
        ],
        ResourceKind::Pods => &[
            "spec.nodeName",
            "spec.nodeSelector",
            "spec.affinity",
            "spec.tolerations",
            "spec.priorityClassName",
            "spec.schedulerName",
            "spec.initContainers.name",
            "spec.initContainers.image",
            "spec.containers.name",
            "spec.containers.image",
            "status.phase",
            "status.reason",
            "status.message",
            "status.conditions",
            "status.initContainerStatuses",
            "status.containerStatuses",
        ],
        ResourceKind::ResourceSlices | ResourceKind::Leases => &["spec"],
        ResourceKind::Events => &[
            "involvedObject",
            "reason",
            "message",
            "type",
            "count",
            "series",
            "eventTime",
            "firstTimestamp",
            "lastTimestamp",
            "reportingComponent",
            "source.component",
        ],
        ResourceKind::ConfigMaps => &["data"],
        ResourceKind::NodeClaims => &[
            "spec.nodeClassRef",
            "spec.requirements",
            "spec.startupTaints",
            "spec.taints",
            "status.conditions",
            "status.nodeName",
            "status.providerID",
        ],
        ResourceKind::NodePools => &["spec.template", "spec.disruption", "status"],
        // Only the controller's, whose arguments have no secrets.
        ResourceKind::Deployments => &[
            "spec.template.spec.containers.name",
            "spec.template.spec.containers.image",
            "spec.template.spec.containers.command",
            "spec.template.spec.containers.args",
        ],
    }
}

/// The kept part of an object. `csi_prefixes` are the prefixes of annotations that name CSI drivers to wait for.
pub(super) fn kept(kind: ResourceKind, object: &Value, csi_prefixes: &[String]) -> Value {
    let mut kept = Map::new();
    for field in ["apiVersion", "kind"] {
        keep(&mut kept, object, field);
    }
    if let Some(meta) = object.get("metadata") {
        kept.insert("metadata".into(), metadata(meta, csi_prefixes));
    }
    let mut kept = Value::Object(kept);
    for path in paths(kind) {
        let names: Vec<&str> = path.split('.').collect();
        if let Some(part) = part(object, &names) {
            merge(&mut kept, part);
        }
    }
    kept
}

/// The object with all messages emptied, since they may contain anything.
pub(super) fn redacted(mut object: Value) -> Value {
    redact(&mut object);
    object
}

fn redact(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(redact),
        Value::Object(fields) => {
            // A label may be called `message`.
            for (name, value) in fields.iter_mut().filter(|(name, _)| *name != "metadata") {
                match value {
                    Value::String(text) if name == "message" => text.clear(),
                    value => redact(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn metadata(meta: &Value, csi_prefixes: &[String]) -> Value {
    let mut kept = Map::new();
    for field in META {
        keep(&mut kept, meta, field);
    }
    let is_kept = |key: &str| {
        let ours = ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix));
        ours || csi_prefixes.iter().any(|prefix| key.starts_with(prefix))
    };
    let annotations = meta.get("annotations").and_then(Value::as_object);
    let annotations: Map<String, Value> = annotations
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_kept(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !annotations.is_empty() {
        kept.insert("annotations".into(), annotations.into());
    }
    keep(&mut kept, meta, "ownerReferences");
    kept.into()
}

fn keep(kept: &mut Map<String, Value>, from: &Value, field: &str) {
    if let Some(value) = from.get(field) {
        kept.insert(field.into(), value.clone());
    }
}

/// The value at a path, wrapped in its parents.
fn part(value: &Value, path: &[&str]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value.clone());
    };
    if let Value::Array(elements) = value {
        let parts = elements.iter();
        let parts = parts.map(|element| part(element, path).unwrap_or(Value::Null));
        return Some(parts.collect());
    }
    let below = part(value.get(first)?, rest)?;
    Some(Value::Object(Map::from_iter([((*first).into(), below)])))
}

/// Merges a part of an object into other parts of it.
fn merge(into: &mut Value, part: Value) {
    match (into, part) {
        (Value::Object(into), Value::Object(part)) => {
            for (key, value) in part {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(part)) if into.len() == part.len() => {
            for (into, part) in into.iter_mut().zip(part) {
                merge(into, part);
            }
        }
        (_, Value::Null) => {}
        (into, part) => *into = part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_emptied() {
        let pod = json!({
            "metadata": {"labels": {"message": "kept"}},
            "status": {
                "message": "secret",
                "conditions": [{"type": "Ready", "message": "secret"}],
                "containerStatuses": [{"lastState": {"terminated": {"exitCode": 1, "message": "secret"}}}],
            },
        });
        let expected = json!({
            "metadata": {"labels": {"message": "kept"}},
            "status": {
                "message": "",
                "conditions": [{"type": "Ready", "message": ""}],
                "containerStatuses": [{"lastState": {"terminated": {"exitCode": 1, "message": ""}}}],
            },
        });
        assert_eq!(redacted(pod), expected);
    }

    #[test]
    fn a_pod_is_kept_without_its_environment() {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "managedFields": [{}],
                "annotations": {"a.io/csi-x": "driver", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {
                "nodeName": "n",
                "containers": [
                    {"name": "a", "image": "i", "env": [{"name": "PASSWORD", "value": "x"}]},
                    {"name": "b"},
                ],
                "volumes": [{"secret": {"secretName": "s"}}],
            },
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        });
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"a.io/csi-x": "driver"}},
            "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "i"}, {"name": "b"}]},
            "status": {"phase": "Running"},
        });
        assert_eq!(
            kept(ResourceKind::Pods, &pod, &["a.io/csi-".into()]),
            expected
        );
    }
}
