//! Nodes that reboot, under a rule that closes them again.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::{patch_node_status, set_node_condition};
use nodegate_testbed::fixtures::{self, RuleBuilder, set_csi_drivers};
use nodegate_testbed::{Controller, eventually, never, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, SOON, client, eventually_gated, eventually_open, is_gated, node, own_cluster,
    rule, stays_open,
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

/// Run by [`what_takes_a_minute`](super::what_takes_a_minute).
pub(crate) async fn a_condition_from_before_a_reboot_is_not_believed_after_a_minute() -> Result<()>
{
    let client = client().await?;
    regating("believes").create(&client).await?;
    node("believes", "believes", "True")
        .boot_id("boot-1")
        .create(&client)
        .await?;
    eventually_completed(&client, "believes", "boot-1").await?;
    reboot(&client, "believes", "boot-2").await?;
    eventually_gated(&client, "believes", "believes").await?;
    tokio::time::sleep(Duration::from_secs(65)).await;
    ensure!(
        is_gated(&client, "believes", "believes").await?,
        "nothing has been written since"
    );
    set_node_condition(&client, "believes", READY, "True").await?;
    eventually_open(&client, "believes", "believes").await
}

#[tokio::test]
async fn a_driver_from_before_a_reboot_counts_once_it_is_registered_again() -> Result<()> {
    const TEST: &str = "driver";
    const DRIVER: &str = "disk.csi.example.com";
    let client = client().await?;
    fixtures::rule(TEST, &super::key(TEST))
        .selects(super::TEST, TEST)
        .waits_for("csidriver.nodegate.dev/disk.csi.example.com")
        .bootstrap_only()
        .spec("regateOnReboot", json!(true))
        .create(&client)
        .await?;
    let node = node(TEST, TEST, "True")
        .boot_id("boot-1")
        .create(&client)
        .await?;
    set_csi_drivers(&client, &node, &[DRIVER]).await?;
    eventually_completed(&client, TEST, "boot-1").await?;
    reboot(&client, TEST, "boot-2").await?;
    eventually_gated(&client, TEST, TEST).await?;
    never("it is believed", A_WHILE, async || {
        Ok(!is_gated(&client, TEST, TEST).await?)
    })
    .await?;
    // The kubelet removes it when its socket goes, and adds it again.
    set_csi_drivers(&client, &node, &[]).await?;
    set_csi_drivers(&client, &node, &[DRIVER]).await?;
    eventually_completed(&client, TEST, "boot-2").await?;
    eventually_open(&client, TEST, TEST).await
}

#[tokio::test]
async fn a_reboot_while_no_controller_runs_is_made_good() -> Result<()> {
    let (cluster, client) = own_cluster().await?;
    let controller = Controller::start(&cluster, &[]).await?;
    regating("away").create(&client).await?;
    for name in ["away-rebooted", "away-running"] {
        node("away", name, "True")
            .boot_id("boot-1")
            .create(&client)
            .await?;
        eventually_completed(&client, name, "boot-1").await?;
    }
    ensure!(controller.stop().await?.success(), "it did not stop");
    reboot(&client, "away-rebooted", "boot-2").await?;
    for name in ["away-rebooted", "away-running"] {
        set_node_condition(&client, name, READY, "False").await?;
    }
    let _controller = Controller::start(&cluster, &[])
        .await?
        .unasked("no kubelet's Ready tells here when the node has rebooted");
    eventually_gated(&client, "away-rebooted", "away").await?;
    stays_open(&client, "away-running", "away", A_WHILE).await
}
