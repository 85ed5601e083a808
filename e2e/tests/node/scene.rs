//! What the tests share: a control plane with Nodegate, and a node that needs a critical network and CSI driver.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::{Api, Client};
use testkit::nodegate::fixtures::{RuleBuilder, daemon_set, rule};
use testkit::nodegate::state::{has_taint, is_ready, node_condition, pods_on};
use testkit::nodegate::{Cluster, Controller, NodeHistory, Options};
use testkit::realnode::components::{create, driver, network};
use testkit::realnode::node::{NAME, Setup};
use testkit::realnode::{RealNode, Times};

/// The taint key of most rules here.
pub(crate) const TAINT: &str = "readiness.k8s.io/critical";

/// The condition of those rules.
pub(crate) const CRITICAL: &str = "node.gardener.cloud/CriticalComponentsReady";

/// The driver that the node needs.
pub(crate) const DRIVER: &str = "csi.example.com";

pub(crate) fn critical_rule() -> RuleBuilder {
    rule("critical", TAINT).waits_for(CRITICAL)
}

/// A control plane with the controller, rules and critical `DaemonSet`s. The first fields are dropped first.
pub(crate) struct Scene {
    pub client: Client,
    _controller: Controller,
    pub cluster: Cluster,
}

impl Scene {
    pub(crate) async fn start(options: Options, rules: Vec<RuleBuilder>) -> Result<Self> {
        let scene = Self::bare(options).await?;
        for rule in rules {
            rule.create(&scene.client).await?;
        }
        create_critical(&scene.client).await?;
        Ok(scene)
    }

    /// Starts only the controller.
    pub(crate) async fn bare(options: Options) -> Result<Self> {
        let cluster = Cluster::start(options).await?;
        let client = cluster.client().await?;
        let controller = Controller::start(&cluster, &[]).await?;
        Ok(Self {
            client,
            _controller: controller,
            cluster,
        })
    }

    /// A released node that registered with the taint of the rules.
    pub(crate) async fn released_node(&self) -> Result<RealNode> {
        let node = RealNode::start(&self.cluster, held()).await?;
        let times = Times::since("the kubelet is started");
        self.is_gated(&times, TAINT).await?;
        self.is_released(&times, TAINT).await?;
        Ok(node)
    }

    pub(crate) async fn is_held(&self, key: &str) -> Result<bool> {
        has_taint(&self.client, NAME, key).await
    }

    pub(crate) async fn is_gated(&self, times: &Times, key: &str) -> Result<()> {
        let what = format!("held: {key}");
        times.until(&what, async || self.is_held(key).await).await
    }

    pub(crate) async fn is_released(&self, times: &Times, key: &str) -> Result<()> {
        let what = format!("released: {key}");
        times
            .until(&what, async || Ok(!self.is_held(key).await?))
            .await
    }

    /// Waits for this Ready status of the node, from the kubelet or the node lifecycle controller.
    pub(crate) async fn node_turns(&self, times: &Times, status: &str) -> Result<()> {
        self.condition_turns(times, "Ready", status).await
    }

    /// Waits for this status of a condition of the node.
    pub(crate) async fn condition_turns(
        &self,
        times: &Times,
        kind: &str,
        status: &str,
    ) -> Result<()> {
        let what = format!("the node's {kind} is {status}");
        times
            .until(&what, async || {
                let found = node_condition(&self.client, NAME, kind).await?;
                Ok(found.is_some_and(|found| found.status == status))
            })
            .await
    }

    /// Waits until a pod whose name starts like this is Ready, or none is.
    pub(crate) async fn pod_turns(&self, times: &Times, start: &str, ready: bool) -> Result<()> {
        let what = format!("pod {start} is {}Ready", if ready { "" } else { "not " });
        times
            .until(&what, async || {
                let pods = pods_on(&self.client, NAME).await?;
                let mut named = pods.iter().filter(|pod| {
                    let name = pod.metadata.name.as_deref();
                    name.is_some_and(|name| name.starts_with(start))
                });
                Ok(named.any(is_ready) == ready)
            })
            .await
    }

    pub(crate) async fn driver_registers(&self, times: &Times) -> Result<()> {
        let what = "the driver is in the CSINode";
        times.until(what, async || self.has_driver().await).await
    }

    pub(crate) async fn has_driver(&self) -> Result<bool> {
        let nodes: Api<CSINode> = Api::all(self.client.clone());
        let drivers = nodes.get_opt(NAME).await?.map(|node| node.spec.drivers);
        Ok(drivers.is_some_and(|drivers| drivers.iter().any(|driver| driver.name == DRIVER)))
    }

    /// Every state of all nodes under this name, oldest first.
    pub(crate) async fn history(&self, history: &NodeHistory) -> Result<Vec<Node>> {
        let mut nodes = history.up_to(&self.client, NAME).await?;
        nodes.remove(NAME).context("the node was not seen")
    }
}

/// Creates a critical network and a critical CSI driver.
pub(crate) async fn create_critical(client: &Client) -> Result<()> {
    let critical = |name: &str| daemon_set(name).critical().tolerate_everything();
    create(client, &network(critical("kube-system/cni").build())?).await?;
    let csi = critical("kube-system/csi").wait_for_csi_driver("test", DRIVER);
    create(client, &driver(csi.build(), DRIVER)?).await
}

/// A node that registers with the taint of the rules.
pub(crate) fn held() -> Setup {
    Setup::default().taint(TAINT, "NoSchedule")
}

/// How often a node was gated.
pub(crate) fn gatings(history: &[Node], key: &str) -> usize {
    let held: Vec<bool> = history
        .iter()
        .map(|node| testkit::nodegate::state::count_taints(node, key) > 0)
        .collect();
    held.windows(2).filter(|two| !two[0] && two[1]).count()
}
