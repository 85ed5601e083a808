//! The policy keeps kubelets from Nodegate's annotations, and from nothing else.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use nodegate_tests::kubelet::kubelet;
use serde_json::{Value, json};
use testkit::nodegate::fixtures::node;
use testkit::nodegate::state;

use crate::{cluster, condition, crowd, in_force, is_refused, nodegate, patch_node, patch_status};

/// How much slower than others' writes a write of a huge Node may be, on a busy machine: without a limit it took minutes.
const PATIENCE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_kubelet_may_not_write_what_nodegate_has_on_record() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    let completed = "readiness.k8s.io/bootstrap-completed-x";
    let owned = "nodegate.dev/taint-added-by-x";
    let due = "nodegate.dev/ready-deadline-x";
    node("its-own")
        .annotation(completed, "{}")
        .create(&client)
        .await?;
    crowd(&client, "its-own").await?;
    let kubelet = kubelet(cluster, "its-own").await?;
    let annotated = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    in_force(
        &kubelet,
        "its-own",
        &annotated("nodegate.dev/x", json!("y")),
    )
    .await?;
    for (key, value) in [
        (owned, json!("{}")),
        (due, json!("2026-01-01T00:00:00Z")),
        (completed, json!("true")),
        (completed, Value::Null),
        ("readiness.k8s.io/bootstrap-completed-rule", json!("{}")),
    ] {
        let patch = annotated(key, value);
        for refusal in [
            patch_node(&kubelet, "its-own", &patch).await,
            patch_status(&kubelet, "its-own", &patch).await,
        ] {
            is_refused(refusal, "a kubelet may not write the annotation", key)?;
        }
    }
    let own = annotated("example.com/mine", json!("yes"));
    patch_node(&kubelet, "its-own", &own).await?;
    patch_status(&kubelet, "its-own", &condition("Ready", "True")).await?;
    // Others are not restricted.
    patch_node(&client, "its-own", &annotated(completed, Value::Null)).await?;
    let node = state::node(&client, "its-own").await?;
    ensure!(!node.annotations().contains_key(completed));
    Ok(())
}

#[tokio::test]
async fn a_node_with_20_000_annotations_or_1_000_conditions_keeps_the_api_server_from_nothing()
-> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    // The rule of the example leaves it alone: what the controller may not clean up would hold the rule up.
    node("huge")
        .label("kubernetes.io/os", "windows")
        .create(&client)
        .await?;
    let kubelet = kubelet(cluster, "huge").await?;
    let annotated = |key: &str| json!({"metadata": {"annotations": {key: "x"}}});
    in_force(&kubelet, "huge", &annotated("nodegate.dev/x")).await?;
    let annotations: serde_json::Map<_, _> = (0..20_000)
        .map(|number| (format!("a{number}"), json!("")))
        .collect();
    let annotations = json!({"metadata": {"annotations": annotations}});
    let too_many = "annotations of a Node that has more than 1";
    is_refused(
        patch_node(&kubelet, "huge", &annotations).await,
        "a kubelet",
        too_many,
    )?;
    // Others may.
    patch_node(&client, "huge", &annotations).await?;
    let conditions: Vec<_> = (0..1_000)
        .map(|number| json!({"type": format!("example.com/C{number}"), "status": "True"}))
        .collect();
    let conditions = json!({"status": {"conditions": conditions}});
    patch_status(&kubelet, "huge", &conditions).await?;

    let nodegate = nodegate(cluster).await?;
    let started = Instant::now();
    patch_status(&client, "huge", &condition("Ready", "False")).await?;
    patch_node(&client, "huge", &annotated("example.com/others")).await?;
    let others = started.elapsed();
    let started = Instant::now();
    patch_status(&kubelet, "huge", &condition("Ready", "True")).await?;
    let refusal = patch_node(&kubelet, "huge", &annotated("example.com/mine")).await;
    is_refused(refusal, "a kubelet", too_many)?;
    let refusal = patch_node(&nodegate, "huge", &annotated("nodegate.dev/x")).await;
    is_refused(refusal, "Nodegate may not change the", too_many)?;
    let own = "node.gardener.cloud/CriticalComponentsReady";
    let refusal = patch_status(&nodegate, "huge", &condition(own, "True")).await;
    is_refused(
        refusal,
        "Nodegate may not",
        "conditions of one that has more than 150",
    )?;
    // Whatever else the node has: the taint is the controller's.
    let taint = json!([{"op": "add", "path": "/spec/taints/-", "value": {"key": "readiness.k8s.io/x", "effect": "NoSchedule"}}]);
    let taint = Patch::Json::<()>(serde_json::from_value(taint)?);
    let nodes: Api<Node> = Api::all(nodegate);
    nodes.patch("huge", &PatchParams::default(), &taint).await?;
    let took = started.elapsed();
    ensure!(took < 5 * (others + PATIENCE), "{took:?}");
    Ok(())
}
