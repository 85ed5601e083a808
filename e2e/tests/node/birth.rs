//! A node joins: it is held from its registration until its components are ready.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use nodegate_tests::{A_WHILE, SOON};
use serde_json::json;
use testkit::nodegate::changes::delete_node;
use testkit::nodegate::fixtures::{RuleBuilder, rule};
use testkit::nodegate::install::config;
use testkit::nodegate::state::{count_taints, is_ready, node, pods_on};
use testkit::nodegate::{NodeHistory, eventually, never};
use testkit::realnode::components::{self, create_workload, set_ready};
use testkit::realnode::images::POD;
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, Setup, options};
use testkit::realnode::{RealNode, Times};

use crate::scene::{Scene, TAINT, critical_rule, held};

const WORKLOAD: &str = "shop";

/// The number of Ready workload pods.
async fn running(scene: &Scene) -> Result<usize> {
    let pods = pods_on(&scene.client, NAME).await?;
    let runs = |pod: &&Pod| pod.name_any().starts_with(WORKLOAD) && is_ready(pod);
    Ok(pods.iter().filter(runs).count())
}

/// The node was gated in its first state, and released exactly once.
fn was_held_from_the_start(history: &[Node]) -> Result<()> {
    let held = history.iter().map(|node| count_taints(node, TAINT) == 1);
    let mut held: Vec<bool> = held.collect();
    held.dedup();
    ensure!(held == [true, false], "held: {held:?}");
    Ok(())
}

/// Follows a joining node from the kubelet's start to the running workload.
async fn joins(scene: &Scene, setup: Setup) -> Result<RealNode> {
    let client = &scene.client;
    create_workload(client, WORKLOAD, 2).await?;
    let mut real = RealNode::prepare(&scene.cluster, setup).await?;
    let history = NodeHistory::of_nodes(client).await?;
    let times = Times::since("the kubelet is started");
    real.start_kubelet()?;
    times
        .until("it has registered, held, without a network", async || {
            let node = node(client, NAME).await?;
            let conditions = node.status.context("no status")?.conditions;
            let mut conditions = conditions.into_iter().flatten();
            let ready = conditions.find(|condition| condition.type_ == "Ready");
            let message = ready.and_then(|ready| ready.message).unwrap_or_default();
            Ok(message.contains("NetworkPluginNotReady"))
        })
        .await?;
    scene.pod_turns(&times, "cni", true).await?;
    scene.node_turns(&times, "True").await?;
    scene.pod_turns(&times, "csi", true).await?;
    scene.driver_registers(&times).await?;
    scene.is_released(&times, TAINT).await?;
    times
        .until("the workload runs", async || Ok(running(scene).await? == 2))
        .await?;
    was_held_from_the_start(&scene.history(&history).await?)?;
    Ok(real)
}

#[test]
fn a_node_that_registers_with_the_taint_is_held_until_its_driver_is_registered() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule().bootstrap_only()]).await?;
        joins(&scene, held()).await.map(drop)
    })
}

#[test]
fn a_node_that_registers_without_a_taint_is_gated_by_the_api_server() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule().bootstrap_only()]).await?;
        for folder in ["birth", "policy"] {
            scene.cluster.apply_path(&config(folder)).await?;
        }
        eventually_known(&scene).await?;
        joins(&scene, Setup::default()).await.map(drop)
    })
}

/// Waits until the policy knows the rule, a moment after both exist.
async fn eventually_known(scene: &Scene) -> Result<()> {
    let times = Times::since("the policy is applied");
    let tried = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "tried", "labels": {"kubernetes.io/os": "linux"}},
    });
    let file = scene.cluster.folder().join("tried.json");
    std::fs::write(&file, tried.to_string()).context("writing a node")?;
    times
        .until("it gates nodes", async || {
            gates_what_is_tried(scene, &file).await
        })
        .await
}

