//! The client's own writes: those of reporters and kubelets, and those that measure the limit.

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::world::{AGENT_READY, Gate, LIMIT_ANNOTATION, Member, NAMESPACE};

/// The number of concurrent writes where the client is not measured.
pub(crate) const AT_ONCE: usize = 48;

/// Does something for each item, some at a time, and returns the results in no particular order.
pub(crate) async fn each<T, R>(
    at_once: usize,
    items: impl IntoIterator<Item = T>,
    work: impl AsyncFn(T) -> Result<R>,
) -> Result<Vec<R>> {
    let work = &work;
    stream::iter(items)
        .map(|item| async move { work(item).await })
        .buffer_unordered(at_once)
        .try_collect()
        .await
}

/// Reports whether a node's agent is ready, as a reporter does.
pub(crate) async fn set_agent(client: &Client, node: &str, ready: bool) -> Result<()> {
    let now = Timestamp::now().to_string();
    let condition = json!({
        "type": AGENT_READY,
        "status": if ready { "True" } else { "False" },
        "reason": "Benchmark",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    });
    patch_node_status(client, node, condition).await
}

/// Sets a pod Ready, as a kubelet does.
pub(crate) async fn set_pod_ready(client: &Client, pod: &str) -> Result<()> {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": Timestamp::now().to_string()});
    let conditions = ["Initialized", "ContainersReady", "Ready", "PodScheduled"].map(condition);
    patch_pod_status(
        client,
        pod,
        &json!({"phase": "Running", "conditions": conditions}),
    )
    .await
}

/// Reports how many pods of a `DaemonSet` are up to date, as its controller does after each.
pub(crate) async fn report_rollout(client: &Client, daemon_set: &str, updated: u32) -> Result<()> {
    let patch = json!({"status": {"updatedNumberScheduled": updated}});
    Api::<DaemonSet>::namespaced(client.clone(), NAMESPACE)
        .patch_status(daemon_set, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .with_context(|| format!("patching the status of DaemonSet {daemon_set}"))?;
    Ok(())
}

/// Makes the controller's write on a node: one JSON patch that tests UID and taints, and changes taints and one annotation.
pub(crate) async fn set_limit_taint(client: &Client, node: &Member, tainted: bool) -> Result<()> {
    // Every node is created with this one.
    let born = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let own = json!({"key": Gate::Limit.key(), "effect": "NoSchedule"});
    let (without, with) = (json!([born]), json!([born, own]));
    let annotation = format!(
        "/metadata/annotations/{}",
        LIMIT_ANNOTATION.replace('/', "~1")
    );
    let value = r#"{"rule":"bench-limit","key":"bench.nodegate.dev/limit","effect":"NoSchedule"}"#;
    let (old, new, annotate) = if tainted {
        (
            without,
            with,
            json!({"op": "add", "path": annotation, "value": value}),
        )
    } else {
        (with, without, json!({"op": "remove", "path": annotation}))
    };
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": node.uid},
        {"op": "test", "path": "/spec/taints", "value": old},
        {"op": "add", "path": "/spec/taints", "value": new},
        annotate,
    ]);
    let patch = serde_json::from_value(patch).context("forming a JSON patch")?;
    Api::<Node>::all(client.clone())
        .patch(
            &node.name,
            &PatchParams::default(),
            &Patch::<Node>::Json(patch),
        )
        .await
        .with_context(|| format!("tainting node {}", node.name))?;
    Ok(())
}

pub(crate) async fn patch_node_status(client: &Client, node: &str, condition: Value) -> Result<()> {
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    let api = Api::<Node>::all(client.clone());
    let parameters = PatchParams::default();
    even_if_cut(|| api.patch_status(node, &parameters, &patch))
        .await
        .with_context(|| format!("patching the status of node {node}"))?;
    Ok(())
}

pub(crate) async fn patch_pod_status(client: &Client, pod: &str, status: &Value) -> Result<()> {
    let patch = Patch::Strategic(json!({"status": status}));
    let api = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let parameters = PatchParams::default();
    even_if_cut(|| api.patch_status(pod, &parameters, &patch))
        .await
        .with_context(|| format!("patching the status of pod {pod}"))?;
    Ok(())
}

/// Makes an idempotent request, and repeats it once if its connection broke: the server may close an idle connection just as it
/// is used.
async fn even_if_cut<T, F>(request: impl Fn() -> F) -> kube::Result<T>
where
    F: Future<Output = kube::Result<T>>,
{
    match request().await {
        Err(kube::Error::Service(_) | kube::Error::HyperError(_)) => request().await,
        answer => answer,
    }
}
