//! What keeps a rule from closing nodes too soon, too fast or on stale evidence, on a real API server, with the controller
//! under its own service account.
//!
//! The tests share one cluster. Each uses its own name for its rule, its taint key and its node label. Tests that stop
//! something have their own cluster.

mod disruption;
mod grace;
mod heartbeats;
mod interplay;
mod maintenance;
mod reboot;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::Client;
use nodegate_suite::{A_WHILE, SOON, gates};
use nodegate_testbed::fixtures::{self, NodeBuilder, RuleBuilder};
use nodegate_testbed::{Cluster, Options, SharedInstallation, eventually, never, sights};
use serde_json::{Value, json};

static INSTALLATION: SharedInstallation = SharedInstallation::new(Options::api_only(), &[]);

/// The label that rules select by.
const TEST: &str = "test";
/// The rules' condition.
const READY: &str = "example.com/Ready";

/// Most of these spend their time waiting, so they run concurrently.
#[tokio::test]
async fn what_takes_a_minute() -> Result<()> {
    tokio::try_join!(
        heartbeats::a_node_whose_reporter_falls_silent_is_closed_and_one_whose_reporter_beats_is_not(),
        heartbeats::an_outage_of_the_api_server_is_not_taken_for_the_silence_of_every_reporter(),
        reboot::a_condition_from_before_a_reboot_is_not_believed_after_a_minute(),
    )?;
    Ok(())
}

async fn client() -> Result<Client> {
    INSTALLATION.get().await?.client().await
}

/// A separate cluster with everything that a controller needs.
async fn own_cluster() -> Result<(Cluster, Client)> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    Ok((cluster, client))
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

async fn gated_within(client: &Client, node: &str, test: &str, timeout: Duration) -> Result<()> {
    gates::gated_within(client, node, &key(test), timeout).await
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

/// Waits until this moment.
async fn until(moment: Instant) {
    tokio::time::sleep_until(moment.into()).await;
}

/// A value of `spec.disruption`.
fn disruption(eviction_rate: f64) -> Value {
    json!({"evictionRate": eviction_rate})
}
