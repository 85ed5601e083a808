//! Nodes that reboot, under a rule that closes them again.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::{patch_node_status, set_node_condition};
use nodegate_testbed::fixtures::RuleBuilder;
use nodegate_testbed::{eventually, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, SOON, client, eventually_gated, eventually_open, node, rule, stays_open,
};

/// A rule that closes nodes when they start, and again after each reboot.
fn regating(test: &str) -> RuleBuilder {
    rule(test)
        .bootstrap_only()
        .spec("regateOnReboot", json!(true))
}

/// Reports a new boot, as the kubelet does after a reboot.
async fn reboot(client: &Client, node: &str, boot_id: &str) -> Result<()> {
    let patch = json!({"status": {"nodeInfo": {"bootID": boot_id}}});
    patch_node_status(client, node, &patch)
        .await
        .with_context(|| format!("rebooting {node}"))
}

/// Waits until the bootstrap is on record for this boot.
async fn eventually_completed(client: &Client, node: &str, boot_id: &str) -> Result<()> {
    let what = format!("{node} has completed its bootstrap in boot {boot_id}");
    eventually(&what, SOON, async || {
        let node = sights::node(client, node).await?;
        let mut annotations = node.annotations().iter();
        Ok(annotations.any(|(key, value)| {
            key.starts_with("readiness.k8s.io/bootstrap-completed-") && value.contains(boot_id)
        }))
    })
    .await
}

#[tokio::test]
async fn a_node_that_reboots_is_gated_until_its_evidence_is_renewed() -> Result<()> {
    let client = client().await?;
    regating("reboots").create(&client).await?;
    node("reboots", "reboots", "True")
        .boot_id("boot-1")
        .create(&client)
        .await?;
    eventually_completed(&client, "reboots", "boot-1").await?;
    set_node_condition(&client, "reboots", READY, "False").await?;
    stays_open(&client, "reboots", "reboots", A_WHILE).await?;
    set_node_condition(&client, "reboots", READY, "True").await?;
    // Times in the API are in whole seconds: a repeated write within the same second changes nothing.
    tokio::time::sleep(Duration::from_millis(1100)).await;

    reboot(&client, "reboots", "boot-2").await?;
    eventually_gated(&client, "reboots", "reboots").await?;
    set_node_condition(&client, "reboots", READY, "True").await?;
    eventually_open(&client, "reboots", "reboots").await?;
    eventually_completed(&client, "reboots", "boot-2").await
}
