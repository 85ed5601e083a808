//! A real Karpenter with its kwok provider on a real control plane with scheduler, node lifecycle and taint eviction, and the
//! controller under its own service account. kwok simulates the kubelets of Karpenter's nodes.
//!
//! Each test has its own cluster. `make test-karpenter` runs them, as `make test` does not build Karpenter.

mod disrupted;
mod own_pods;
mod replaced;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use testkit::nodegate::fixtures::{NodePoolBuilder, kwok_node_class, node_claims};
use testkit::nodegate::karpenter::Karpenter;
use testkit::nodegate::{Cluster, Controller, Options, eventually, state};

/// Heartbeats come well within the node's grace period.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Longer than Karpenter takes from an unschedulable pod to a node, or from a reason to disrupt one to its end.
const PATIENCE: Duration = Duration::from_secs(90);

/// The rules' condition, which the tests report.
const READY: &str = "example.com/Ready";

/// The label of nodes that Karpenter has initialized.
const INITIALIZED: &str = "karpenter.sh/initialized";

/// A cluster with Karpenter and a controller.
struct World {
    client: Client,
    /// They end before their cluster.
    _controller: Controller,
    _karpenter: Karpenter,
    cluster: Cluster,
}

impl World {
    async fn start() -> Result<Self> {
        let (cluster, karpenter) = with_karpenter().await?;
        cluster.install().await?;
        cluster.install_karpenter_rbac().await?;
        // Nodes are gated at creation, as recommended.
        let birth = testkit::nodegate::install::config("birth");
        cluster.kubectl_on(&["apply"], &birth).await?;
        let controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
        Ok(Self {
            client: cluster.client().await?,
            _controller: controller,
            _karpenter: karpenter,
            cluster,
        })
    }

    /// Creates or changes a pool.
    async fn apply(&self, pool: NodePoolBuilder) -> Result<()> {
        apply(&self.cluster, pool).await
    }

    /// Runs this many pods, three of which fit on a node; on the nodes of `pool` alone, if named.
    async fn run_pods(&self, pool: &str, count: usize) -> Result<()> {
        let labels = json!({"app": pool});
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": pool, "namespace": "default"},
            "spec": {
                "replicas": count,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"karpenter.sh/nodepool": pool},
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{
                            "name": "main",
                            "image": "example.invalid/main",
                            "resources": {"requests": {"cpu": "1200m"}},
                        }],
                    },
                },
            },
        });
        self.cluster.apply(&deployment.to_string()).await?;
        Ok(())
    }

    /// Waits until a pool has this many nodes; returns them by name.
    async fn nodes(&self, pool: &str, count: usize) -> Result<Vec<Node>> {
        let what = format!("pool {pool} has {count} nodes");
        eventually(&what, PATIENCE, async || {
            let nodes = self.nodes_now(pool).await?;
            Ok((nodes.len() == count).then_some(nodes))
        })
        .await
    }

    async fn nodes_now(&self, pool: &str) -> Result<Vec<Node>> {
        let mut nodes = state::nodes(&self.client).await?;
        nodes.retain(|node| node.labels().get("karpenter.sh/nodepool") == Some(&pool.to_owned()));
        Ok(nodes)
    }

    /// The live claims of a pool by UID, each with its node.
    async fn claims(&self, pool: &str) -> Result<BTreeMap<String, Option<String>>> {
        let of_pool = ListParams::default().labels(&format!("karpenter.sh/nodepool={pool}"));
        let claims = node_claims(&self.client).list(&of_pool).await?;
        let claims = claims
            .into_iter()
            .filter(|claim| claim.metadata.deletion_timestamp.is_none());
        Ok(claims
            .map(|claim| (claim.uid().unwrap_or_default(), node_of(&claim)))
            .collect())
    }

    /// Waits until exactly this many pods of a pool run, none of them terminating.
    async fn running(&self, pool: &str, count: usize) -> Result<()> {
        let what = format!("{count} pods of {pool} run");
        eventually(&what, PATIENCE, async || {
            let selected = ListParams::default().labels(&format!("app={pool}"));
            let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
            let mut pods = pods.list(&selected).await?.items;
            pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() && state::is_ready(pod));
            Ok(pods.len() == count)
        })
        .await
    }

    /// Waits until Karpenter has initialized a node.
    async fn initialized(&self, node: &str) -> Result<()> {
        eventually(&format!("{node} is initialized"), PATIENCE, async || {
            let node = state::node(&self.client, node).await?;
            Ok(node.labels().contains_key(INITIALIZED))
        })
        .await
    }
}

/// A cluster with Karpenter.
async fn with_karpenter() -> Result<(Cluster, Karpenter)> {
    let options = Options {
        kwok: Some(HEARTBEAT),
        ..Options::complete()
    };
    let cluster = Cluster::start(options).await?;
    let karpenter = Karpenter::start(&cluster).await?;
    cluster.apply(&kwok_node_class().to_string()).await?;
    // The tests wait for Karpenter most of the time.
    cluster.idles();
    Ok((cluster, karpenter))
}

async fn apply(cluster: &Cluster, pool: NodePoolBuilder) -> Result<()> {
    cluster.apply(&pool.build().to_string()).await?;
    Ok(())
}

fn node_of(claim: &DynamicObject) -> Option<String> {
    claim.data["status"]["nodeName"].as_str().map(str::to_owned)
}
