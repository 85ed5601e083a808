//! Excerpts of the `DaemonSet`s of Cilium, the EBS driver, and the GPU Operator with Node Feature Discovery together in one
//! cluster, with the traps of their defaults.

use std::path::Path;

use anyhow::{Context, Result};
use nodegate_tests::has_words;
use serde_json::Value;
use testkit::nodegate::fixtures::{NodeBuilder, node, rule, set_csi_drivers};
use testkit::nodegate::{eventually_eq, state};

use crate::scene::{SOON, Scene, read};

const NETWORK: &str = "readiness.k8s.io/network";
const STORAGE: &str = "readiness.k8s.io/storage";
const GPU: &str = "readiness.k8s.io/gpu";
const WORKER: &str = "gpu-operator-node-feature-discovery-worker";
const PLUGIN: &str = "nvidia-device-plugin-daemonset";
const EBS: &str = "ebs.csi.aws.com";

/// A node of the GPU pool, as Karpenter registers it.
fn of_the_gpu_pool(name: &str) -> NodeBuilder {
    let node = node(name)
        .label("kubernetes.io/os", "linux")
        .label("example.com/pool", "gpu")
        .taint("nvidia.com/gpu", "NoSchedule");
    [NETWORK, STORAGE, GPU]
        .into_iter()
        .fold(node, |node, taint| node.taint(taint, "NoSchedule"))
}

/// Labels the node as Node Feature Discovery and the operator do once the GPU is detected.
async fn label_as_the_operator_does(scene: &Scene, node: &str) -> Result<()> {
    let label = format!("label node {node} nvidia.com/gpu.deploy.device-plugin=true");
    scene.cluster.types(&label).await.map(drop)
}

#[tokio::test]
async fn the_worker_as_shipped_never_starts_and_the_rule_says_so() -> Result<()> {
    const EAGER: &str = "readiness.k8s.io/eager";
    let scene = Scene::of("your-stack", None).await?;
    scene.apply("your-stack/worker-as-shipped.yaml").await?;
    // A rule that names a DaemonSet in the middle of the chain.
    rule("eager", EAGER)
        .waits_for(&format!("daemonset.nodegate.dev/gpu-operator.{PLUGIN}"))
        .selects("example.com/pool", "gpu")
        .create(&scene.client)
        .await?;
    let new = of_the_gpu_pool("gpu-1").taint(EAGER, "NoSchedule");
    scene.join(new).await?;
    let said = scene.says("gpu-ready", "DaemonSetsShutOut").await?;
    has_words(&said, &format!("gpu-operator/{WORKER}"))?;
    // That rule's taint goes: without the worker's labels, the DaemonSet does not match the node.
    scene.has_taint("gpu-1", EAGER, false).await?;

    // Everything else is ready, but there is no worker, so no labels and no GPU.
    scene.set_ready("cilium", "gpu-1", true).await?;
    scene.has_taint("gpu-1", NETWORK, false).await?;
    scene.turn_ready("gpu-1").await?;
    let resource = "resource.nodegate.dev/nvidia.com/gpu";
    scene
        .is_unmet("gpu-1", resource, "no nvidia.com/gpu")
        .await?;
    scene.keeps_taint("gpu-1", GPU, true).await?;
    let pods = state::pods_on(&scene.client, "gpu-1").await?;
    let names = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
    let names: Vec<_> = names.filter(|name| name.starts_with("gpu-")).collect();
    assert!(names.is_empty(), "{names:?}");

    // With the tolerations of gpu-operator-values.yaml it starts.
    scene.apply("your-stack/daemon-sets.yaml").await?;
    scene.set_ready(WORKER, "gpu-1", true).await?;
    label_as_the_operator_does(&scene, "gpu-1").await?;
    scene.offer_gpus("gpu-1", "8").await?;
    scene.has_taint("gpu-1", GPU, false).await?;
    for name in ["network-ready", "storage-ready", "gpu-ready"] {
        let what = format!("{name} shuts nothing out");
        eventually_eq(&what, SOON, false, async || {
            let kind = "DaemonSetsShutOut";
            let said = state::rule_condition(&scene.client, name, kind).await?;
            Ok(said["status"] == "True")
        })
        .await?;
    }

    // A node of another pool waits for no GPU.
    let worker = node("worker-1").label("kubernetes.io/os", "linux");
    scene.join(worker).await?;
    for taint in [NETWORK, STORAGE] {
        scene.has_taint("worker-1", taint, true).await?;
    }
    scene.has_taint("worker-1", GPU, false).await
}

#[tokio::test]
async fn labels_on_pod_templates_alone_make_no_class() -> Result<()> {
    const PLATFORM: &str = "readiness.k8s.io/platform";
    let values: Value = read("your-stack/class-values.yaml")?;
    let configuration = Path::new(env!("CARGO_TARGET_TMPDIR")).join("your-stack.yaml");
    std::fs::write(&configuration, values["config"].to_string())?;
    let configuration = configuration.to_str().context("an odd path")?;
    let scene = Scene::of("your-stack/class-rules.yaml", Some(configuration)).await?;
    scene.apply("your-stack/daemon-sets.yaml").await?;
    scene.says("platform", "NothingToWaitFor").await?;

    // Set by hand, as the values file advises; upgrades keep it.
    for daemon_set in ["cilium", "ebs-csi-node"] {
        let label =
            format!("-n kube-system label daemonset {daemon_set} example.com/node-critical=true");
        scene.cluster.types(&label).await?;
    }
    eventually_eq(
        "there is something to wait for",
        SOON,
        Value::Null,
        async || {
            let kind = "NothingToWaitFor";
            let said = state::rule_condition(&scene.client, "platform", kind).await?;
            Ok(said["status"].clone())
        },
    )
    .await?;
    let worker = node("worker-1").label("kubernetes.io/os", "linux");
    let worker = scene.join(worker).await?;
    scene.has_taint("worker-1", PLATFORM, true).await?;
    scene.set_ready("cilium", "worker-1", true).await?;
    scene.set_ready("ebs-csi-node", "worker-1", true).await?;
    scene.keeps_taint("worker-1", PLATFORM, true).await?;
    set_csi_drivers(&scene.client, &worker, &[EBS]).await?;
    scene.has_taint("worker-1", PLATFORM, false).await
}