async fn gates_what_is_tried(scene: &Scene, file: &Path) -> Result<bool> {
    let file = file.to_string_lossy();
    let arguments = ["create", "--dry-run=server", "-o", "json", "-f", &file];
    let made = scene.cluster.kubectl(&arguments).await?;
    Ok(made.contains(TAINT))
}

#[test]
fn room_is_kept_until_the_pods_of_all_daemon_sets_are_bound_and_not_until_they_are_ready()
-> Result<()> {
    const ROOM: &str = "readiness.k8s.io/room";
    alone(async || {
        let room = rule("room", ROOM).waits_for("daemonsets.nodegate.dev/scheduled");
        let ready = rule("ready", TAINT).waits_for("daemonsets.nodegate.dev/all");
        let rules = [room, ready].map(RuleBuilder::bootstrap_only);
        let scene = Scene::start(options(), rules.into()).await?;
        let history = NodeHistory::of_nodes(&scene.client).await?;
        let mut real = RealNode::prepare(&scene.cluster, held().taint(ROOM, "NoSchedule")).await?;
        let times = Times::since("the kubelet is started");
        real.start_kubelet()?;
        times
            .until("it has registered", async || {
                Ok(node(&scene.client, NAME).await.is_ok())
            })
            .await?;
        scene.is_released(&times, ROOM).await?;
        scene.is_released(&times, TAINT).await?;
        let history = scene.history(&history).await?;
        let has = |node: &Node, key| count_taints(node, key) == 1;
        let mut states = history.iter();
        let is_between = states.any(|node| !has(node, ROOM) && has(node, TAINT));
        ensure!(is_between, "it had its room no sooner than all were Ready");
        Ok(())
    })
}

#[test]
fn a_node_that_is_deleted_and_registers_again_is_gated_again() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule().bootstrap_only()]).await?;
        let mut real = scene.released_node().await?;
        let first = node(&scene.client, NAME).await?.uid();
        real.go_down()?;
        delete_node(&scene.client, NAME).await?;
        eventually("it is gone", SOON, async || {
            Ok(node(&scene.client, NAME).await.is_err())
        })
        .await?;
        let history = NodeHistory::of_nodes(&scene.client).await?;
        let times = Times::since("the machine starts again");
        real.come_up().await?;
        times
            .until("it has registered", async || {
                Ok(node(&scene.client, NAME).await?.uid() != first)
            })
            .await?;
        scene.driver_registers(&times).await?;
        scene.is_released(&times, TAINT).await?;
        was_held_from_the_start(&scene.history(&history).await?)
    })
}

#[test]
fn a_static_pod_that_is_critical_is_waited_for() -> Result<()> {
    alone(async || {
        let scene = Scene::start(options(), vec![critical_rule().bootstrap_only()]).await?;
        let mut real = RealNode::prepare(&scene.cluster, held()).await?;
        let folder = components::agent_folder("proxy");
        real.add_static_pod(
            "proxy",
            &json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": "proxy",
                    "namespace": "kube-system",
                    "labels": {"node.gardener.cloud/critical-component": "true"},
                },
                "spec": {
                    "hostNetwork": true,
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main",
                        "image": POD,
                        "imagePullPolicy": "Never",
                        "command": ["/pod", "serve", folder.join("ready")],
                        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
                        "volumeMounts": [{"name": "state", "mountPath": folder}],
                    }],
                    "volumes": [{"name": "state", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}],
                },
            }),
        )?;
        let times = Times::since("the kubelet is started");
        real.start_kubelet()?;
        scene.node_turns(&times, "True").await?;
        scene.driver_registers(&times).await?;
        scene.pod_turns(&times, "csi", true).await?;
        never(
            "it is released without the static pod",
            3 * A_WHILE,
            async || Ok(!scene.is_held(TAINT).await?),
        )
        .await?;
        set_ready("proxy", true)?;
        let times = Times::since("the static pod is ready");
        scene.pod_turns(&times, "proxy", true).await?;
        scene.is_released(&times, TAINT).await
    })
}
