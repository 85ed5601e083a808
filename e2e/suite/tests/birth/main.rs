//! Nodes that the API server closes as it creates them, by the policy of `config/birth`: which rules do so, and to which nodes;
//! and what the controller makes of such a node.

mod controller;
mod policy;
mod selectors;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use nodegate_suite::SOON;
use nodegate_suite::versions::is_since;
use nodegate_testbed::fixtures::{NodeBuilder, RuleBuilder, node, rule};
use nodegate_testbed::install::config;
use nodegate_testbed::{Cluster, Options, SharedCluster, eventually};
use tokio::sync::OnceCell;

/// What a rule has that the controller has taken on.
const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";

const CONDITION: &str = "example.com/Ready";

/// No controller runs in it.
static CLUSTER: SharedCluster = SharedCluster::new(Options::api_only());
static INSTALLED: OnceCell<bool> = OnceCell::const_new();

/// Nobody where the API server knows no such policies.
async fn client() -> Result<Option<Client>> {
    let cluster = CLUSTER.get().await?;
    let installed = INSTALLED
        .get_or_try_init(async || install(cluster).await)
        .await?;
    Ok(installed.then_some(cluster.client().await?))
}

/// Whether the API server knows such policies.
async fn has_policies(client: &Client) -> Result<bool> {
    is_since(client, 36, "MutatingAdmissionPolicy").await
}

/// Installs the policy beside all else, and says whether that can be done.
async fn install(cluster: &Cluster) -> Result<bool> {
    if !has_policies(&cluster.client().await?).await? {
        return Ok(false);
    }
    cluster.install().await?;
    // The policies that hold kubelets to their own leave what the API server writes alone.
    for folder in ["birth", "policy"] {
        let folder = config(folder).to_string_lossy().into_owned();
        cluster
            .kubectl(&["apply", "--server-side", "--validate=strict", "-k", &folder])
            .await?;
    }
    Ok(true)
}

/// The key of the taint of a rule of these tests.
fn key(rule: &str) -> String {
    format!("readiness.k8s.io/{rule}")
}

/// A rule that the controller has taken on, about nodes with this label.
fn in_force(name: &str, label: &str) -> RuleBuilder {
    rule(name, &key(name))
        .waits_for(CONDITION)
        .selects("test", label)
        .finalizer(FINALIZER)
}

/// A node with that label.
fn labelled(name: &str, label: &str) -> NodeBuilder {
    node(name).label("test", label)
}

/// What the API server would make of a node.
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

/// Waits until the API server's policy knows every rule that has been created so far. Rules become known in the order of their
/// creation; so one more is created, about nodes with that label.
async fn all_are_known(client: &Client, label: &str) -> Result<()> {
    let last = format!("{label}-last");
    in_force(&last, label).create(client).await?;
    eventually("the rules are known", SOON, async || {
        let node = tried(client, labelled(&last, label)).await?;
        Ok(keys(&node).contains(&last))
    })
    .await
}

/// The rules whose taints a node has, by the names that their keys have.
fn keys(node: &Node) -> BTreeSet<String> {
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    taints
        .filter_map(|taint| taint.key.strip_prefix("readiness.k8s.io/"))
        .map(str::to_owned)
        .collect()
}
