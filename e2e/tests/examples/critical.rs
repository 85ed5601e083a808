//! Examples about critical components.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use nodegate_tests::has_words;
use serde_json::json;
use testkit::nodegate::changes::{delete_pod, patch_node, patch_node_status, set_pod_succeeded};
use testkit::nodegate::fixtures::{NodeBuilder, node, pod, set_csi_drivers};
use testkit::nodegate::{NodeHistory, never};

use crate::scene::{A_WHILE, Scene};

const NETWORK_READY: &str = "node.gardener.cloud/CriticalComponentsReady";
const NO_SCHEDULE: &str = "NoSchedule";
/// The `DaemonSet` of the example of a CNI.
const PLUGIN: &str = "example-network-plugin";

/// A node of the GPU pool.
fn gpu() -> NodeBuilder {
    node("gpu-1").label("example.com/pool", "gpu")
}

#[tokio::test]
async fn examples_cni() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/cni";
    let scene = Scene::of("cni", None).await?;
    waits_for_the_plugin(&scene, TAINT, NETWORK_READY).await?;

    // An update of the plugin gates nothing.
    scene.set_ready(PLUGIN, "worker", false).await?;
    scene.keeps_taint("worker", TAINT, false).await?;
    scene.set_ready(PLUGIN, "worker", true).await?;

    // Neither does a new rule while the plugin is ready.
    scene.delete_rule("cni").await?;
    let history = NodeHistory::of_nodes(&scene.client).await?;
    scene.apply("cni").await?;
    scene.keeps_taint("worker", TAINT, false).await?;
    scene.gated_none(&history, "worker", TAINT).await?;

    // The example is removed while a node waits.
    scene.join(node("late")).await?;
    scene.has_taint("late", TAINT, true).await?;
    scene.delete_rule("cni").await?;
    scene.has_taint("late", TAINT, false).await
}

/// A node joins, and waits for the plugin by this condition.
async fn waits_for_the_plugin(scene: &Scene, taint: &str, condition: &str) -> Result<()> {
    scene.join(node("worker")).await?;
    scene.has_taint("worker", taint, true).await?;
    scene.pod(PLUGIN, "worker").await?;
    scene.is_unmet("worker", condition, "not Ready").await?;
    scene.keeps_taint("worker", taint, true).await?;
    scene.set_ready(PLUGIN, "worker", true).await?;
    scene.has_taint("worker", taint, false).await
}

#[tokio::test]
async fn examples_cni_by_name() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/cni-by-name";
    const READY: &str = "daemonset.nodegate.dev/kube-system.example-network-plugin";
    let scene = Scene::of("cni/by-name.yaml", None).await?;
    scene.apply("cni/daemon-set.yaml").await?;
    scene.join(node("dry")).await?;
    scene.keeps_taint("dry", TAINT, false).await?;
    scene.in_earnest("cni-by-name").await?;
    waits_for_the_plugin(&scene, TAINT, READY).await
}

#[tokio::test]
async fn examples_csi() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/storage";
    let scene = Scene::of("csi", None).await?;
    let worker = scene.join(node("worker")).await?;
    scene.has_taint("worker", TAINT, true).await?;
    scene.set_ready("example-csi-node", "worker", true).await?;
    let words = "CSI driver csi.example.com is not registered on this node";
    scene.is_unmet("worker", NETWORK_READY, words).await?;
    scene.keeps_taint("worker", TAINT, true).await?;
    set_csi_drivers(&scene.client, &worker, &["csi.example.com"]).await?;
    scene.has_taint("worker", TAINT, false).await
}

#[tokio::test]
async fn examples_csi_by_registration_alone() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/storage";
    let scene = Scene::of("csi/driver-rule.yaml", None).await?;
    let worker = scene.join(node("worker")).await?;
    scene.has_taint("worker", TAINT, true).await?;
    set_csi_drivers(&scene.client, &worker, &["other.example.com"]).await?;
    scene.keeps_taint("worker", TAINT, true).await?;
    set_csi_drivers(&scene.client, &worker, &["csi.example.com"]).await?;
    scene.has_taint("worker", TAINT, false).await
}

