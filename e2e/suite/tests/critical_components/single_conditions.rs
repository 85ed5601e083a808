//! Synthesized conditions without a class: one CSI driver, one extended resource.

use anyhow::Result;
use nodegate_testbed::changes::patch_node_status;
use nodegate_testbed::fixtures::set_csi_drivers;
use serde_json::json;

use crate::NO_SCHEDULE;
use crate::pool::Pool;

#[tokio::test]
async fn a_rule_can_wait_for_one_csi_driver() -> Result<()> {
    let pool = Pool::under_gardeners_rule("one-driver").await?;
    let condition = "csidriver.nodegate.dev/ebs.csi.aws.com";
    pool.enforce(pool.rule().bootstrap_only().waits_for(condition))
        .await?;
    let node = pool
        .join(pool.unattended_node().taint(&pool.own_taint(), NO_SCHEDULE))
        .await?;
    let missing = "CSI driver ebs.csi.aws.com is not registered on this node";
    pool.says(condition, "False", missing).await?;
    set_csi_drivers(&pool.client, &node, &["efs.csi.aws.com"]).await?;
    assert!(pool.has_own_taint().await?);
    set_csi_drivers(&pool.client, &node, &["efs.csi.aws.com", "ebs.csi.aws.com"]).await?;
    pool.gets_own_taint(false).await?;
    let there = "every CSI driver that is waited for is registered";
    pool.says(condition, "True", there).await
}

#[tokio::test]
async fn a_rule_can_wait_for_an_extended_resource() -> Result<()> {
    let pool = Pool::under_gardeners_rule("gpu-node").await?;
    let condition = "resource.nodegate.dev/nvidia.com/gpu";
    pool.enforce(pool.rule().waits_for(condition)).await?;
    pool.join(pool.unattended_node()).await?;
    pool.gets_own_taint(true).await?;
    let none = "this node has no nvidia.com/gpu to allocate";
    pool.says(condition, "False", none).await?;
    let set = async |count: &str| {
        let amount = json!({"nvidia.com/gpu": count});
        let patch = json!({"status": {"allocatable": amount, "capacity": amount}});
        patch_node_status(&pool.client, pool.name, &patch).await
    };
    // The device plugin has registered, but no device is healthy.
    set("0").await?;
    pool.says(condition, "False", none).await?;
    assert!(pool.has_own_taint().await?);
    set("8").await?;
    pool.gets_own_taint(false).await?;
    pool.says(
        condition,
        "True",
        "this node has nvidia.com/gpu to allocate",
    )
    .await?;
    // The kubelet reports none while the device plugin restarts.
    set("0").await?;
    pool.gets_own_taint(true).await
}
