//! Karpenter disrupts nodes beside a continuous rule: neither reverses the other's changes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use nodegate_tests::gates::{gated_within, released_within};
use serde_json::json;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::{NodePoolBuilder, node_pool, rule};
use testkit::nodegate::state::count_taints;
use testkit::nodegate::{NodeHistory, eventually, eventually_eq, never};

use super::{INITIALIZED, PATIENCE, READY, World};

const KEY: &str = "readiness.k8s.io/in-use";

/// Longer than Karpenter takes to disrupt a node: it checks every ten seconds, and carries out a decision after another
/// fifteen.
const LEFT_ALONE: Duration = Duration::from_secs(35);

/// Longer than Karpenter gathers pending pods before it makes a node for them: it may not have seen yet that they run.
const BEGUN: Duration = Duration::from_secs(11);

fn pool(name: &str) -> NodePoolBuilder {
    let disruption = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "1s",
        "budgets": [{"nodes": "100%"}],
    });
    node_pool(name).startup_taint(KEY).disruption(disruption)
}

/// A pool's only node, released and in use.
async fn released_node(world: &World, pool: &str) -> Result<String> {
    let nodes = world.nodes(pool, 1).await?;
    let name = nodes.first().context("a node")?.name_any();
    gated_within(&world.client, &name, KEY, PATIENCE).await?;
    set_node_condition(&world.client, &name, READY, "True").await?;
    released_within(&world.client, &name, KEY, PATIENCE).await?;
    world.running(pool, 3).await?;
    world.initialized(&name).await?;
    Ok(name)
}

async fn world_with_rule() -> Result<World> {
    let world = World::start().await?;
    let waits = rule("in-use", KEY).waits_for(READY);
    waits.create(&world.client).await?;
    Ok(world)
}

/// Whether the node has the rule's taint.
fn is_held(node: &Node) -> bool {
    count_taints(node, KEY) == 1
}

#[tokio::test]
async fn a_node_that_a_continuous_rule_gates_is_kept_while_it_is_of_use_and_taken_away_once()
-> Result<()> {
    let world = world_with_rule().await?;
    let client = &world.client;
    world.apply(pool("kept")).await?;
    world.run_pods("kept", 3).await?;
    let name = released_node(&world, "kept").await?;
    tokio::time::sleep(BEGUN).await;
    let only = vec![Some(name.clone())];
    eventually_eq("the claims' nodes", PATIENCE, only, async || {
        Ok(world.claims("kept").await?.into_values().collect())
    })
    .await?;
    let claims = world.claims("kept").await?;

    // Gated while its pods run: they stay, and so does the node.
    set_node_condition(client, &name, READY, "False").await?;
    gated_within(client, &name, KEY, PATIENCE).await?;
    never("it is not left alone", LEFT_ALONE, async || {
        let now = world.claims("kept").await?;
        ensure!(now == claims, "claims {claims:?} have become {now:?}");
        let node = testkit::nodegate::state::node(client, &name).await?;
        ensure!(is_held(&node), "it was released: {:?}", node.spec);
        Ok(false)
    })
    .await?;
    world.running("kept", 3).await?;

    // Without pods it is empty, though held.
    world.run_pods("kept", 0).await?;
    eventually("the empty node is taken away", PATIENCE, async || {
        Ok(world.claims("kept").await?.is_empty() && world.nodes_now("kept").await?.is_empty())
    })
    .await?;
    never("a node comes back", LEFT_ALONE, async || {
        Ok(!world.claims("kept").await?.is_empty())
    })
    .await
}

#[tokio::test]
async fn a_drifted_node_goes_only_once_its_successor_is_released() -> Result<()> {
    let world = world_with_rule().await?;
    let client = &world.client;
    world.apply(pool("drifts")).await?;
    world.run_pods("drifts", 3).await?;
    let old = released_node(&world, "drifts").await?;
    let history = NodeHistory::of_nodes(client).await?;

    world
        .apply(pool("drifts").node_label("generation", "2"))
        .await?;
    let nodes = world.nodes("drifts", 2).await?;
    let new = nodes
        .iter()
        .map(ResourceExt::name_any)
        .find(|name| *name != old);
    let new = new.context("the successor")?;
    gated_within(client, &new, KEY, PATIENCE).await?;
    // However long it stays held, its predecessor remains in service.
    never("the old node goes", LEFT_ALONE, async || {
        let nodes = world.nodes_now("drifts").await?;
        Ok(nodes.len() != 2 || world.claims("drifts").await?.len() != 2)
    })
    .await?;
    world.running("drifts", 3).await?;

    set_node_condition(client, &new, READY, "True").await?;
    eventually("the old node is gone", PATIENCE, async || {
        let nodes = world.nodes_now("drifts").await?;
        Ok(nodes.iter().map(ResourceExt::name_any).collect::<Vec<_>>() == [new.clone()])
    })
    .await?;
    world.running("drifts", 3).await?;

    // It had the taint from its creation until it released for good; only then did Karpenter initialize it.
    let states = history.up_to(client, &new).await?;
    let states = states.get(&new).context("its states")?;
    let released = states.iter().position(|node| !is_held(node));
    let released = released.context("it is released")?;
    ensure!(released > 0, "it was released at its creation");
    for (index, node) in states.iter().enumerate() {
        ensure!(is_held(node) == (index < released), "it was gated again");
        let in_use = node.labels().contains_key(INITIALIZED);
        ensure!(!in_use || index >= released, "in use while it was gated");
    }
    Ok(())
}
