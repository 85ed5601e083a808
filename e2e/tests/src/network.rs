//! A rule that gates nodes until their network is ready, and its nodes.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::eventually_eq;
use testkit::nodegate::fixtures::{RuleBuilder, node, rule};
use testkit::nodegate::state::{count_taints, nodes};

use crate::gates::{eventually_gated, eventually_released};
use crate::rules;

/// The rule's condition.
pub const CONDITION: &str = "example.com/NetworkReady";

/// The key of the rule's taint.
pub const TAINT: &str = "readiness.k8s.io/network";

/// The prefix of the annotations that record who added a taint.
pub const OWNER: &str = "nodegate.dev/taint-added-by-";

/// The rule, which selects nodes labelled `network`.
pub fn network_rule(name: &str) -> RuleBuilder {
    rule(name, TAINT)
        .waits_for(CONDITION)
        .selects("network", "yes")
}

/// The name of the node with this index.
pub fn name(index: usize) -> String {
    format!("node-{index:03}")
}

/// Creates this many nodes that the rule selects, with this status of the condition.
pub async fn create_nodes(client: &Client, count: usize, status: &str) -> Result<()> {
    for index in 0..count {
        create_node(client, &name(index), status).await?;
    }
    Ok(())
}

/// Creates a node that the rule selects, with this status of the condition.
pub async fn create_node(client: &Client, name: &str, status: &str) -> Result<()> {
    node(name)
        .label("network", "yes")
        .condition(CONDITION, status)
        .create(client)
        .await?;
    Ok(())
}

/// How many nodes have the taint.
pub async fn count_gated(client: &Client) -> Result<usize> {
    let mut gated = 0;
    for node in nodes(client).await? {
        let taints = count_taints(&node, TAINT);
        ensure!(
            taints <= 1,
            "{} has the taint {taints} times",
            node.name_any()
        );
        gated += taints;
    }
    Ok(gated)
}

/// Waits until this many nodes have the taint.
pub async fn eventually_gated_nodes(client: &Client, count: usize, within: Duration) -> Result<()> {
    let what = "the number of nodes that are gated";
    eventually_eq(what, within, count, async || count_gated(client).await).await
}

/// The annotations that record who added a taint.
pub fn owners(node: &Node) -> Vec<String> {
    let keys = node.annotations().keys();
    keys.filter(|key| key.starts_with(OWNER)).cloned().collect()
}

/// Checks that the controller works: a rule gates and releases a node of this name, and is deleted.
pub async fn gates_and_releases(client: &Client, name: &str) -> Result<()> {
    node(name).label("test", name).create(client).await?;
    rule(name, TAINT)
        .waits_for(CONDITION)
        .selects("test", name)
        .create(client)
        .await?;
    eventually_gated(client, name, TAINT).await?;
    set_node_condition(client, name, CONDITION, "True").await?;
    eventually_released(client, name, TAINT).await?;
    rules::delete(client, name).await
}
