//! Silent reporters.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{Witness, sights};
use serde_json::json;

use super::{READY, client, create_open, eventually_gated, eventually_open, key, rule};

/// Slightly less than the shortest possible timeout.
const ALMOST: Duration = Duration::from_secs(55);

#[tokio::test]
async fn a_node_whose_reporter_falls_silent_is_closed_and_one_whose_reporter_beats_is_not()
-> Result<()> {
    let client = client().await?;
    rule("silent")
        .spec("heartbeatTimeout", json!("1m"))
        .create(&client)
        .await?;
    create_open(&client, "silent", "silent-dead").await?;
    create_open(&client, "silent", "silent-alive").await?;
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

    let status = sights::rule_status(&client, "silent").await?;
    let evaluations = status["nodeEvaluations"].as_array().cloned();
    let dead = evaluations
        .into_iter()
        .flatten()
        .find(|evaluation| evaluation["nodeName"] == "silent-dead");
    ensure!(
        dead.is_some_and(|dead| dead["conditionResults"][0]["currentStatus"] == "Unknown"),
        "the status does not say that it counts as Unknown"
    );
    set_node_condition(&client, "silent-dead", READY, "True").await?;
    eventually_open(&client, "silent-dead", "silent").await
}