#[tokio::test]
async fn examples_gpu() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/gpu";
    const COMPONENTS: &str = "gpu.example.com/CriticalComponentsReady";
    const RESOURCE: &str = "resource.nodegate.dev/nvidia.com/gpu";
    let scene = Scene::of("gpu", Some("gpu/config.yaml")).await?;
    scene.join(gpu()).await?;
    scene.join(node("other")).await?;
    scene.has_taint("gpu-1", TAINT, true).await?;
    for (condition, words) in [
        (COMPONENTS, "no pod on this node"),
        (RESOURCE, "this node has no nvidia.com/gpu"),
    ] {
        scene.is_unmet("gpu-1", condition, words).await?;
    }
    scene.turn_ready("gpu-1").await?;
    for daemon_set in ["example-gpu-driver", "example-device-plugin"] {
        scene.keeps_taint("gpu-1", TAINT, true).await?;
        scene.set_ready(daemon_set, "gpu-1", true).await?;
    }
    scene.keeps_taint("gpu-1", TAINT, true).await?;
    scene.offer_gpus("gpu-1", "8").await?;
    scene.has_taint("gpu-1", TAINT, false).await?;
    scene.keeps_taint("other", TAINT, false).await
}

#[tokio::test]
async fn examples_gpu_by_count() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/gpu-by-count";
    let scene = Scene::of("gpu/by-count.yaml", None).await?;
    scene.join(gpu()).await?;
    scene.has_taint("gpu-1", TAINT, true).await?;
    // GPU feature discovery.
    let label = json!({"metadata": {"labels": {"nvidia.com/gpu.count": "8"}}});
    patch_node(&scene.client, "gpu-1", &label).await?;
    scene.offer_gpus("gpu-1", "7").await?;
    scene.keeps_taint("gpu-1", TAINT, true).await?;
    scene.offer_gpus("gpu-1", "8").await?;
    scene.has_taint("gpu-1", TAINT, false).await
}

#[tokio::test]
async fn examples_mig() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/mig";
    const STATE: &str = "label.nodegate.dev/nvidia.com/mig.config.state";
    let scene = Scene::of("mig/rule.yaml", None).await?;
    scene
        .join(node("mig-1").label("example.com/pool", "mig"))
        .await?;
    scene.has_taint("mig-1", TAINT, true).await?;
    scene
        .is_unmet("mig-1", STATE, "this node has no label")
        .await?;
    let labelled = |state| json!({"metadata": {"labels": {"nvidia.com/mig.config.state": state}}});
    patch_node(&scene.client, "mig-1", &labelled("pending")).await?;
    scene.keeps_taint("mig-1", TAINT, true).await?;
    patch_node(&scene.client, "mig-1", &labelled("success")).await?;
    scene.has_taint("mig-1", TAINT, false).await
}

#[tokio::test]
async fn examples_gpu_while_the_driver_is_updated() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/gpu";
    const DRIVER: &str = "example-gpu-driver";
    let scene = Scene::of("gpu/driver-rule.yaml", None).await?;
    scene.apply("gpu/daemon-sets.yaml").await?;
    scene.join(gpu()).await?;
    scene.has_taint("gpu-1", TAINT, true).await?;
    scene.turn_ready("gpu-1").await?;
    scene.set_ready(DRIVER, "gpu-1", true).await?;
    scene.has_taint("gpu-1", TAINT, false).await?;
    // Neither a pod that is not Ready nor its successor of the same revision gates the node.
    scene.set_ready(DRIVER, "gpu-1", false).await?;
    let first = scene.pod(DRIVER, "gpu-1").await?;
    delete_pod(&scene.client, "kube-system", &first.name_any()).await?;
    scene.keeps_taint("gpu-1", TAINT, false).await?;
    scene.set_ready(DRIVER, "gpu-1", true).await?;

    let old = scene.pod(DRIVER, "gpu-1").await?;
    let update = "driver=registry.example.com/gpu-driver:2.0";
    let update = format!("-n kube-system set image daemonset/{DRIVER} {update}");
    scene.cluster.types(&update).await?;
    scene.has_taint("gpu-1", TAINT, true).await?;
    // The kubelet has stopped it.
    delete_pod(&scene.client, "kube-system", &old.name_any()).await?;
    scene.keeps_taint("gpu-1", TAINT, true).await?;
    scene.set_ready(DRIVER, "gpu-1", true).await?;
    scene.has_taint("gpu-1", TAINT, false).await
}

