//! What happens to a released node under continuous rules.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testkit::nodegate::fixtures::{RuleBuilder, rule};
use testkit::nodegate::state::{is_ready, node_condition, pods_on};
use testkit::nodegate::{NodeHistory, Options};
use testkit::realnode::Times;
use testkit::realnode::components::NETWORK;
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, options};

use crate::scene::{CRITICAL, Scene, TAINT, critical_rule, gatings};

/// The key of the taint of a rule with a grace period.
const PATIENT: &str = "readiness.k8s.io/patient";

/// A silent node is marked not Ready sooner than by default.
const GRACE_PERIOD: Duration = Duration::from_secs(12);

fn patient() -> RuleBuilder {
    rule("patient", PATIENT)
        .waits_for(CRITICAL)
        .nodegate("gracePeriod", json!("1m"))
}

/// How often a pod's containers have restarted.
fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter();
    let containers = containers.flat_map(|status| status.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).sum()
}

#[test]
fn a_network_that_dies_holds_the_node_until_it_is_back() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule(), patient()]).await?;
        let node = scene.released_node().await?;
        // The kubelet's first restart is immediate, which may be too fast for the pod to become not Ready.
        let times = Times::since("the network's process is killed");
        node.kill(NETWORK)?;
        times
            .until("it has been started again", async || {
                let pods = pods_on(&scene.client, NAME).await?;
                Ok(pods.iter().any(|pod| is_ready(pod) && restarts(pod) == 1))
            })
            .await?;
        let times = Times::since("it is killed again");
        node.kill(NETWORK)?;
        scene.pod_turns(&times, "cni", false).await?;
        scene.is_gated(&times, TAINT).await?;
        scene.pod_turns(&times, "cni", true).await?;
        scene.is_released(&times, TAINT).await?;
        ensure!(!scene.is_held(PATIENT).await?);
        Ok(())
    })
}

#[test]
fn a_network_that_is_removed_turns_the_node_not_ready_and_gates_it() -> Result<()> {
    alone(async || {
        let ready = rule("ready", "readiness.k8s.io/ready").waits_for("Ready");
        let scene = Scene::start(options(), vec![critical_rule(), ready]).await?;
        let node = scene.released_node().await?;
        let times = Times::since("the network's configuration is removed");
        node.remove_network()?;
        scene.node_turns(&times, "False").await?;
        scene.is_gated(&times, "readiness.k8s.io/ready").await?;
        // The start of a pod installs it.
        node.kill(NETWORK)?;
        let times = Times::since("the network's pod is killed");
        scene.node_turns(&times, "True").await?;
        scene.is_released(&times, "readiness.k8s.io/ready").await
    })
}

#[test]
fn a_kubelet_that_restarts_gates_the_node_for_a_moment_at_most() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule(), patient()]).await?;
        let mut node = scene.released_node().await?;
        let history = NodeHistory::of_nodes(&scene.client).await?;
        let beat = async || {
            let ready = node_condition(&scene.client, NAME, "Ready").await?;
            anyhow::Ok(ready.and_then(|ready| ready.last_heartbeat_time))
        };
        for _ in 0..2 {
            let before = beat().await?;
            node.stop_kubelet();
            let times = Times::since("the kubelet is started again");
            node.start_kubelet()?;
            times
                .until("the node beats", async || Ok(beat().await? > before))
                .await?;
            // Probes run a moment later.
            tokio::time::sleep(Duration::from_secs(3)).await;
            scene.is_released(&times, TAINT).await?;
        }
        let history = scene.history(&history).await?;
        let held = gatings(&history, PATIENT);
        ensure!(held == 0, "gated {held} times by the patient rule");
        Ok(())
    })
}

#[test]
fn a_kubelet_that_freezes_gates_the_node_until_it_thaws() -> Result<()> {
    alone(async || {
        let options = Options {
            grace_period: Some(GRACE_PERIOD),
            ..options()
        };
        let scene = Scene::start(options, vec![critical_rule()]).await?;
        let node = scene.released_node().await?;
        let times = Times::since("the kubelet is frozen");
        node.kubelet()?.pause()?;
        scene.node_turns(&times, "Unknown").await?;
        scene.is_gated(&times, TAINT).await?;
        let times = Times::since("it thaws");
        node.kubelet()?.resume()?;
        scene.node_turns(&times, "True").await?;
        scene.is_released(&times, TAINT).await
    })
}
