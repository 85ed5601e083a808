//! A node that is recreated under its name, while the pods of the earlier one still exist.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::storage::v1::CSINode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::changes::{delete_node, delete_pod};
use nodegate_testbed::eventually;
use nodegate_testbed::fixtures::set_csi_drivers;
use nodegate_testbed::sights::pods_on;
use serde_json::json;

use crate::SOON;
use crate::pool::{NAMESPACE, Pool};

/// Deletes and recreates the pool's node. Its pods stay, as the pod collector comes later.
async fn rejoin(pool: &Pool) -> Result<()> {
    // Kubernetes timestamps are in whole seconds: within the same one, before and after look alike.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    delete_node(&pool.client, pool.name).await?;
    pool.join(pool.node()).await?;
    Ok(())
}

#[tokio::test]
async fn pods_that_were_ready_on_the_earlier_node_open_nothing() -> Result<()> {
    let pool = Pool::under_gardeners_rule("reborn").await?;
    pool.daemon_set("cni").create(&pool.client).await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    let old = pool.pod_of("cni").await?;

    rejoin(&pool).await?;
    let why = "has been Ready since before this node was created";
    pool.is_held_because(&format!("pod {NAMESPACE}/{old} {why}"))
        .await?;
    assert_eq!(pool.pod_of("cni").await?, old, "the old pod is gone");

    // A kubelet that takes the pod over reports Ready anew.
    pool.set_ready_in(NAMESPACE, &old, false).await?;
    pool.stays_closed().await?;
    pool.set_ready_in(NAMESPACE, &old, true).await?;
    pool.opens().await?;

    // Or the pod is replaced.
    rejoin(&pool).await?;
    pool.is_held_because(&format!("pod {NAMESPACE}/{old} {why}"))
        .await?;
    delete_pod(&pool.client, NAMESPACE, &old).await?;
    pool.opens().await?;
    assert_ne!(pool.pod_of("cni").await?, old);
    Ok(())
}

/// A pod that nobody ever reports anew counts after a minute: by then the pod collector would have deleted a leftover.
#[tokio::test]
async fn a_pod_that_outlived_the_earlier_node_is_believed_after_a_minute() -> Result<()> {
    let pool = Pool::under_gardeners_rule("reborn-slowly").await?;
    pool.pod("static").create(&pool.client).await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    rejoin(&pool).await?;
    pool.is_held_because(
        "pod kube-system/reborn-slowly-static has been Ready since before this node was created",
    )
    .await?;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(pool.is_gated().await?, "opened before its time");
    pool.opens().await?;
    assert_eq!(pods_on(&pool.client, pool.name).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn the_csi_node_of_the_earlier_node_counts_for_nothing() -> Result<()> {
    let pool = Pool::under_gardeners_rule("reborn-csi").await?;
    let driver = "x.csi.example.com";
    let first = pool.join(pool.node()).await?;
    set_csi_drivers(&pool.client, &first, &[driver]).await?;
    let csi_nodes: Api<CSINode> = Api::all(pool.client.clone());
    let set_finalizers = async |finalizers: &[&str]| {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        csi_nodes
            .patch(pool.name, &PatchParams::default(), &patch)
            .await
    };
    // The garbage collector would delete it within moments, or minutes on a busy cluster: a finalizer keeps it.
    set_finalizers(&["example.com/kept"]).await?;
    delete_node(&pool.client, pool.name).await?;
    pool.pod("driver")
        .wait_for_csi_driver("x", driver)
        .never_ready()
        .create(&pool.client)
        .await?;
    let second = pool.join(pool.node()).await?;
    pool.set_pod_ready("driver", true).await?;
    pool.is_held_because(&format!(
        "CSI driver {driver} is not registered on this node"
    ))
    .await?;
    let old = csi_nodes.get(pool.name).await?;
    assert_eq!(old.spec.drivers[0].name, driver, "the old CSINode is gone");

    set_finalizers(&[]).await?;
    eventually("the old CSINode is collected", SOON, async || {
        Ok(csi_nodes.get_opt(pool.name).await?.is_none())
    })
    .await?;
    pool.stays_closed().await?;
    set_csi_drivers(&pool.client, &second, &[driver]).await?;
    pool.opens().await?;
    Ok(())
}
