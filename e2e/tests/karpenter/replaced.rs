//! Karpenter replaces a node that never becomes ready, once the rule deletes its claim. Nothing else is touched.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use nodegate_tests::gates::{gated_within, released_within};
use serde_json::json;
use testkit::nodegate::changes::{patch_node, set_node_condition};
use testkit::nodegate::fixtures::{node_pool, rule};
use testkit::nodegate::{eventually, state};

use super::{PATIENCE, READY, World};

const KEY: &str = "readiness.k8s.io/replaced";

/// The shortest possible readiness TTL.
const TTL: Duration = Duration::from_secs(60);

/// Longer than two nodes take to be written.
const BOTH: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_node_that_never_gets_ready_is_replaced_and_no_other_and_not_where_too_many_are_late()
-> Result<()> {
    let world = World::start().await?;
    let client = &world.client;
    let repair = json!({"readinessTTL": "1m", "action": "DeleteNodeClaim"});
    let rule = rule("replaced", KEY)
        .bootstrap_only()
        .waits_for(READY)
        .nodegate("repair", repair)
        .create(client)
        .await?;

    // One of this pool's two nodes never becomes ready.
    world
        .apply(node_pool("one-late").startup_taint(KEY))
        .await?;
    world.run_pods("one-late", 6).await?;
    let nodes = world.nodes("one-late", 2).await?;
    let [good, late] = &nodes[..] else {
        unreachable!()
    };
    let (good, late) = (good.name_any(), late.name_any());
    set_node_condition(client, &good, READY, "True").await?;
    released_within(client, &good, KEY, PATIENCE).await?;
    world.initialized(&good).await?;
    gated_within(client, &late, KEY, PATIENCE).await?;
    let before = world.claims("one-late").await?;

    let replacement = eventually("the late node is replaced", TTL + PATIENCE, async || {
        let nodes = world.nodes_now("one-late").await?;
        let names: Vec<String> = nodes.iter().map(ResourceExt::name_any).collect();
        ensure!(names.contains(&good), "the node that is ready is gone");
        let new = names.iter().find(|name| ![&good, &late].contains(name));
        Ok(new.filter(|_| !names.contains(&late)).cloned())
    })
    .await?;
    let told = state::reasons_about(client, "Node", &late).await?;
    let deleted = told.iter().filter(|reason| *reason == "NodeClaimDeleted");
    ensure!(deleted.count() == 1, "{told:?}");

    // The new node starts held, too, and takes the pods once it is ready.
    gated_within(client, &replacement, KEY, PATIENCE).await?;
    set_node_condition(client, &replacement, READY, "True").await?;
    world.running("one-late", 6).await?;
    let after = world.claims("one-late").await?;
    let kept = |(uid, node): (&String, &Option<String>)| {
        before.get(uid).is_some_and(|was| was == node) && node.as_deref() == Some(&*good)
    };
    ensure!(
        after.len() == 2 && after.iter().filter(|it| kept(*it)).count() == 1,
        "{before:?} became {after:?}"
    );

    // Neither of the other pool's two nodes becomes ready: that exceeds a fifth, rounded up, once both are late. Karpenter may
    // create them seconds apart, and then the first late one would be one of two.
    let both_late = node_pool("both-late").startup_taint(KEY);
    world
        .apply(both_late.annotation("nodegate.dev/readiness-ttl", "1h"))
        .await?;
    world.run_pods("both-late", 6).await?;
    let nodes = world.nodes("both-late", 2).await?;
    let nodes: Vec<String> = nodes.iter().map(ResourceExt::name_any).collect();
    let held = world.claims("both-late").await?;
    let uid = rule.uid().unwrap_or_default();
    let deadline = format!("nodegate.dev/ready-deadline-{uid}");
    for node in &nodes {
        eventually("the node has a deadline", PATIENCE, async || {
            let node = state::node(client, node).await?;
            Ok(node.annotations().contains_key(&deadline))
        })
        .await?;
    }
    let soon = Timestamp::now() + BOTH;
    let due = json!({"metadata": {"annotations": {deadline: soon}}});
    for node in &nodes {
        patch_node(client, node, &due).await?;
    }
    for node in &nodes {
        eventually("it is told that the limit holds", PATIENCE, async || {
            let told = state::reasons_about(client, "Node", node).await?;
            Ok(told.contains(&"NodeRepairBlocked".to_owned()))
        })
        .await?;
    }
    let kept = world.claims("both-late").await?;
    assert!(kept.keys().eq(held.keys()), "{held:?} became {kept:?}");
    Ok(())
}
