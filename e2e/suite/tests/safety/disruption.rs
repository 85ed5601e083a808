//! The disruption guard: how fast open nodes are closed, zone by zone.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::Client;
use nodegate_testbed::changes::set_node_condition;

use super::{
    READY, SOON, client, count_gated, disruption, eventually_open, eventually_released,
    eventually_says, node, rule,
};

const LIMITED: &str = "DisruptionLimited";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The names of the nodes of a test's zone.
fn names(test: &str, zone: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{test}-{zone}-{index}"))
        .collect()
}

/// Creates the nodes of a zone.
async fn create_zone(
    client: &Client,
    test: &str,
    zone: &str,
    nodes: &[String],
    ready: &str,
) -> Result<()> {
    for name in nodes {
        node(test, name, ready)
            .label(ZONE, zone)
            .create(client)
            .await?;
    }
    Ok(())
}

/// Creates zones of healthy nodes, and waits until the rule has observed them.
async fn create_open_zones(
    client: &Client,
    test: &str,
    zones: &[&str],
    count: usize,
) -> Result<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for zone in zones {
        let nodes = names(test, zone, count);
        create_zone(client, test, zone, &nodes, "True").await?;
        for name in &nodes {
            eventually_released(client, test, name).await?;
        }
        all.push(nodes);
    }
    Ok(all)
}

async fn set_all(client: &Client, nodes: &[String], ready: &str) -> Result<()> {
    for name in nodes {
        set_node_condition(client, name, READY, ready).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_nodes_of_a_zone_are_closed_at_the_eviction_rate_and_opened_at_once() -> Result<()> {
    const RATE: f64 = 0.5;
    let client = client().await?;
    rule("rate")
        .spec("disruption", disruption(RATE))
        .create(&client)
        .await?;
    let zones = create_open_zones(&client, "rate", &["a", "b"], 4).await?;
    let broken = &zones[0];
    let started = Instant::now();
    set_all(&client, broken, "False").await?;
    let mut most = 0;
    while most < broken.len() {
        let gated = count_gated(&client, "rate", broken).await?;
        let tokens = 1.0 + started.elapsed().as_secs_f64() * RATE;
        #[expect(clippy::cast_precision_loss, reason = "a handful of nodes")]
        let within = gated as f64 <= tokens;
        ensure!(within, "{gated} nodes closed, {tokens} tokens");
        ensure!(started.elapsed() < SOON, "{gated} nodes closed");
        most = most.max(gated);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let reopened = Instant::now();
    set_all(&client, broken, "True").await?;
    for name in broken {
        eventually_open(&client, name, "rate").await?;
    }
    ensure!(
        reopened.elapsed() < started.elapsed(),
        "opening was limited"
    );
    eventually_says(&client, "rate", LIMITED, ["False", "NoNodeHeldBack"]).await?;
    Ok(())
}
