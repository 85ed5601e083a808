//! Where the controller's own pods run: off Karpenter's nodes by default, or on them and drained like any other pod; and on
//! held nodes in both cases.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testkit::nodegate::fixtures::{node, node_claims, node_pool};
use testkit::nodegate::install::{NAMESPACE, config, write_kustomization};
use testkit::nodegate::state::{has_taint, is_ready, reasons_about};
use testkit::nodegate::{eventually, never};

use super::{PATIENCE, apply, node_of, with_karpenter};

/// Longer than Karpenter takes from an unschedulable pod to a claim.
const LEFT_ALONE: std::time::Duration = std::time::Duration::from_secs(15);

/// A rule's taint, which nothing removes here.
const KEY: &str = "readiness.k8s.io/network";

/// The controller's live pods: by name, each with its node if it is Ready there.
async fn pods(client: &Client) -> Result<Vec<(String, Option<String>)>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await?;
    let staying = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(staying
        .map(|pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            (pod.name_any(), node.filter(|_| is_ready(pod)))
        })
        .collect())
}

/// Waits until both run; returns their nodes.
async fn eventually_run(client: &Client) -> Result<Vec<(String, String)>> {
    eventually("both pods run", PATIENCE, async || {
        let pods = pods(client).await?;
        let running: Vec<_> = pods
            .into_iter()
            .filter_map(|(pod, node)| Some((pod, node?)))
            .collect();
        Ok((running.len() == 2).then_some(running))
    })
    .await
}

/// A user's kustomization for rules whose taint has this key.
fn on_karpenters_nodes() -> Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("karpenter-nodes");
    write_kustomization(&folder, &["default"], &["components/karpenter-nodes"])?;
    let file = folder.join("kustomization.yaml");
    let mut content: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let toleration = json!([{
        "op": "add",
        "path": "/spec/template/spec/tolerations/-",
        "value": {"key": KEY, "operator": "Exists"},
    }]);
    content["patches"] = json!([{
        "target": {"kind": "Deployment", "name": "nrr-controller-manager"},
        "patch": toleration.to_string(),
    }]);
    std::fs::write(file, content.to_string())?;
    Ok(folder)
}

#[tokio::test]
async fn by_default_it_stays_off_karpenters_nodes() -> Result<()> {
    let (cluster, _karpenter) = with_karpenter().await?;
    let client = cluster.client().await?;
    apply(&cluster, node_pool("default")).await?;
    cluster.apply_path(&config("default")).await?;
    never("Karpenter makes a node for it", LEFT_ALONE, async || {
        let claims = node_claims(&client).list(&ListParams::default()).await?;
        Ok(!claims.items.is_empty())
    })
    .await?;
    node("base")
        .managed_by_kwok()
        .taint(KEY, "NoSchedule")
        .create(&client)
        .await?;
    for (pod, node) in eventually_run(&client).await? {
        assert_eq!(node, "base", "{pod}");
    }
    Ok(())
}

#[tokio::test]
async fn on_karpenters_nodes_it_starts_while_they_are_held_and_is_drained_one_at_a_time()
-> Result<()> {
    let (cluster, _karpenter) = with_karpenter().await?;
    let client = cluster.client().await?;
    apply(&cluster, node_pool("default").startup_taint(KEY)).await?;
    cluster.apply_path(&on_karpenters_nodes()?).await?;
    let before = eventually_run(&client).await?;
    let nodes: BTreeSet<&String> = before.iter().map(|(_, node)| node).collect();
    for node in &nodes {
        ensure!(has_taint(&client, node, KEY).await?, "{node} is released");
    }

    // Karpenter removes the node of one pod: the pod ends in time, while the other one runs.
    let (_, leaves) = before.first().context("a pod")?;
    let claims = node_claims(&client).list(&ListParams::default()).await?;
    let claim = claims
        .iter()
        .find(|claim| node_of(claim).as_deref() == Some(leaves));
    let claim = claim.context("the node's claim")?.name_any();
    node_claims(&client)
        .delete(&claim, &DeleteParams::default())
        .await?;
    eventually("the node is gone", PATIENCE, async || {
        let running = pods(&client).await?;
        let running = running.iter().filter(|(_, node)| node.is_some()).count();
        assert!(running > 0, "none of them runs");
        let gone = node_claims(&client).get_opt(&claim).await?.is_none();
        Ok(gone && running == 2)
    })
    .await?;
    for (pod, _) in before.iter().filter(|(_, node)| node == leaves) {
        let told = reasons_about(&client, "Pod", pod).await?;
        let evicted = told.contains(&"Evicted".to_owned());
        ensure!(evicted, "Karpenter did not evict {pod}: {told:?}");
    }
    for (pod, node) in eventually_run(&client).await? {
        ensure!(node != *leaves, "{pod} is back on {node}");
    }
    Ok(())
}
