//! Grace periods: how long an open node's conditions must be unmet before it is closed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{Controller, Witness, fixtures, never, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, TEST, client, create_open, eventually_gated, eventually_open,
    eventually_released, gated_within, key, node, own_cluster, rule, stays_open, until,
};

#[tokio::test]
async fn an_open_node_is_closed_only_after_the_grace_period() -> Result<()> {
    let client = client().await?;
    rule("grace")
        .spec("gracePeriod", json!("4s"))
        .create(&client)
        .await?;
    create_open(&client, "grace", "grace").await?;
    let turned = Instant::now();
    set_node_condition(&client, "grace", READY, "False").await?;
    stays_open(&client, "grace", "grace", Duration::from_secs(3)).await?;
    eventually_gated(&client, "grace", "grace").await?;
    ensure!(turned.elapsed() >= Duration::from_secs(4), "too early");
    set_node_condition(&client, "grace", READY, "True").await?;
    eventually_open(&client, "grace", "grace").await
}

#[tokio::test]
async fn a_node_that_flaps_faster_than_the_grace_period_stays_open() -> Result<()> {
    let client = client().await?;
    rule("flaps")
        .spec("gracePeriod", json!("5s"))
        .create(&client)
        .await?;
    create_open(&client, "flaps", "flaps").await?;
    let witness = Witness::of_nodes(&client).await?;
    // In total, it is unmet for longer than the grace period.
    for _ in 0..8 {
        set_node_condition(&client, "flaps", READY, "False").await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        set_node_condition(&client, "flaps", READY, "True").await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    tokio::time::sleep(A_WHILE).await;
    let states = witness.up_to(&client, "flaps").await?;
    let closed = states["flaps"]
        .iter()
        .any(|node| sights::count_taints(node, &key("flaps")) > 0);
    ensure!(!closed, "it was closed");
    Ok(())
}

#[tokio::test]
async fn a_node_that_joins_is_gated_at_once_whatever_the_grace_period() -> Result<()> {
    let client = client().await?;
    rule("joins")
        .spec("gracePeriod", json!("1h"))
        .create(&client)
        .await?;
    node("joins", "joins", "False").create(&client).await?;
    eventually_gated(&client, "joins", "joins").await?;
    set_node_condition(&client, "joins", READY, "True").await?;
    eventually_open(&client, "joins", "joins").await?;
    set_node_condition(&client, "joins", READY, "False").await?;
    stays_open(&client, "joins", "joins", A_WHILE).await
}

#[tokio::test]
async fn nodes_that_are_older_than_the_rule_get_the_grace_period_and_the_guard() -> Result<()> {
    let client = client().await?;
    let names: Vec<_> = (0..20).map(|index| format!("older-{index}")).collect();
    for name in &names {
        let never_reported = fixtures::node(name).label(TEST, "older");
        never_reported.create(&client).await?;
    }
    let before = rule("older-known").selects(TEST, "older");
    before.create(&client).await?;
    eventually_gated(&client, "older-19", "older-known").await?;
    // The API server's times are in whole seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rule("older")
        .spec(
            "taint",
            json!({ "key": key("older"), "effect": "NoExecute" }),
        )
        .spec("gracePeriod", json!("10m"))
        .spec("disruption", json!({}))
        .create(&client)
        .await?;
    tokio::time::sleep(A_WHILE).await;
    never("a node is closed", 4 * A_WHILE, async || {
        Ok(super::count_gated(&client, "older", &names).await? > 0)
    })
    .await
}

#[tokio::test]
async fn a_restart_neither_adds_to_a_grace_period_nor_takes_from_it() -> Result<()> {
    let (cluster, client) = own_cluster().await?;
    let controller = Controller::start(&cluster, &[]).await?;
    rule("restart")
        .spec("gracePeriod", json!("20s"))
        .create(&client)
        .await?;
    create_open(&client, "restart", "restart").await?;
    eventually_released(&client, "restart", "restart").await?;
    let turned = Instant::now();
    set_node_condition(&client, "restart", READY, "False").await?;
    until(turned + Duration::from_secs(18)).await;
    controller.kill();
    let restarted = Instant::now();
    let _controller = Controller::start(&cluster, &[]).await?;
    gated_within(&client, "restart", "restart", Duration::from_secs(60)).await?;
    // Times in the API are in whole seconds.
    ensure!(turned.elapsed() >= Duration::from_secs(19), "too early");
    ensure!(
        restarted.elapsed() < Duration::from_secs(20),
        "counted anew"
    );
    Ok(())
}
