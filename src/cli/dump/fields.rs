//! Which fields a dump keeps: nothing of Secrets; no environment, arguments or volumes of pods; arguments of the controller alone.

use serde_json::Value;

use nodegate_cluster::ResourceKind;

/// The paths that are kept of every object.
const COMMON: &str = "apiVersion kind metadata.name metadata.namespace metadata.uid metadata.resourceVersion \
    metadata.generation metadata.creationTimestamp metadata.deletionTimestamp metadata.labels metadata.finalizers \
    metadata.annotations metadata.ownerReferences";

/// Prefixes of the annotations that are kept, besides those that name CSI drivers to wait for.
const ANNOTATIONS: [&str; 7] = [
    "readiness.k8s.io/",
    "nodegate.dev/",
    "karpenter.sh/",
    "node.gardener.cloud/",
    "cluster-autoscaler.kubernetes.io/",
    "openshift.io/node-selector",
    "scheduler.alpha.kubernetes.io/node-selector",
];

/// The paths that are kept of each kind, each with everything below it. A path applies to every element of a list.
const fn paths(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Rules => "spec status",
        ResourceKind::Nodes => {
            "spec.taints spec.unschedulable spec.providerID status.conditions status.allocatable status.nodeInfo.bootID \
             status.nodeInfo.kubeletVersion"
        }
        ResourceKind::CsiNodes => "spec.drivers status.storageHealth",
        ResourceKind::CsiDrivers => "spec.preventPodSchedulingIfMissing",
        ResourceKind::DaemonSets => {
            "spec.selector spec.template.metadata.labels spec.template.spec.nodeName spec.template.spec.nodeSelector \
             spec.template.spec.affinity spec.template.spec.tolerations spec.template.spec.hostNetwork \
             spec.template.spec.priorityClassName spec.template.spec.containers.name \
             spec.template.spec.containers.image spec.template.spec.containers.readinessProbe.periodSeconds \
             spec.template.spec.initContainers.readinessProbe.periodSeconds spec.updateStrategy.type"
        }
        ResourceKind::Pods => {
            "spec.nodeName spec.nodeSelector spec.affinity spec.tolerations spec.priorityClassName spec.schedulerName \
             spec.initContainers.name spec.initContainers.image spec.containers.name spec.containers.image \
             spec.containers.readinessProbe.periodSeconds status.phase status.reason status.message status.conditions status.initContainerStatuses status.containerStatuses"
        }
        ResourceKind::ResourceSlices | ResourceKind::Leases => "spec",
        ResourceKind::Events => {
            "involvedObject reason message type count series eventTime firstTimestamp lastTimestamp reportingComponent \
             source.component"
        }
        ResourceKind::ConfigMaps => "data",
        ResourceKind::Namespaces => "status.phase",
        ResourceKind::NodeClaims => {
            "spec.nodeClassRef spec.requirements spec.startupTaints spec.taints status.conditions status.nodeName \
             status.providerID"
        }
        ResourceKind::NodePools => "spec.template spec.disruption status",
        // Only the controller's, whose arguments have no secrets.
        ResourceKind::Deployments => {
            "spec.template.spec.containers.name spec.template.spec.containers.image \
             spec.template.spec.containers.command spec.template.spec.containers.args"
        }
    }
}

/// The kept part of an object. `csi_prefixes` are the prefixes of annotations that name CSI drivers to wait for.
pub(super) fn kept(kind: ResourceKind, mut object: Value, csi_prefixes: &[&str]) -> Value {
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.retain(|key, _| {
            let ours = ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix));
            ours || csi_prefixes.iter().any(|prefix| key.starts_with(prefix))
        });
    }
    let paths = COMMON.split(' ').chain(paths(kind).split(' '));
    retain(&mut object, &paths.collect::<Vec<_>>());
    object
}

/// Keeps what is at these paths, with everything below it.
fn retain(value: &mut Value, paths: &[&str]) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|it| retain(it, paths)),
        Value::Object(fields) => fields.retain(|name, value| {
            if paths.contains(&name.as_str()) {
                return true;
            }
            let below = paths.iter();
            let below = below.filter_map(|path| path.strip_prefix(name)?.strip_prefix('.'));
            let below: Vec<&str> = below.collect();
            retain(value, &below);
            !below.is_empty()
        }),
        _ => {}
    }
}

/// Empties all messages, since they may contain anything.
pub(super) fn redact(value: &mut Value) {
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
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_emptied() {
        let mut pod = json!({
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
        redact(&mut pod);
        assert_eq!(pod, expected);
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
        assert_eq!(kept(ResourceKind::Pods, pod, &["a.io/csi-"]), expected);
    }
}
