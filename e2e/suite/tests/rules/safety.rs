//! Nodes that go on or come back otherwise: silent reporters, reboots and maintenance. Grace periods and disruption limits are
//! played in `examples`.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::{Client, ResourceExt};
use nodegate_suite::SOON;
use nodegate_suite::gates::stays_open;
use nodegate_testbed::changes::{patch_node_status, patch_rule, set_node_condition};
use nodegate_testbed::fixtures::NodeBuilder;
use nodegate_testbed::{Witness, eventually, sights};
use serde_json::json;

use super::{
    INSTALLATION, READY, client, continuous, eventually_gated, eventually_open, key, node,
};

/// A healthy node of a test.
fn healthy(test: &str, name: &str) -> NodeBuilder {
    node(test, name).condition(READY, "True")
}

/// Waits until a rule's status has this status for its condition on a node.
async fn eventually_counts_as(client: &Client, rule: &str, node: &str, is: &str) -> Result<()> {
    eventually(&format!("{node} counts as {is}"), SOON, async || {
        let status = sights::rule_status(client, rule).await?;
        let evaluations = status["nodeEvaluations"].as_array().cloned();
        let mut evaluations = evaluations.into_iter().flatten();
        let found = evaluations.find(|it| it["nodeName"] == node);
        Ok(found.is_some_and(|it| it["conditionResults"][0]["currentStatus"] == is))
    })
    .await
}

/// Waits until the node's completed bootstrap is on record, with this in it.
async fn eventually_completed(client: &Client, node: &str, with: &str) -> Result<()> {
    let what = format!("{node} has completed its bootstrap, with {with:?}");
    eventually(&what, SOON, async || {
        let node = sights::node(client, node).await?;
        let mut annotations = node.annotations().iter();
        Ok(annotations.any(|(key, value)| {
            key.starts_with("readiness.k8s.io/bootstrap-completed-") && value.contains(with)
        }))
    })
    .await
}

#[tokio::test]
async fn a_node_whose_reporter_falls_silent_is_closed_and_one_whose_reporter_beats_is_not()
-> Result<()> {
    /// Slightly less than the shortest possible timeout.
    const ALMOST: Duration = Duration::from_secs(55);
    let client = client().await?;
    continuous("silent")
        .nodegate("heartbeatTimeout", json!("1m"))
        .create(&client)
        .await?;
    for name in ["silent-dead", "silent-alive"] {
        healthy("silent", name).create(&client).await?;
        eventually_counts_as(&client, "silent", name, "True").await?;
    }
    // The other tests take seconds.
    INSTALLATION.get().await?.idles();
    let started = Instant::now();
    let witness = Witness::of_nodes(&client).await?;
    while started.elapsed() < ALMOST {
        set_node_condition(&client, "silent-alive", READY, "True").await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    set_node_condition(&client, "silent-alive", READY, "True").await?;
    eventually_gated(&client, "silent-dead", "silent").await?;
    // The controller observed the write a moment before this test's clock started.
    ensure!(started.elapsed() > ALMOST, "too early");
    let states = witness.up_to(&client, "silent-alive").await?;
    let closed = states["silent-alive"]
        .iter()
        .any(|node| sights::count_taints(node, &key("silent")) > 0);
    ensure!(!closed, "the node whose reporter beats was closed");
    eventually_counts_as(&client, "silent", "silent-dead", "Unknown").await?;
    set_node_condition(&client, "silent-dead", READY, "True").await?;
    eventually_open(&client, "silent-dead", "silent").await
}

#[tokio::test]
async fn a_node_that_reboots_is_gated_until_its_evidence_is_renewed() -> Result<()> {
    let client = client().await?;
    continuous("reboots")
        .bootstrap_only()
        .nodegate("regateOn", json!(["Reboot"]))
        .create(&client)
        .await?;
    let node = healthy("reboots", "reboots").boot_id("boot-1");
    node.create(&client).await?;
    eventually_completed(&client, "reboots", "boot-1").await?;
    set_node_condition(&client, "reboots", READY, "False").await?;
    stays_open(&client, "reboots", &key("reboots")).await?;
    set_node_condition(&client, "reboots", READY, "True").await?;
    // Times in the API are in whole seconds: a repeated write within the same second changes nothing.
    tokio::time::sleep(Duration::from_millis(1100)).await;

    // As the kubelet reports it after a reboot.
    let rebooted = json!({"status": {"nodeInfo": {"bootID": "boot-2"}}});
    patch_node_status(&client, "reboots", &rebooted).await?;
    eventually_gated(&client, "reboots", "reboots").await?;
    set_node_condition(&client, "reboots", READY, "True").await?;
    eventually_open(&client, "reboots", "reboots").await?;
    eventually_completed(&client, "reboots", "boot-2").await
}

#[tokio::test]
async fn a_node_is_gated_again_after_its_maintenance_and_not_before() -> Result<()> {
    const DRAIN: &str = "DrainInProgress";
    let client = client().await?;
    continuous("drain")
        .bootstrap_only()
        .nodegate("regateOn", json!(["Maintenance"]))
        .create(&client)
        .await?;
    healthy("drain", "drain").create(&client).await?;
    eventually_completed(&client, "drain", "").await?;
    set_node_condition(&client, "drain", DRAIN, "True").await?;
    set_node_condition(&client, "drain", READY, "False").await?;
    stays_open(&client, "drain", &key("drain")).await?;
    set_node_condition(&client, "drain", DRAIN, "False").await?;
    eventually_gated(&client, "drain", "drain").await?;
    set_node_condition(&client, "drain", READY, "True").await?;
    eventually_open(&client, "drain", "drain").await?;
    set_node_condition(&client, "drain", READY, "False").await?;
    stays_open(&client, "drain", &key("drain")).await
}

#[tokio::test]
async fn a_rule_that_would_gate_too_many_nodes_in_use_gates_none_until_somebody_allows_it()
-> Result<()> {
    const NAME: &str = "first-blow";
    let client = client().await?;
    let names: Vec<String> = (0..5).map(|number| format!("{NAME}-{number}")).collect();
    for name in &names {
        node(NAME, name).create(&client).await?;
    }
    // Creation times are whole seconds, and the nodes have to be older than the rule.
    tokio::time::sleep(Duration::from_secs(2)).await;
    continuous(NAME)
        .nodegate("disruption", json!({"maxFirstGated": "10%"}))
        .create(&client)
        .await?;
    let why = "would gate 5 of 5 nodes in use at once (5 have never reported example.com/Ready); at most 10% are allowed";
    eventually("the rule is held back", SOON, async || {
        let status = sights::rule_status(&client, NAME).await?;
        let conditions = status["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        let found = conditions.find(|it| it["type"] == "HeldBack");
        let found = found.filter(|it| it["reason"] == "WouldGateTooMany");
        Ok(found.is_some_and(|it| it["message"].as_str().is_some_and(|it| it.starts_with(why))))
    })
    .await?;
    node(NAME, "first-blow-joins").create(&client).await?;
    eventually_gated(&client, "first-blow-joins", NAME).await?;
    for name in &names {
        stays_open(&client, name, &key(NAME)).await?;
    }
    let yes = json!({"spec": {"nodegate": {"disruption": {"maxFirstGated": "100%"}}}});
    patch_rule(&client, NAME, &yes).await?;
    for name in &names {
        eventually_gated(&client, name, NAME).await?;
    }
    Ok(())
}
