//! Critical components beside the node lifecycle controller, which changes taints at the same time. `examples` tells what nodes
//! wait for, and gates them again by the revisions of the real `DaemonSet` controller.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use nodegate_tests::rules::taint_texts;
use nodegate_tests::{A_WHILE, SOON};
use testkit::nodegate::changes::{set_node_condition, set_pod_ready};
use testkit::nodegate::fixtures::{self, NodeBuilder, daemon_set, pod};
use testkit::nodegate::state::{is_ready, node, pods_on, taints};
use testkit::nodegate::{Cluster, Controller, Options, eventually, eventually_eq, never};

/// Gardener's taint, with which its kubelets register their nodes.
const GATE: &str = "node.gardener.cloud/critical-components-not-ready";
/// The initial taint of every node, until its kubelet reports Ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const NO_SCHEDULE: &str = "NoSchedule";
/// Gardener's rule, which selects every Linux node.
const SAMPLE: &str = include_str!("../../../../config/samples/gardener-critical-components.yaml");

/// A node as a real kubelet registers it, with a not-Ready condition from the start. Without that condition the lifecycle
/// controller would remove its `not-ready` taint at once.
fn registering(name: &str) -> NodeBuilder {
    fixtures::node(name)
        .managed_by_kwok()
        .condition("Ready", "False")
        .allocatable("pods", "100")
        .allocatable("cpu", "8")
        .taint(GATE, NO_SCHEDULE)
}

#[tokio::test]
async fn the_controller_and_the_node_lifecycle_controller_keep_each_others_taints() -> Result<()> {
    const NODES: usize = 10;
    let cluster = Cluster::start(Options::complete()).await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    let client = cluster.client().await?;
    cluster.apply(SAMPLE).await?;
    // One that starts at once, and one that starts when the node is Ready.
    daemon_set("kube-system/cni")
        .critical()
        .tolerate_everything()
        .create(&client)
        .await?;
    daemon_set("kube-system/csi")
        .critical()
        .tolerate(GATE, NO_SCHEDULE)
        .node_selector("csi", "true")
        .create(&client)
        .await?;
    pod("workload").create(&client).await?;

    // This kubelet never becomes Ready: the node is released, and the lifecycle controller's taints stay.
    registering("broken").create(&client).await?;
    let broken = async || Ok(taint_texts(&node(&client, "broken").await?));
    let born = vec![format!("{NOT_READY}=:NoSchedule")];
    eventually_eq("the taint that stays", SOON, born, broken).await?;

    // These become Ready together with their critical pods: both controllers write the same lists.
    let names: Vec<String> = (0..NODES)
        .map(|number| format!("worker-{number}"))
        .collect();
    for name in &names {
        let worker = registering(name).label("csi", "true");
        worker.create(&client).await?;
    }
    for name in &names {
        set_node_condition(&client, name, "Ready", "True").await?;
    }
    // By its containers: the lifecycle controller may have seen the pod before it saw the node Ready, and then takes the pod's own Ready
    // away. A kubelet gives it back.
    let runs = |pod: &Pod| {
        let conditions = pod
            .status
            .iter()
            .flat_map(|it| it.conditions.iter().flatten());
        let mut conditions = conditions.filter(|it| it.type_ == "ContainersReady");
        conditions.any(|it| it.status == "True")
            && pod.metadata.namespace.as_deref() == Some("kube-system")
    };
    let gated = async || {
        let mut gated = Vec::new();
        for name in &names {
            let taints = taints(&client, name).await?;
            let has = |key: &str| taints.iter().any(|taint| taint.key == key);
            gated.push((has(GATE), has(NOT_READY)));
            let pods = pods_on(&client, name).await?;
            // The gate goes last: before, the second DaemonSet has no Ready pod.
            if !has(GATE) {
                let ready = pods.iter().filter(|pod| runs(pod)).count();
                assert!(ready >= 2, "{name} was released with {ready} Ready pods");
            }
            for pod in pods.iter().filter(|pod| runs(pod) && !is_ready(pod)) {
                let pod = pod.metadata.name.as_deref().unwrap_or_default();
                set_pod_ready(&client, "kube-system", pod, true).await?;
            }
        }
        Ok(gated)
    };
    let released = vec![(false, false); NODES];
    eventually_eq("gates and not-ready taints", SOON, released, gated).await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    eventually("the workload is bound to one of them", SOON, async || {
        let spec = pods.get("workload").await?.spec;
        let node = spec.and_then(|spec| spec.node_name);
        Ok(node.is_some_and(|node| names.contains(&node)))
    })
    .await?;

    // Later taints of the lifecycle controller stay, too, while a gate is restored and removed.
    set_node_condition(&client, "worker-0", "MemoryPressure", "True").await?;
    let pressure = vec!["node.kubernetes.io/memory-pressure=:NoSchedule".to_owned()];
    let now = async || Ok(taint_texts(&node(&client, "worker-0").await?));
    eventually_eq("memory pressure", SOON, pressure.clone(), now).await?;
    let gate = format!("taint node worker-0 {GATE}=:{NO_SCHEDULE}");
    cluster.types(&gate).await?;
    eventually_eq("memory pressure alone", SOON, pressure.clone(), now).await?;
    never("a taint is lost", A_WHILE, async || {
        Ok(now().await? != pressure)
    })
    .await?;
    // Other nodes are Ready now, so its zone is no longer fully disrupted, and its pods may be evicted.
    let evicting = ["NoExecute", "NoSchedule"].map(|effect| format!("{NOT_READY}=:{effect}"));
    let evicting = evicting.to_vec();
    eventually_eq("the taints of the broken node", SOON, evicting, broken).await?;
    Ok(())
}
