//! Pods that are terminating, or done.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use nodegate_testbed::changes::delete_pod;
use serde_json::json;

use crate::pool::{NAMESPACE, Pool};

async fn set_phase(pool: &Pool, pod: &str, phase: &str) -> Result<()> {
    Api::<Pod>::namespaced(pool.client.clone(), NAMESPACE)
        .patch_status(
            pod,
            &PatchParams::default(),
            &Patch::Merge(json!({"status": {"phase": phase}})),
        )
        .await?;
    Ok(())
}

/// Deletes a pod, which waits for its kubelet's confirmation.
async fn ask_to_go(pool: &Pool, pod: &str) -> Result<()> {
    Api::<Pod>::namespaced(pool.client.clone(), NAMESPACE)
        .delete(pod, &DeleteParams::default().grace_period(600))
        .await?;
    Ok(())
}

async fn is_terminating(pool: &Pool, pod: &str) -> Result<bool> {
    let pods = Api::<Pod>::namespaced(pool.client.clone(), NAMESPACE);
    Ok(pods.get(pod).await?.metadata.deletion_timestamp.is_some())
}

#[tokio::test]
async fn pods_without_an_owner_that_have_ended_are_not_waited_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("ended").await?;
    for name in ["holder", "succeeded", "failed"] {
        pool.pod(name).never_ready().create(&pool.client).await?;
    }
    pool.join(pool.unattended_node()).await?;
    pool.is_held_because("pods kube-system/ended-failed, kube-system/ended-holder, kube-system/ended-succeeded are not Ready")
        .await?;
    set_phase(&pool, "ended-succeeded", "Succeeded").await?;
    set_phase(&pool, "ended-failed", "Failed").await?;
    pool.is_held_because("pod kube-system/ended-holder is not Ready")
        .await?;
    set_phase(&pool, "ended-holder", "Succeeded").await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_terminating_pod_of_a_daemon_set_satisfies_nothing() -> Result<()> {
    let pool = Pool::under_gardeners_rule("terminating").await?;
    pool.pod("holder")
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.daemon_set("cni").create(&pool.client).await?;
    pool.join(pool.unattended_node()).await?;
    let first = pool.pod_of("cni").await?;
    pool.set_ready_in(NAMESPACE, &first, true).await?;
    pool.is_held_because("pod kube-system/terminating-holder is not Ready")
        .await?;
    ask_to_go(&pool, &first).await?;
    pool.set_pod_ready("holder", true).await?;
    pool.is_held_for_want_of("cni").await?;
    assert!(is_terminating(&pool, &first).await?);

    delete_pod(&pool.client, NAMESPACE, &first).await?;
    pool.set_ready("cni", true).await?;
    pool.opens().await?;
    Ok(())
}
