//! Other projects' `DaemonSet`s, as `examples/your-stack` has them: their names, labels, selectors and tolerations around
//! processes that stand for theirs. None of their own programs runs.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::ResourceExt;
use kube_realnode::components::{agent, create, devices, driver, network, set_ready};
use kube_realnode::images::POD;
use kube_realnode::inside::alone;
use kube_realnode::node::{NAME, Setup, options};
use kube_realnode::{RealNode, Times};
use nodegate_suite::A_WHILE;
use nodegate_testbed::install::example;
use nodegate_testbed::never;
use nodegate_testbed::sights::{is_ready, pods_on};
use serde_json::{Value, json};

use crate::scene::Scene;

const NETWORK: &str = "readiness.k8s.io/network";
const STORAGE: &str = "readiness.k8s.io/storage";
const GPU: &str = "readiness.k8s.io/gpu";
const WORKER: &str = "gpu-operator-node-feature-discovery-worker";
const RESOURCE: &str = "nvidia.com/gpu";

/// With a process in it that does what its own would.
fn played(excerpt: DaemonSet) -> Result<DaemonSet> {
    match excerpt.name_any().as_str() {
        "cilium" => network(excerpt),
        "ebs-csi-node" => driver(excerpt, "ebs.csi.aws.com"),
        WORKER => agent(excerpt),
        "nvidia-device-plugin-daemonset" => devices(excerpt, RESOURCE, 8),
        other => bail!("nobody plays {other}"),
    }
}

/// What is in a file of the example.
async fn read(scene: &Scene, file: &str) -> Result<Vec<Value>> {
    let path = example("your-stack").join(file);
    let path = path.to_string_lossy();
    let arguments = ["create", "--dry-run=client", "-o", "json", "-f", &path];
    let text = scene.cluster.kubectl(&arguments).await?;
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut all = Vec::new();
    for object in objects {
        let mut object = object.context("reading what kubectl has made of the example")?;
        match object["items"].take() {
            Value::Array(items) => all.extend(items),
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
fn a_node_for_gpus_opens_step_by_step_with_the_excerpts_of_your_stack() -> Result<()> {
    alone(async || {
        let scene = Scene::bare(options()).await?;
        let rules = example("your-stack").join("rules.yaml");
        scene.cluster.apply_path(&rules).await?;
        scene
            .cluster
            .kubectl(&["create", "namespace", "gpu-operator"])
            .await?;
        for object in read(&scene, "daemon-sets.yaml").await? {
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
        times
            .until("it has registered, closed", async || {
                scene.is_closed(GPU).await
            })
            .await?;
        scene.opens(&times, NETWORK).await?;
        scene.opens(&times, STORAGE).await?;
        set_ready(WORKER, true)?;
        scene.pod_turns(&times, WORKER, true).await?;
        never("it opens without GPUs", A_WHILE, async || {
            Ok(!scene.is_closed(GPU).await?)
        })
        .await?;
        let label = "nvidia.com/gpu.deploy.device-plugin=true";
        scene
            .cluster
            .kubectl(&["label", "node", NAME, label])
            .await?;
        let times = Times::since("the operator has labelled the node");
        scene.pod_turns(&times, "nvidia", true).await?;
        scene.opens(&times, GPU).await?;
        times
            .until("a pod runs with a GPU", async || {
                let pods = pods_on(&scene.client, NAME).await?;
                let mut training = pods.iter().filter(|pod| pod.name_any() == "training");
                Ok(training.any(is_ready))
            })
            .await
    })
}
