//! With too many unhealthy nodes, the nodes are not the cause, and nothing is repaired.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::jiff::Timestamp;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{self, RuleBuilder};
use nodegate_testbed::{eventually, never, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, SOON, TTL, are_left_alone, claim, client, deadline, deadline_key,
    eventually_deleted, eventually_open, eventually_told, eventually_told_within, in_seconds, key,
    living_claim, node, rule,
};

/// A rule with the default limit.
fn careful(test: &str, action: &str) -> RuleBuilder {
    let repair = json!({"readinessTTL": "1m", "action": action});
    rule(test, action).spec("repair", repair)
}

#[tokio::test]
async fn no_claim_is_deleted_while_too_many_nodes_of_the_pool_are_late() -> Result<()> {
    const TEST: &str = "many";
    let client = client().await?;
    let rule = careful(TEST, "DeleteNodeClaim").create(&client).await?;
    for name in ["many-1", "many-2", "many-3"] {
        node(TEST, name)
            .condition(READY, "True")
            .create(&client)
            .await?;
    }
    let due = in_seconds(5);
    for name in ["many-late", "many-late-too"] {
        claim(TEST, name).create(&client).await?;
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &due)
            .create(&client)
            .await?;
    }
    for name in ["many-late", "many-late-too"] {
        let note = eventually_told(&client, name, "NodeRepairBlocked").await?;
        assert_eq!(
            note,
            "Rule 'many' does not repair this node: 2 of 5 nodes of NodePool 'many' are past their readiness TTL or \
             not Ready any more, and maxUnhealthy 20% allows 1"
        );
    }
    never("a claim is deleted", A_WHILE, async || {
        Ok(are_left_alone(&client, &["many-late", "many-late-too"])
            .await
            .is_err())
    })
    .await?;

    // One of them becomes ready after all: only the other one is late now.
    set_node_condition(&client, "many-late-too", READY, "True").await?;
    eventually_open(&client, TEST, "many-late-too").await?;
    set_node_condition(&client, "many-late", "example.com/Other", "True").await?;
    eventually_deleted(&client, "many-late").await?;
    are_left_alone(&client, &["many-late-too"]).await
}

#[tokio::test]
async fn nodes_that_have_stopped_being_ready_count_and_those_within_their_time_do_not() -> Result<()>
{
    const TEST: &str = "scale-up";
    let client = client().await?;
    let rule = careful(TEST, "DeleteNodeClaim").create(&client).await?;
    let pool = |name: &str, pool: &str| node(TEST, name).label("karpenter.sh/nodepool", pool);
    for index in 0..8 {
        pool(&format!("up-young-{index}"), "up")
            .create(&client)
            .await?;
        pool(&format!("down-young-{index}"), "down")
            .create(&client)
            .await?;
    }
    for index in 0..3 {
        fixtures::node(&format!("down-broken-{index}"))
            .label("karpenter.sh/nodepool", "down")
            .label("karpenter.sh/initialized", "true")
            .condition("Ready", "Unknown")
            .create(&client)
            .await?;
    }
    for (name, of) in [("down-late", "down"), ("up-late", "up")] {
        claim(of, name).create(&client).await?;
        pool(name, of)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(3))
            .create(&client)
            .await?;
    }
    eventually_deleted(&client, "up-late").await?;
    let note = eventually_told(&client, "down-late", "NodeRepairBlocked").await?;
    ensure!(note.contains("4 of 12 nodes of NodePool 'down'"), "{note}");
    ensure!(
        living_claim(&client, "down-late").await?.is_some(),
        "deleted"
    );
    Ok(())
}

pub(super) async fn without_a_pool_the_nodes_of_the_rule_are_counted() -> Result<()> {
    const TEST: &str = "bare";
    let client = client().await?;
    let rule = careful(TEST, "Release").create(&client).await?;
    let bare = |name: &str| {
        fixtures::node(name)
            .label(super::TEST, TEST)
            .condition("Ready", "True")
    };
    // Creation times are in whole seconds: these become late together.
    let into_a_second = u64::try_from(Timestamp::now().subsec_nanosecond())?;
    tokio::time::sleep(Duration::from_nanos(1_000_000_000 - into_a_second)).await;
    let due = in_seconds(5);
    for name in ["bare-late", "bare-late-too"] {
        bare(name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &due)
            .create(&client)
            .await?;
    }
    let blocked = "NodeRepairBlocked";
    let note = eventually_told_within(&client, "bare-late", blocked, TTL + SOON).await?;
    ensure!(note.contains("2 of 2 nodes of rule 'bare'"), "{note}");
    ensure!(
        sights::has_taint(&client, "bare-late", &key(TEST)).await?,
        "open"
    );
    Ok(())
}

pub(super) async fn nodes_are_not_opened_one_after_another_while_those_before_are_not_ready()
-> Result<()> {
    const TEST: &str = "trickle";
    let client = client().await?;
    let rule = careful(TEST, "Release").create(&client).await?;
    let late = async |name: &str, seconds: i64| {
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(seconds))
            .create(&client)
            .await
    };
    late("trickle-first", -5).await?;
    eventually_open(&client, TEST, "trickle-first").await?;
    late("trickle-second", -5).await?;
    let blocked = "NodeRepairBlocked";
    let note = eventually_told_within(&client, "trickle-second", blocked, TTL + SOON).await?;
    ensure!(
        note.contains("2 of 2 nodes of NodePool 'trickle'"),
        "{note}"
    );
    set_node_condition(&client, "trickle-first", READY, "True").await?;
    eventually("the first one is not late any more", SOON, async || {
        Ok(deadline(&client, &rule, "trickle-first").await?.is_none())
    })
    .await?;
    set_node_condition(&client, "trickle-second", "example.com/Other", "True").await?;
    eventually_open(&client, TEST, "trickle-second").await
}
