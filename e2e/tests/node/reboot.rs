//! A node reboots: its pods exist, but nothing runs in them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use serde_json::json;
use testkit::nodegate::NodeHistory;
use testkit::nodegate::fixtures::rule;
use testkit::nodegate::never;
use testkit::nodegate::state::{node, reasons_about};
use testkit::realnode::Times;
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, options};

use crate::scene::{CRITICAL, Scene, TAINT, critical_rule, gatings};

/// The key of a taint that gates nodes again after a reboot.
const AGAIN: &str = "readiness.k8s.io/again";

async fn boot_id(scene: &Scene) -> Result<String> {
    let status = node(&scene.client, NAME).await?.status;
    let info = status.and_then(|status| status.node_info);
    Ok(info.context("nothing is known of the node")?.boot_id)
}

#[test]
fn a_reboot_gates_the_node_again_only_under_the_rule_that_says_so() -> Result<()> {
    alone(async || {
        let again = rule("again", AGAIN)
            .waits_for(CRITICAL)
            .bootstrap_only()
            .nodegate("regateOn", json!(["Reboot"]));
        let once = critical_rule().bootstrap_only();
        let scene = Scene::start(options(), vec![again, once]).await?;
        let mut real = scene.released_node().await?;
        let times = Times::since("released for the other rule");
        scene.is_released(&times, AGAIN).await?;
        times
            .until("both rules are through with it", async || {
                let node = node(&scene.client, NAME).await?;
                let keys = node.annotations().keys();
                let completed = |key: &&String| key.contains("bootstrap-completed-");
                Ok(keys.filter(completed).count() == 2)
            })
            .await?;
        let before = boot_id(&scene).await?;
        let history = NodeHistory::of_nodes(&scene.client).await?;

        real.go_down()?;
        let times = Times::since("it boots again");
        real.come_up().await?;
        times
            .until("the kubelet says that it has rebooted", async || {
                Ok(boot_id(&scene).await? != before)
            })
            .await?;
        scene.is_gated(&times, AGAIN).await?;
        scene.is_released(&times, AGAIN).await?;
        // By then the kubelet has removed the driver from the CSINode and added it again.
        never("the driver goes", Duration::from_secs(3), async || {
            Ok(!scene.has_driver().await?)
        })
        .await?;
        scene.pod_turns(&times, "cni", true).await?;
        scene.pod_turns(&times, "csi", true).await?;
        scene.node_turns(&times, "True").await?;
        let history = scene.history(&history).await?;
        ensure!(gatings(&history, AGAIN) == 1);
        ensure!(gatings(&history, TAINT) == 0);
        let told = reasons_about(&scene.client, "Node", NAME).await?;
        ensure!(told.contains(&"Rebooted".to_owned()), "{told:?}");
        Ok(())
    })
}