/// Follows a node of the Gardener example from its registration until its components in `kube-system` are ready.
async fn join_gardener(scene: &Scene, taint: &str) -> Result<()> {
    let worker = scene.join(node("worker").taint(taint, NO_SCHEDULE)).await?;
    scene.is_unmet("worker", NETWORK_READY, "not Ready").await?;
    scene.pod("example-agent", "worker").await?;
    scene.set_ready("example-network", "worker", true).await?;
    scene.keeps_taint("worker", taint, true).await?;
    set_csi_drivers(&scene.client, &worker, &["csi.example.com"]).await?;
    Ok(())
}

const GARDENERS: &str = "node.gardener.cloud/critical-components-not-ready";

#[tokio::test]
async fn examples_gardener_in_all_namespaces() -> Result<()> {
    let scene = Scene::of("gardener", Some("gardener/all-namespaces.yaml")).await?;
    join_gardener(&scene, GARDENERS).await?;
    let words = "pod example-agents/example-agent-";
    scene.is_unmet("worker", NETWORK_READY, words).await?;
    scene.keeps_taint("worker", GARDENERS, true).await?;
    scene.set_ready("example-agent", "worker", true).await?;
    scene.has_taint("worker", GARDENERS, false).await?;
    let reasons = ["UnreadyNodeCriticalPods", "NodeCriticalComponentsReady"];
    scene.has_events("worker", &reasons).await?;

    // Deleting the rule leaves the taints to the next controller.
    scene
        .join(node("late").taint(GARDENERS, NO_SCHEDULE))
        .await?;
    scene.is_unmet("late", NETWORK_READY, "not Ready").await?;
    scene.delete_rule("gardener-critical-components").await?;
    scene.keeps_taint("late", GARDENERS, true).await
}

#[tokio::test]
async fn examples_gardener_in_kube_system_only() -> Result<()> {
    let scene = Scene::of("gardener", None).await?;
    join_gardener(&scene, GARDENERS).await?;
    scene.has_taint("worker", GARDENERS, false).await?;
    let outside = "DaemonSetsOutsideNamespaces";
    let said = scene.says("gardener-critical-components", outside).await?;
    let other = "DaemonSet example-agents/example-agent";
    has_words(&said, other)?;
    Ok(())
}

#[tokio::test]
async fn examples_security_agent() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/security-agent";
    const AGENT: &str = "example-security-agent";
    let scene = Scene::of("security-agent", Some("security-agent/config.yaml")).await?;
    scene.in_earnest("security-agent").await?;
    let nodes = ["worker-1", "worker-2", "worker-3"];
    for name in nodes {
        scene.join(node(name)).await?;
        // The grace period does not apply to a joining node.
        scene.has_taint(name, TAINT, true).await?;
        scene.set_ready(AGENT, name, true).await?;
        scene.has_taint(name, TAINT, false).await?;
    }

    // An update: node by node, the pod goes and another one comes.
    let history = NodeHistory::of_nodes(&scene.client).await?;
    for name in nodes {
        let pod = scene.pod(AGENT, name).await?;
        let old = pod.metadata.name.unwrap_or_default();
        delete_pod(&scene.client, "kube-system", &old).await?;
        scene.set_ready(AGENT, name, true).await?;
    }
    scene.keeps_taint("worker-1", TAINT, false).await?;
    scene.gated_none(&history, "worker-1", TAINT).await?;

    // On one node it is gone for good.
    scene.cluster.idles();
    let since = Instant::now();
    scene.set_ready(AGENT, "worker-2", false).await?;
    scene.has_taint("worker-2", TAINT, true).await?;
    ensure!(since.elapsed() >= Duration::from_secs(30), "too early");
    scene.set_ready(AGENT, "worker-2", true).await?;
    scene.has_taint("worker-2", TAINT, false).await?;

    // On all nodes at once: the disruption limit keeps them released.
    for name in nodes {
        scene.set_ready(AGENT, name, false).await?;
    }
    scene.says("security-agent", "DisruptionLimited").await?;
    for name in nodes {
        scene.keeps_taint(name, TAINT, false).await?;
    }
    Ok(())
}

