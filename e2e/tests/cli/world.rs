//! The cluster of these tests. Its two nodes get their pod network from a `DaemonSet`. On the first node the image cannot be
//! pulled: the node is held, and a pod that can only run there is pending. The second node is released.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use nodegate_tests::SOON;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use testkit::nodegate::ask::{Said, ask};
use testkit::nodegate::changes::{break_image, set_node_condition, set_pod_ready};
use testkit::nodegate::fixtures::{self, NodeBuilder};
use testkit::nodegate::state::{node_condition, running_pod};
use testkit::nodegate::{Cluster, Options, SharedInstallation, eventually};
use tokio::sync::{Mutex, OnceCell};

pub(crate) const HELD: &str = "worker-1";
pub(crate) const RELEASED: &str = "worker-2";
/// The condition that the controller publishes about the network.
const PUBLISHED: &str = "daemonset.nodegate.dev/default.cni";
/// The network's `DaemonSet`.
pub(crate) const NETWORK: &str = "cni";
pub(crate) const TAINT: &str = "readiness.k8s.io/network";
pub(crate) const STORAGE: &str = "example.com/StorageReady";
const STORAGE_TAINT: &str = "readiness.k8s.io/storage";

/// The node lifecycle controller removes the initial taint of every node.
static INSTALLATION: SharedInstallation =
    SharedInstallation::new(Options::complete(), &["--leader-elect"]);

/// Held by tests that change the cluster for a while, and by tests that need it unchanged.
pub(crate) static TURN: Mutex<()> = Mutex::const_new(());

/// The cluster, and what varies in it between runs.
#[derive(Debug)]
pub(crate) struct World {
    pub cluster: &'static Cluster,
    /// The network's pod on the held node.
    pub network_pod: String,
}

impl World {
    /// The answer to a question of somebody who may do everything, which must end with this code.
    pub(crate) async fn asks(&self, question: &[&str], code: i32) -> Result<Said> {
        asks(&self.cluster.kubeconfig(), question, code).await
    }

    /// A kubeconfig of a new account with this role.
    pub(crate) async fn account(&self, name: &str, role: &str) -> Result<PathBuf> {
        self.cluster.account(name, role).await?;
        let cluster = self.cluster;
        cluster
            .kubeconfig_for_service_account("default", name)
            .await
    }

    /// The path of a test's file or folder, which goes with the cluster.
    pub(crate) fn path(&self, name: &str) -> String {
        self.cluster.folder().join(name).display().to_string()
    }
}

/// The answer to a question, which must end with this code.
pub(crate) async fn asks(kubeconfig: &Path, question: &[&str], code: i32) -> Result<Said> {
    let said = ask(kubeconfig, question).await?;
    ensure!(said.code == code, "{question:?}: {said:?}");
    Ok(said)
}

/// The shared cluster.
pub(crate) async fn world() -> Result<&'static World> {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_try_init(make).await
}

async fn make() -> Result<World> {
    let cluster = INSTALLATION.get().await?;
    let client = cluster.client().await?;
    let network = fixtures::rule("network", TAINT).waits_for("daemonset.nodegate.dev/default.cni");
    network.selects("pool", "workers").create(&client).await?;
    let storage = fixtures::rule("storage", STORAGE_TAINT).waits_for(STORAGE);
    let storage = storage.selects("pool", "workers").bootstrap_only();
    storage.create(&client).await?;
    for name in [HELD, RELEASED] {
        node(name).create(&client).await?;
    }
    for name in [HELD, RELEASED] {
        eventually_gated(&client, name, STORAGE_TAINT).await?;
    }
    // Starts are listed by their duration: the held node must be the later one.
    for name in [RELEASED, HELD] {
        set_node_condition(&client, name, STORAGE, "True").await?;
        eventually_released(&client, name, STORAGE_TAINT).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let network = fixtures::daemon_set("default/cni").node_selector("pool", "workers");
    let network = network.tolerate_everything().never_ready().probed();
    network.create(&client).await?;
    let network_pod = running_pod(&client, HELD, NETWORK).await?;
    break_image(&client, "default", &network_pod, "example.com/cni:v2").await?;
    let other = running_pod(&client, RELEASED, NETWORK).await?;
    // Keeps the order of durations the same in each run.
    tokio::time::sleep(Duration::from_secs(1)).await;
    set_pod_ready(&client, "default", &other, true).await?;
    eventually_released(&client, RELEASED, TAINT).await?;
    eventually_gated(&client, HELD, TAINT).await?;
    cluster
        .apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: shop, namespace: default}}, spec: {{nodeSelector: \
             {{kubernetes.io/hostname: {HELD}}}, containers: [{{name: web, image: example.com/shop}}]}}}}"
        ))
        .await?;
    eventually("the pod waits", SOON, async || {
        let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
        let status = pods.get("shop").await?.status.unwrap_or_default();
        Ok(status.conditions.filter(|it| !it.is_empty()))
    })
    .await?;
    // The initial taint goes once the kubelet reports Ready.
    for name in [HELD, RELEASED] {
        eventually_released(&client, name, "node.kubernetes.io/not-ready").await?;
    }
    // The time since when it is held is known by then.
    eventually("what the pod lacks is published", SOON, async || {
        let published = node_condition(&client, HELD, PUBLISHED).await?;
        let message = published.and_then(|it| it.message).unwrap_or_default();
        Ok(message.ends_with("is not Ready"))
    })
    .await?;
    Ok(World {
        cluster,
        network_pod,
    })
}

/// A node of the pool that the rules select, created with the taint of one.
pub(crate) fn node(name: &str) -> NodeBuilder {
    fixtures::node(name)
        .label("pool", "workers")
        .label("kubernetes.io/hostname", name)
        .allocatable("pods", "100")
        .allocatable("cpu", "8")
        .taint(TAINT, "NoSchedule")
        .managed_by_kwok()
}
