//! Nodes that the API server gates at creation, by the policy of `config/birth`: which rules apply to which nodes, and what the
//! controller does where there is no such policy.

mod controller;
mod policy;
mod selectors;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use nodegate_tests::SOON;
use nodegate_tests::rules::key;
use testkit::kubernetes::versions::is_since;
use testkit::nodegate::fixtures::{NodeBuilder, RuleBuilder, node, rule};
use testkit::nodegate::install::config;
use testkit::nodegate::state::taints_of;
use testkit::nodegate::{Cluster, Options, SharedCluster, eventually};
use tokio::sync::OnceCell;

/// The finalizer of a rule that the controller has accepted.
const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";

const CONDITION: &str = "example.com/Ready";

/// It runs no controller.
static CLUSTER: SharedCluster = SharedCluster::new(Options::api_only());
static INSTALLED: OnceCell<bool> = OnceCell::const_new();

/// `None` if the API server does not support such policies.
async fn client() -> Result<Option<Client>> {
    let cluster = CLUSTER.get().await?;
    let installed = INSTALLED
        .get_or_try_init(async || install(cluster).await)
        .await?;
    Ok(installed.then_some(cluster.client().await?))
}

/// Whether the API server supports such policies.
async fn has_policies(client: &Client) -> Result<bool> {
    is_since(client, 36, "MutatingAdmissionPolicy").await
}

/// Installs the policy with everything else; returns false if that is not supported.
async fn install(cluster: &Cluster) -> Result<bool> {
    if !has_policies(&cluster.client().await?).await? {
        return Ok(false);
    }
    cluster.install().await?;
    // The policies that restrict kubelets must ignore what the API server writes.
    for folder in ["birth", "policy"] {
        cluster.apply_strictly(&config(folder)).await?;
    }
    Ok(true)
}

/// An accepted rule that selects nodes with this label.
fn in_force(name: &str, label: &str) -> RuleBuilder {
    rule(name, &key(name))
        .waits_for(CONDITION)
        .selects("test", label)
        .finalizer(FINALIZER)
}

/// A node with this label.
fn labelled(name: &str, label: &str) -> NodeBuilder {
    node(name).label("test", label)
}

/// The node that the API server would create, by a dry run.
async fn tried(client: &Client, node: NodeBuilder) -> Result<Node> {
    let only_try = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let node = node.build();
    Api::all(client.clone())
        .create(&only_try, &node)
        .await
        .with_context(|| format!("trying to create node {}", node.name_any()))
}

/// Waits until the API server's policy knows every rule created so far. It learns of rules in the order of their creation, so
/// one more rule that selects this label serves as a marker.
async fn all_are_known(client: &Client, label: &str) -> Result<()> {
    let last = format!("{label}-last");
    in_force(&last, label).create(client).await?;
    eventually("the rules are known", SOON, async || {
        let node = tried(client, labelled(&last, label)).await?;
        Ok(keys(&node).contains(&last))
    })
    .await
}

/// The rules that have tainted a node, by their taint keys.
fn keys(node: &Node) -> BTreeSet<String> {
    taints_of(node)
        .filter_map(|taint| taint.key.strip_prefix("readiness.k8s.io/"))
        .map(str::to_owned)
        .collect()
}
