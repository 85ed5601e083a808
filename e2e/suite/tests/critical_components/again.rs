//! A node that is recreated under its name, while the pods of the earlier one still exist.

use std::time::Duration;

use anyhow::Result;
use nodegate_testbed::changes::{delete_node, delete_pod};

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
