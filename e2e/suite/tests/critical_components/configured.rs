//! A controller with a configuration file: Gardener's class in all namespaces, and a class for GPU nodes in two.

use anyhow::Result;
use k8s_openapi::api::storage::v1::CSINode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::fixtures::{self, DaemonSetBuilder, set_csi_drivers};
use nodegate_testbed::{Options, SharedInstallation};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::pool::{POOL, Pool};
use crate::{NO_SCHEDULE, SAMPLE};

static INSTALLATION: SharedInstallation = SharedInstallation::new(
    Options::full(),
    &[concat!(
        "--config=",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/critical_components/configured.yaml"
    )],
);

const GPU_LABEL: &str = "gpu.example.com/component";
const GPU_READY: &str = "gpu.example.com/CriticalComponentsReady";
/// A pool in the cluster with the configuration file, under Gardener's rule.
async fn pool(name: &'static str) -> Result<Pool> {
    static RULE: OnceCell<()> = OnceCell::const_new();
    let cluster = INSTALLATION.get().await?;
    RULE.get_or_try_init(async || cluster.apply(SAMPLE).await.map(drop))
        .await?;
    Pool::on(cluster, name).await
}

/// A `DaemonSet` of the GPU class, in its own namespace.
fn gpu_daemon_set(pool: &Pool, name: &str) -> DaemonSetBuilder {
    fixtures::daemon_set(&format!("default/{}", pool.daemon_set_name(name)))
        .label(GPU_LABEL, name)
        .pod_label(GPU_LABEL, name)
        .node_selector(POOL, pool.name)
        .tolerate_everything()
}

#[tokio::test]
async fn each_class_has_its_own_components_and_conditions() -> Result<()> {
    let pool = pool("gpu").await?;
    pool.enforce(pool.rule().bootstrap_only().waits_for(GPU_READY))
        .await?;
    gpu_daemon_set(&pool, "driver")
        .never_ready()
        .create(&pool.client)
        .await?;
    // Neither value belongs to the class.
    gpu_daemon_set(&pool, "exporter")
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.daemon_set("cni")
        .never_ready()
        .create(&pool.client)
        .await?;
    let node = pool.node().taint(&pool.own_taint(), NO_SCHEDULE);
    pool.join(node).await?;
    let driver = pool.pod_of("driver").await?;
    let why = format!("pod default/{driver} is not Ready");
    pool.says(GPU_READY, "False", &why).await?;
    pool.is_held_by_the_pod_of("cni").await?;

    // Each gate opens by its own class.
    pool.set_ready("cni", true).await?;
    pool.opens().await?;
    assert!(pool.has_own_taint().await?);
    pool.set_ready_in("default", &driver, true).await?;
    pool.gets_own_taint(false).await?;
    let ready = "every critical component is ready on this node";
    pool.says(GPU_READY, "True", ready).await
}

#[tokio::test]
async fn a_class_may_ask_drivers_how_many_volumes_they_can_attach() -> Result<()> {
    let pool = pool("gpu-csi").await?;
    pool.enforce(pool.rule().bootstrap_only().waits_for(GPU_READY))
        .await?;
    let driver = "x.csi.example.com";
    gpu_daemon_set(&pool, "driver")
        .pod_annotation("gpu.example.com/wait-for-csi-node-x", driver)
        // An annotation of another class.
        .wait_for_csi_driver("y", "y.csi.example.com")
        .create(&pool.client)
        .await?;
    let node = pool.node().taint(&pool.own_taint(), NO_SCHEDULE);
    let node = pool.join(node).await?;
    let why = format!("CSI driver {driver} is not registered on this node");
    pool.says(GPU_READY, "False", &why).await?;
    set_csi_drivers(&pool.client, &node, &[driver]).await?;
    let why = format!("CSI driver {driver} reports no allocatable count on this node");
    pool.says(GPU_READY, "False", &why).await?;
    assert!(pool.has_own_taint().await?);
    // The kubelet registers the driver again, with its volume limit.
    set_csi_drivers(&pool.client, &node, &[]).await?;
    let patch = json!({"spec": {"drivers": [
        {"name": driver, "nodeID": pool.name, "topologyKeys": null, "allocatable": {"count": 25}}
    ]}});
    Api::<CSINode>::all(pool.client.clone())
        .patch(pool.name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    pool.gets_own_taint(false).await
}
