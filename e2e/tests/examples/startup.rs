//! Examples about taints that nodes register with.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::nodegate::changes::{patch_node_status, set_node_condition};
use testkit::nodegate::fixtures::{node, node_claim, pod, set_csi_drivers};
use testkit::nodegate::{eventually, never, state};

use crate::scene::{SOON, Scene, read};

const NO_EXECUTE: &str = "NoExecute";
/// The prefix of the annotation with a node's deadline.
const READY_DEADLINE: &str = "nodegate.dev/ready-deadline-";

/// The part of the kubelet's configuration that the example sets.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KubeletConfiguration {
    api_version: String,
    kind: String,
    register_with_taints: Vec<Taint>,
}

#[test]
fn nodes_register_with_the_taint_of_the_rule() -> Result<()> {
    let rule: Value = read("startup-taints/rule.yaml")?;
    let taint: Taint = serde_json::from_value(rule["spec"]["taint"].clone())?;
    let kubelet: KubeletConfiguration = read("startup-taints/kubelet-configuration.yaml")?;
    assert_eq!(kubelet.api_version, "kubelet.config.k8s.io/v1beta1");
    assert_eq!(kubelet.kind, "KubeletConfiguration");
    assert_eq!(kubelet.register_with_taints, vec![taint.clone()]);
    let pool: Value = read("startup-taints/karpenter-node-pool.yaml")?;
    assert_eq!(pool["apiVersion"], "karpenter.sh/v1");
    let startup_taints = pool["spec"]["template"]["spec"]["startupTaints"].clone();
    assert_eq!(
        serde_json::from_value::<Vec<Taint>>(startup_taints)?,
        [taint]
    );
    Ok(())
}

#[test]
fn a_node_pool_makes_nodes_with_the_taint_of_room_first() -> Result<()> {
    let rule: Value = read("room-first/rule.yaml")?;
    let pool: Value = read("room-first/karpenter-node-pool.yaml")?;
    let startup_taints = &pool["spec"]["template"]["spec"]["startupTaints"];
    assert_eq!(*startup_taints, json!([rule["spec"]["taint"]]));
    Ok(())
}

#[tokio::test]
async fn examples_startup_taints() -> Result<()> {
    let kubelet: KubeletConfiguration = read("startup-taints/kubelet-configuration.yaml")?;
    let taint = kubelet.register_with_taints.first().context("no taint")?;
    let scene = Scene::of("startup-taints", None).await?;
    pod("default/workload").create(&scene.client).await?;
    let worker = node("worker").taint(&taint.key, &taint.effect);
    scene.join(worker).await?;
    scene.turn_ready("worker").await?;
    let place = async || scene.place().await;
    let what = "a pod slips in";
    never(what, std::time::Duration::from_secs(1), place).await?;
    scene.has_taint("worker", &taint.key, true).await?;
    scene.has_events("worker", &["TaintAdopted"]).await?;

    set_node_condition(&scene.client, "worker", "NetworkUnavailable", "False").await?;
    scene.has_taint("worker", &taint.key, false).await?;
    scene.has_events("worker", &["TaintRemoved"]).await?;
    let found = eventually("the pod is scheduled", SOON, place).await?;
    assert_eq!(found, "worker");

    // The rule gates no node that came without the taint.
    scene.join(node("other")).await?;
    scene.keeps_taint("other", &taint.key, false).await
}

#[tokio::test]
async fn examples_karpenter_repair() -> Result<()> {
    const TAINT: &str = "readiness.k8s.io/network";
    let scene = Scene::with_karpenter().await?;
    scene.apply("karpenter-repair").await?;
    // The example's pool sets its own time; the other pool gets the rule's.
    for (pool, minutes) in [("gpu", 40), ("default", 15)] {
        node_claim(pool)
            .pool(pool)
            .node(pool)
            .create(&scene.client)
            .await?;
        let new = node(pool).label("karpenter.sh/nodepool", pool);
        let node = scene.join(new.taint(TAINT, "NoSchedule")).await?;
        let joined = node.metadata.creation_timestamp.context("no time")?.0;
        let deadline = eventually("the deadline is on record", SOON, async || {
            let node = state::node(&scene.client, pool).await?;
            let mut annotations = node.annotations().iter();
            let found = annotations.find(|(key, _)| key.starts_with(READY_DEADLINE));
            Ok(found.map(|(_, deadline)| deadline.clone()))
        })
        .await?;
        let deadline: Timestamp = deadline.parse()?;
        assert_eq!(deadline.duration_since(joined).as_mins(), minutes, "{pool}");
        scene.has_taint(pool, TAINT, true).await?;
        for (kind, status) in [("Ready", "True"), ("NetworkUnavailable", "False")] {
            set_node_condition(&scene.client, pool, kind, status).await?;
        }
        scene.has_taint(pool, TAINT, false).await?;
    }
    Ok(())
}

#[tokio::test]
async fn examples_startup_taint_removal() -> Result<()> {
    const CILIUM: &str = "node.cilium.io/agent-not-ready";
    const EBS: &str = "ebs.csi.aws.com/agent-not-ready";
    let scene = Scene::of("startup-taint-removal", None).await?;
    let new = |name: &str| node(name).taint(CILIUM, NO_EXECUTE).taint(EBS, NO_EXECUTE);
    let worker = scene.join(new("worker")).await?;
    scene.keeps_taint("worker", CILIUM, true).await?;
    // As Cilium's operator writes it.
    let up = json!({"status": {"conditions": [{
        "type": "NetworkUnavailable",
        "status": "False",
        "reason": "CiliumIsUp",
        "message": "Cilium is running on this node",
    }]}});
    patch_node_status(&scene.client, "worker", &up).await?;
    scene.has_taint("worker", CILIUM, false).await?;
    scene.keeps_taint("worker", EBS, true).await?;
    set_csi_drivers(&scene.client, &worker, &["ebs.csi.aws.com"]).await?;
    scene.has_taint("worker", EBS, false).await?;

    // Deleting the rules leaves existing taints to the next controller.
    scene.join(new("late")).await?;
    for rule in ["cilium-startup-taint", "ebs-startup-taint"] {
        scene.delete_rule(rule).await?;
    }
    scene.keeps_taint("late", CILIUM, true).await?;
    scene.keeps_taint("late", EBS, true).await
}