#[tokio::test]
async fn examples_check() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/gpu-check";
    const CHECK: &str = "check.nodegate.dev/node-checks.nccl";
    let scene = Scene::of("check", None).await?;
    scene.join(gpu()).await?;
    scene.has_taint("gpu-1", TAINT, true).await?;
    scene.turn_ready("gpu-1").await?;
    scene.set_ready("network-check", "gpu-1", true).await?;
    scene
        .is_unmet("gpu-1", CHECK, "no pod of check node-checks/nccl")
        .await?;
    let run = pod("node-checks/nccl-gpu-1-x7k2p").on("gpu-1");
    let run = run.label("nodegate.dev/check", "nccl");
    run.tolerate_everything().create(&scene.client).await?;
    scene.is_unmet("gpu-1", CHECK, "has not ended yet").await?;
    scene.keeps_taint("gpu-1", TAINT, true).await?;
    set_pod_succeeded(&scene.client, "node-checks", "nccl-gpu-1-x7k2p").await?;
    scene.has_taint("gpu-1", TAINT, false).await
}

#[tokio::test]
async fn examples_dra() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/dra";
    const DEVICES: &str = "resourceslice.nodegate.dev/gpu.nvidia.com";
    let scene = Scene::of("dra", None).await?;
    scene.join(gpu()).await?;
    scene.has_taint("gpu-1", TAINT, true).await?;
    scene.is_unmet("gpu-1", DEVICES, "published 0 of 0").await?;
    let slice: ResourceSlice = serde_json::from_value(json!({
        "metadata": {"name": "gpu-1"},
        "spec": {
            "driver": "gpu.nvidia.com", "nodeName": "gpu-1", "devices": [{"name": "gpu-0"}],
            "pool": {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1},
        },
    }))?;
    let slices: Api<ResourceSlice> = Api::all(scene.client.clone());
    slices.create(&PostParams::default(), &slice).await?;
    scene.has_taint("gpu-1", TAINT, false).await
}

#[tokio::test]
async fn examples_room_first() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/room-first";
    const BOUND: &str = "daemonsets.nodegate.dev/scheduled";
    let scene = Scene::of("room-first", None).await?;
    scene.apply("cni/daemon-set.yaml").await?;
    pod("default/workload").create(&scene.client).await?;
    let full = node("worker")
        .allocatable("cpu", "8")
        .allocatable("pods", "0");
    full.taint(TAINT, NO_SCHEDULE).create(&scene.client).await?;
    scene.is_unmet("worker", BOUND, "has no pod").await?;
    scene.turn_ready("worker").await?;
    scene.keeps_taint("worker", TAINT, true).await?;

    // There is room for one pod: the DaemonSet's gets it, and need not be Ready.
    let one = json!({"pods": "1"});
    let room = json!({"status": {"capacity": one, "allocatable": one}});
    patch_node_status(&scene.client, "worker", &room).await?;
    scene.pod(PLUGIN, "worker").await?;
    scene.has_taint("worker", TAINT, false).await?;
    let place = async || scene.place().await;
    never("workload takes the room", A_WHILE, place).await
}

#[tokio::test]
async fn examples_all_daemon_sets() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/all-daemon-sets";
    let scene = Scene::of("all-daemon-sets", None).await?;
    scene.apply("cni/daemon-set.yaml").await?;
    waits_for_the_plugin(&scene, TAINT, "daemonsets.nodegate.dev/all").await
}

#[tokio::test]
async fn examples_all_daemon_sets_but_one() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/all-but-storage";
    let scene = Scene::of("all-daemon-sets/except.yaml", None).await?;
    scene.apply("cni/daemon-set.yaml").await?;
    scene.apply("csi/daemon-set.yaml").await?;
    scene.join(node("worker")).await?;
    scene.has_taint("worker", TAINT, true).await?;
    let began = Instant::now();
    scene.set_ready(PLUGIN, "worker", true).await?;
    scene.has_taint("worker", TAINT, false).await?;
    let passed = began.elapsed();
    ensure!(
        passed >= Duration::from_secs(5),
        "released after {passed:?}"
    );
    Ok(())
}
