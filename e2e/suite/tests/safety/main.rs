//! What keeps a rule from closing nodes too soon, too fast or on stale evidence, on a real API server, with the controller
//! under its own service account.
//!
//! The tests share one cluster. Each uses its own name for its rule, its taint key and its node label. The rollouts over many
//! nodes have their own cluster.

mod disruption;
mod grace;
mod heartbeats;
mod interplay;
mod maintenance;
mod reboot;

use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use nodegate_suite::{A_WHILE, SOON, gates};
use nodegate_testbed::fixtures::{self, NodeBuilder, RuleBuilder};
use nodegate_testbed::{Options, SharedInstallation, eventually, never, sights};
use serde_json::{Value, json};

static INSTALLATION: SharedInstallation = SharedInstallation::new(Options::api_only(), &[]);

/// The label that rules select by.
const TEST: &str = "test";
/// The rules' condition.
const READY: &str = "example.com/Ready";

async fn client() -> Result<Client> {
    INSTALLATION.get().await?.client().await
}

fn key(test: &str) -> String {
    format!("readiness.k8s.io/{test}")
}

/// A continuous rule that selects the nodes of a test.
fn rule(test: &str) -> RuleBuilder {
    fixtures::rule(test, &key(test))
        .selects(TEST, test)
        .waits_for(READY)
}

/// A node of a test, with this status of the condition.
fn node(test: &str, name: &str, ready: &str) -> NodeBuilder {
    fixtures::node(name)
        .label(TEST, test)
        .condition(READY, ready)
}

async fn is_gated(client: &Client, node: &str, test: &str) -> Result<bool> {
    sights::has_taint(client, node, &key(test)).await
}

async fn eventually_gated(client: &Client, node: &str, test: &str) -> Result<()> {
    gates::eventually_gated(client, node, &key(test)).await
}

async fn eventually_open(client: &Client, node: &str, test: &str) -> Result<()> {
    gates::eventually_open(client, node, &key(test)).await
}

async fn stays_open(client: &Client, node: &str, test: &str, time: Duration) -> Result<()> {
    never(&format!("{node} is gated by {test}"), time, async || {
        is_gated(client, node, test).await
    })
    .await
}

/// Creates a healthy node, and waits until the rule has observed it.
async fn create_open(client: &Client, test: &str, name: &str) -> Result<()> {
    node(test, name, "True").create(client).await?;
    eventually_released(client, test, name).await
}

/// Waits until the rule's status lists the node as released.
async fn eventually_released(client: &Client, test: &str, name: &str) -> Result<()> {
    let what = format!("rule {test} has seen {name}");
    eventually(&what, SOON, async || {
        let status = sights::rule_status(client, test).await?;
        let evaluations = status["nodeEvaluations"].as_array().cloned();
        let found = evaluations.into_iter().flatten().find(|evaluation| {
            evaluation["nodeName"] == name && evaluation["taintStatus"] == "Absent"
        });
        Ok(found.is_some_and(|found| found["conditionResults"][0]["currentStatus"] == "True"))
    })
    .await
}

/// Waits until a condition of a rule has this status and reason; returns the message.
async fn eventually_says(
    client: &Client,
    rule: &str,
    condition: &str,
    [status, reason]: [&str; 2],
) -> Result<String> {
    let what = format!("{condition} of rule {rule} is {status} for {reason}");
    let found = eventually(&what, SOON, async || {
        let found = sights::rule_condition(client, rule, condition).await?;
        Ok((found["status"] == status && found["reason"] == reason).then_some(found))
    })
    .await?;
    let message = found["message"].as_str().context("a message")?;
    Ok(message.to_owned())
}

/// How many of the nodes have the taint.
async fn count_gated(client: &Client, test: &str, nodes: &[String]) -> Result<usize> {
    let all = sights::nodes(client).await?;
    let is_one = |node: &&k8s_openapi::api::core::v1::Node| {
        let name = node.metadata.name.as_ref();
        name.is_some_and(|name| nodes.contains(name)) && sights::count_taints(node, &key(test)) > 0
    };
    Ok(all.iter().filter(is_one).count())
}

/// A value of `spec.disruption`.
fn disruption(eviction_rate: f64) -> Value {
    json!({"evictionRate": eviction_rate})
}
