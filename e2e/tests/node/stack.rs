//! Other projects' `DaemonSet`s, as in `examples/your-stack`, and Node Problem Detector's: their names, labels, selectors and
//! tolerations around simulated processes. None of their own programs runs.

use std::path::Path;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::ResourceExt;
use nodegate_tests::A_WHILE;
use serde_json::{Value, json};
use testkit::nodegate::fixtures::rule;
use testkit::nodegate::install::example;
use testkit::nodegate::never;
use testkit::nodegate::state::{is_ready, pods_on};
use testkit::realnode::components::{
    DETECTOR, agent, create, detector, devices, driver, log_of_kernel, network, set_ready,
};
use testkit::realnode::images::POD;
use testkit::realnode::inside::alone;
use testkit::realnode::node::{NAME, Setup, options};
use testkit::realnode::{RealNode, Times};

use crate::scene::{Scene, create_critical};

const NETWORK: &str = "readiness.k8s.io/network";
const STORAGE: &str = "readiness.k8s.io/storage";
const GPU: &str = "readiness.k8s.io/gpu";
const KERNEL: &str = "readiness.k8s.io/kernel";
const WORKER: &str = "gpu-operator-node-feature-discovery-worker";
const RESOURCE: &str = "nvidia.com/gpu";

/// Adds a process that acts like the project's own.
fn played(excerpt: DaemonSet) -> Result<DaemonSet> {
    match excerpt.name_any().as_str() {
        "cilium" => network(excerpt),
        "ebs-csi-node" => driver(excerpt, "ebs.csi.aws.com"),
        WORKER => agent(excerpt),
        "nvidia-device-plugin-daemonset" => devices(excerpt, RESOURCE, 8),
        "node-problem-detector" => detector(excerpt),
        other => bail!("nobody plays {other}"),
    }
}

/// The objects in a file.
async fn read(scene: &Scene, path: &Path) -> Result<Vec<Value>> {
    let path = path.to_string_lossy();
    let arguments = ["create", "--dry-run=client", "-o", "json", "-f", &path];
    let text = scene.cluster.kubectl(&arguments).await?;
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut all = Vec::new();
    for object in objects {
        let mut object = object.context("reading what kubectl has made of the example")?;
        match object.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => all.extend(items),
            _ => all.push(object),
        }
    }
    Ok(all)
}

fn gpu_pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "training", "namespace": "default"},
        "spec": {
            "tolerations": [{"key": RESOURCE, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": POD,
                "imagePullPolicy": "Never",
                "command": ["/pod", "pause"],
                "resources": {"limits": {RESOURCE: "1"}},
            }],
        },
    })
}

#[test]
fn a_gpu_node_is_released_step_by_step_with_the_excerpts_of_your_stack() -> Result<()> {
    alone(async || {
        let scene = Scene::bare(options()).await?;
        let rules = example("your-stack").join("rules.yaml");
        scene.cluster.apply_path(&rules).await?;
        scene.cluster.types("create namespace gpu-operator").await?;
        let excerpts = example("your-stack").join("daemon-sets.yaml");
        for object in read(&scene, &excerpts).await? {
            if object["kind"] == "DaemonSet" {
                create(&scene.client, &played(serde_json::from_value(object)?)?).await?;
            }
        }
        scene.cluster.apply(&gpu_pod().to_string()).await?;

        let setup = Setup::default().label("example.com/pool", "gpu");
        let setup = [RESOURCE, NETWORK, STORAGE, GPU]
            .into_iter()
            .fold(setup, |setup, key| setup.taint(key, "NoSchedule"));
        let _node = RealNode::start(&scene.cluster, setup).await?;
        let times = Times::since("the kubelet is started");
        scene.is_gated(&times, GPU).await?;
        scene.is_released(&times, NETWORK).await?;
        scene.is_released(&times, STORAGE).await?;
        set_ready(WORKER, true)?;
        scene.pod_turns(&times, WORKER, true).await?;
        never("it is released without GPUs", A_WHILE, async || {
            Ok(!scene.is_held(GPU).await?)
        })
        .await?;
        let label = format!("label node {NAME} nvidia.com/gpu.deploy.device-plugin=true");
        scene.cluster.types(&label).await?;
        let times = Times::since("the operator has labelled the node");
        scene.pod_turns(&times, "nvidia", true).await?;
        scene.is_released(&times, GPU).await?;
        times
            .until("a pod runs with a GPU", async || {
                let pods = pods_on(&scene.client, NAME).await?;
                let mut training = pods.iter().filter(|pod| pod.name_any() == "training");
                Ok(training.any(is_ready))
            })
            .await
    })
}

#[test]
fn a_problem_that_node_problem_detector_finds_holds_the_node_until_it_is_over() -> Result<()> {
    alone(async || {
        let healthy = json!([{"type": "KernelDeadlock", "requiredStatus": "False"}]);
        let kernel = rule("kernel", KERNEL).spec("conditions", healthy);
        let kernel = kernel.nodegate("heartbeatTimeout", json!("15m"));
        let scene = Scene::bare(options()).await?;
        kernel.create(&scene.client).await?;
        create_critical(&scene.client).await?;
        let excerpt = Path::new(env!("CARGO_MANIFEST_DIR"));
        let excerpt = excerpt.join("node/node_problem_detector.yaml");
        for object in read(&scene, &excerpt).await? {
            if object["kind"] == "DaemonSet" {
                create(&scene.client, &played(serde_json::from_value(object)?)?).await?;
            } else {
                scene.cluster.apply(&object.to_string()).await?;
            }
        }
        let setup = Setup::default().taint(KERNEL, "NoSchedule");
        let node = RealNode::start(&scene.cluster, setup).await?;
        let times = Times::since("the kubelet is started");
        scene.is_gated(&times, KERNEL).await?;
        scene
            .condition_turns(&times, "KernelDeadlock", "False")
            .await?;
        scene.is_released(&times, KERNEL).await?;

        let times = Times::since("the kernel's log speaks of a problem");
        log_of_kernel("INFO: task docker:4711 blocked for more than 120 seconds.")?;
        scene
            .condition_turns(&times, "KernelDeadlock", "True")
            .await?;
        scene.is_gated(&times, KERNEL).await?;

        // Its condition stays until it restarts.
        let times = Times::since("Node Problem Detector is killed, the problem being over");
        node.kill(DETECTOR)?;
        scene.is_released(&times, KERNEL).await
    })
}
