//! A node that never gets ready is replaced, by Karpenter, once the rule has its claim deleted; and nothing else is touched.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::ResourceExt;
use nodegate_suite::gates::{gated_within, opened_within};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{node_pool, rule};
use nodegate_testbed::{eventually, sights};
use serde_json::json;

use super::{PATIENCE, READY, World};

const KEY: &str = "readiness.k8s.io/replaced";

/// The shortest readiness TTL there is.
const TTL: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_node_that_never_gets_ready_is_replaced_and_no_other_and_not_where_too_many_are_late()
-> Result<()> {
    let world = World::start().await?;
    let client = &world.client;
    let repair = json!({"readinessTTL": "1m", "action": "DeleteNodeClaim"});
    rule("replaced", KEY)
        .bootstrap_only()
        .waits_for(READY)
        .spec("repair", repair)
        .create(client)
        .await?;
    // Of one pool's two nodes one never gets ready, of the other pool's two neither does: that is more than a fifth, rounded up.
    for pool in ["one-late", "all-late"] {
        world.apply(node_pool(pool).startup_taint(KEY)).await?;
        world.run_pods(pool, 6).await?;
    }
    let nodes = world.nodes("one-late", 2).await?;
    let [good, late] = &nodes[..] else {
        unreachable!()
    };
    let (good, late) = (good.name_any(), late.name_any());
    world.nodes("all-late", 2).await?;
    set_node_condition(client, &good, READY, "True").await?;
    opened_within(client, &good, KEY, PATIENCE).await?;
    world.initialized(&good).await?;
    gated_within(client, &late, KEY, PATIENCE).await?;
    let before = world.claims("one-late").await?;
    let held = world.claims("all-late").await?;

    let replacement = eventually("the late node is replaced", TTL + PATIENCE, async || {
        let nodes = world.nodes_now("one-late").await?;
        let names: Vec<String> = nodes.iter().map(ResourceExt::name_any).collect();
        ensure!(names.contains(&good), "the node that is ready is gone");
        let new = names.iter().find(|name| ![&good, &late].contains(name));
        Ok(new.filter(|_| !names.contains(&late)).cloned())
    })
    .await?;
    let told = sights::events_about(client, "Node", &late).await?;
    let deleted = told
        .iter()
        .filter(|event| event.reason.as_deref() == Some("NodeClaimDeleted"));
    ensure!(deleted.count() == 1, "{told:?}");

    // The new node is as closed as any, and takes the pods once it is ready.
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

    // The other pool's nodes are past their time, too.
    for (_, node) in held
        .iter()
        .filter_map(|(uid, node)| Some((uid, node.as_ref()?)))
    {
        eventually(
            "it is told that the limit holds",
            TTL + PATIENCE,
            async || {
                let told = sights::events_about(client, "Node", node).await?;
                Ok(told
                    .iter()
                    .any(|event| event.reason.as_deref() == Some("NodeRepairBlocked")))
            },
        )
        .await?;
    }
    assert_eq!(world.claims("all-late").await?, held);
    Ok(())
}
