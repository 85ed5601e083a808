//! The disruption guard: how fast open nodes are closed, zone by zone.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::Client;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{Controller, Witness, eventually, eventually_eq, never, sights};
use serde_json::json;

use super::{
    READY, SOON, client, count_gated, disruption, eventually_gated, eventually_open,
    eventually_released, eventually_says, key, node, own_cluster, rule,
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

#[tokio::test]
async fn a_node_that_recovers_while_it_waits_is_never_closed() -> Result<()> {
    let client = client().await?;
    rule("recovers")
        .spec("disruption", disruption(0.05))
        .create(&client)
        .await?;
    let zones = create_open_zones(&client, "recovers", &["a"], 6).await?;
    let broken = &zones[0][..3];
    let witness = Witness::of_nodes(&client).await?;
    set_all(&client, &broken[..1], "False").await?;
    eventually_gated(&client, &broken[0], "recovers").await?;
    set_all(&client, &broken[1..], "False").await?;
    let message = eventually_says(&client, "recovers", LIMITED, ["True", "NodesHeldBack"]).await?;
    ensure!(message.starts_with("2 nodes held back"), "{message}");
    set_all(&client, &broken[1..], "True").await?;
    eventually_says(&client, "recovers", LIMITED, ["False", "NoNodeHeldBack"]).await?;
    let states = witness.up_to(&client, &broken[2]).await?;
    for name in &broken[1..] {
        let closed = states[name]
            .iter()
            .any(|node| sights::count_taints(node, &key("recovers")) > 0);
        ensure!(!closed, "{name} was closed");
    }
    Ok(())
}

#[tokio::test]
async fn nodes_that_join_are_not_limited() -> Result<()> {
    let client = client().await?;
    // By default, one node in ten seconds.
    rule("joining")
        .spec("disruption", json!({}))
        .create(&client)
        .await?;
    let nodes = names("joining", "a", 12);
    let started = Instant::now();
    create_zone(&client, "joining", "a", &nodes, "False").await?;
    eventually_eq("gated nodes", SOON, nodes.len(), async || {
        count_gated(&client, "joining", &nodes).await
    })
    .await?;
    // With the limit it would take two minutes.
    ensure!(started.elapsed() < SOON, "it took too long");
    let says = eventually_says(&client, "joining", LIMITED, ["False", "NoNodeHeldBack"]);
    says.await?;
    Ok(())
}

/// The nodes get their states before the controller starts, so that it closes none in between.
#[tokio::test]
async fn a_disruption_that_a_controller_finds_holds_it_back_like_one_that_it_has_seen_begin()
-> Result<()> {
    let (cluster, client) = own_cluster().await?;
    // Every zone is disrupted: nothing is closed.
    let all = [names("all", "a", 3), names("all", "b", 3)].concat();
    for (zone, nodes) in ["a", "b"].into_iter().zip(all.chunks(3)) {
        create_zone(&client, "all", zone, nodes, "False").await?;
    }
    rule("all")
        .spec("disruption", disruption(5.0))
        .create(&client)
        .await?;
    // Most of a small zone is disrupted: nothing is closed there.
    let part = names("part", "a", 5);
    create_zone(&client, "part", "a", &part[..3], "False").await?;
    create_zone(&client, "part", "a", &part[3..], "True").await?;
    rule("part")
        .spec("disruption", disruption(5.0))
        .create(&client)
        .await?;
    // The same for a rule that only counts.
    let dry = names("dry", "a", 5);
    create_zone(&client, "dry", "a", &dry[..3], "False").await?;
    create_zone(&client, "dry", "a", &dry[3..], "True").await?;
    rule("dry")
        .spec("disruption", disruption(5.0))
        .dry_run()
        .create(&client)
        .await?;

    // Creation times are in whole seconds, and a node created in the second of a controller's start counts as new.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let mut controller = None;
    for round in 0..2 {
        drop(controller.replace(Controller::start(&cluster, &[]).await?));
        let message =
            eventually_says(&client, "all", LIMITED, ["True", "AllZonesDisrupted"]).await?;
        ensure!(
            message
                == "6 nodes held back by the disruption limit: all zones FullDisruption (6 of 6 nodes unmet), \
                    nothing more is closed until one recovers",
            "{message}"
        );
        let message = eventually_says(&client, "part", LIMITED, ["True", "NodesHeldBack"]).await?;
        ensure!(
            message
                == "3 nodes held back by the disruption limit: zone a PartialDisruption (3 of 5 nodes unmet), \
                    nothing more is closed there until it recovers",
            "{message}"
        );
        never("a node is closed", Duration::from_secs(2), async || {
            let all = count_gated(&client, "all", &all).await?;
            Ok(all + count_gated(&client, "part", &part).await? > 0)
        })
        .await?;
        let summary = eventually("the dry run is summed up", SOON, async || {
            let status = sights::rule_status(&client, "dry").await?;
            Ok(status["dryRunResults"]["summary"]
                .as_str()
                .map(str::to_owned))
        })
        .await?;
        ensure!(
            summary
                == "would add 3 taints, 3 nodes held back by the disruption limit: zone a PartialDisruption \
                    (3 of 5 nodes unmet), nothing more is closed there until it recovers",
            "{summary}"
        );
        let events = sights::events_about(&client, "NodeReadinessRule", "all").await?;
        let limited = events
            .iter()
            .filter(|event| event.reason.as_deref() == Some(LIMITED));
        ensure!(limited.count() > round, "no event {LIMITED}");
    }

    // One healthy node is enough: its zone is no longer disrupted, so not every zone is.
    set_node_condition(&client, &all[0], READY, "True").await?;
    eventually_eq("closed nodes", SOON, 5, async || {
        count_gated(&client, "all", &all).await
    })
    .await?;
    set_node_condition(&client, &part[0], READY, "True").await?;
    eventually_eq("closed nodes", SOON, 2, async || {
        count_gated(&client, "part", &part).await
    })
    .await
}
