//! Changes to a running cluster, made with the same requests as the real writers.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::kubernetes::kwok;

/// Sets a condition of a node, as a reporter does: a strategic merge patch of its status, which keeps other conditions.
pub async fn set_node_condition(
    client: &Client,
    node: &str,
    condition_type: &str,
    status: &str,
) -> Result<()> {
    let now = Timestamp::now().to_string();
    let patch = json!({"status": {"conditions": [{
        "type": condition_type,
        "status": status,
        "reason": kwok::SET_BY_TEST,
        "message": "set by a test",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }]}});
    patch_node_status(client, node, &patch)
        .await
        .with_context(|| format!("setting {condition_type} of node {node}"))
}

pub async fn remove_node_condition(
    client: &Client,
    node: &str,
    condition_type: &str,
) -> Result<()> {
    let patch = json!({"status": {"conditions": [{"type": condition_type, "$patch": "delete"}]}});
    patch_node_status(client, node, &patch)
        .await
        .with_context(|| format!("removing {condition_type} from node {node}"))
}

/// Patches the status of a node, by strategic merge.
pub async fn patch_node_status(client: &Client, node: &str, patch: &Value) -> Result<()> {
    Api::<Node>::all(client.clone())
        .patch_status(node, &PatchParams::default(), &Patch::Strategic(patch))
        .await?;
    Ok(())
}

/// Patches a node's metadata or spec (labels, annotations, taints) with a JSON merge patch: a list replaces the old one.
pub async fn patch_node(client: &Client, node: &str, patch: &Value) -> Result<()> {
    Api::<Node>::all(client.clone())
        .patch(node, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .with_context(|| format!("patching node {node}"))?;
    Ok(())
}

/// Sets a pod running, Ready or not. kwok does not change that again.
pub async fn set_pod_ready(client: &Client, namespace: &str, pod: &str, ready: bool) -> Result<()> {
    let now = Timestamp::now().to_string();
    let condition = |condition_type: &str| {
        json!({
            "type": condition_type,
            "status": if ready { "True" } else { "False" },
            "reason": kwok::SET_BY_TEST,
            "lastTransitionTime": now,
        })
    };
    let patch = json!({"status": {
        "phase": "Running",
        "conditions": [condition("ContainersReady"), condition("Ready")],
    }});
    Api::<Pod>::namespaced(client.clone(), namespace)
        .patch_status(pod, &PatchParams::default(), &Patch::Strategic(&patch))
        .await
        .with_context(|| format!("setting the readiness of pod {namespace}/{pod}"))?;
    Ok(())
}

/// Reports that a pod has run to its end, with success.
pub async fn set_pod_succeeded(client: &Client, namespace: &str, pod: &str) -> Result<()> {
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    Api::<Pod>::namespaced(client.clone(), namespace)
        .patch_status(pod, &PatchParams::default(), &ended)
        .await
        .with_context(|| format!("ending pod {namespace}/{pod}"))?;
    Ok(())
}

/// Reports a pod's first container as waiting for an image that cannot be pulled, as a kubelet does.
pub async fn break_image(client: &Client, namespace: &str, pod: &str, image: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let spec = pods.get(pod).await?.spec;
    let container = spec.as_ref().and_then(|spec| spec.containers.first());
    let container = container.context("a pod without containers")?;
    let status = json!({"status": {"containerStatuses": [{
        "name": container.name, "ready": false, "restartCount": 0, "image": "", "imageID": "",
        "state": {"waiting": {
            "reason": "ImagePullBackOff",
            "message": format!("Back-off pulling image \"{image}\""),
        }},
    }]}});
    pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(status))
        .await
        .with_context(|| format!("breaking the image of pod {namespace}/{pod}"))?;
    Ok(())
}

pub async fn delete_node(client: &Client, node: &str) -> Result<()> {
    Api::<Node>::all(client.clone())
        .delete(node, &DeleteParams::default())
        .await
        .with_context(|| format!("deleting node {node}"))?;
    Ok(())
}

/// Deletes a pod at once, without a kubelet's confirmation.
pub async fn delete_pod(client: &Client, namespace: &str, pod: &str) -> Result<()> {
    Api::<Pod>::namespaced(client.clone(), namespace)
        .delete(pod, &DeleteParams::default().grace_period(0))
        .await
        .with_context(|| format!("deleting pod {namespace}/{pod}"))?;
    Ok(())
}
