//! Planned maintenance of nodes, and brief absences.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodegate_testbed::changes::{patch_node_status, set_node_condition};
use nodegate_testbed::{Witness, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, client, create_open, eventually_gated, eventually_open, key, node, rule,
    stays_open,
};

/// A brief absence: half of what closes a node.
const A_MOMENT: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_node_is_gated_again_after_its_maintenance_and_not_before() -> Result<()> {
    const DRAIN: &str = "DrainInProgress";
    let client = client().await?;
    rule("drain")
        .bootstrap_only()
        .spec("regateAfterMaintenance", json!(true))
        .create(&client)
        .await?;
    create_open(&client, "drain", "drain").await?;
    set_node_condition(&client, "drain", DRAIN, "True").await?;
    set_node_condition(&client, "drain", READY, "False").await?;
    stays_open(&client, "drain", "drain", A_WHILE).await?;
    set_node_condition(&client, "drain", DRAIN, "False").await?;
    eventually_gated(&client, "drain", "drain").await?;
    set_node_condition(&client, "drain", READY, "True").await?;
    eventually_open(&client, "drain", "drain").await?;
    set_node_condition(&client, "drain", READY, "False").await?;
    stays_open(&client, "drain", "drain", A_WHILE).await
}

#[tokio::test]
async fn a_brief_absence_closes_no_node_and_a_lasting_one_does() -> Result<()> {
    const RESOURCE: &str = "example.com/gpu";
    let client = client().await?;
    let allocatable = |count: &str| json!({ "status": { "allocatable": { RESOURCE: count } } });
    rule("flicker")
        .waits_for(&format!("resource.nodegate.dev/{RESOURCE}"))
        .create(&client)
        .await?;
    node("flicker", "flicker", "True").create(&client).await?;
    eventually_gated(&client, "flicker", "flicker").await?;
    // A busy machine may make the absence too long.
    let witness = loop {
        patch_node_status(&client, "flicker", &allocatable("1")).await?;
        eventually_open(&client, "flicker", "flicker").await?;
        let witness = Witness::of_nodes(&client).await?;
        let began = Instant::now();
        patch_node_status(&client, "flicker", &allocatable("0")).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        patch_node_status(&client, "flicker", &allocatable("1")).await?;
        if began.elapsed() < A_MOMENT {
            break witness;
        }
    };
    tokio::time::sleep(A_WHILE).await;
    let states = witness.up_to(&client, "flicker").await?;
    let mut states = states["flicker"].iter();
    let closed = states.any(|node| sights::count_taints(node, &key("flicker")) > 0);
    ensure!(!closed, "it was closed");
    patch_node_status(&client, "flicker", &allocatable("0")).await?;
    eventually_gated(&client, "flicker", "flicker").await
}
