//! Nodes that are opened although they are not ready, those that are only reported, and the dry run.

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{eventually, eventually_eq, never, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, SOON, TTL, are_left_alone, claim, client, deadline, deadline_key,
    eventually_gated, eventually_told, eventually_told_within, in_seconds, key, node, notes, rule,
};

pub(super) async fn a_node_that_is_not_ready_in_time_is_opened() -> Result<()> {
    const TEST: &str = "opened";
    let client = client().await?;
    let rule = rule(TEST, "Release").create(&client).await?;
    node(TEST, TEST).create(&client).await?;
    eventually_gated(&client, TEST, TEST).await?;
    let within = TTL + SOON;
    let note = eventually_told_within(&client, TEST, "NodeReleasedUnready", within).await?;
    assert_eq!(
        note,
        "Rule 'opened' has opened this node although it is not ready: its readiness TTL has passed; example.com/Ready is not reported \
         (counts as Unknown, must be True)"
    );
    let node = sights::node(&client, TEST).await?;
    let created = super::created(&node)?;
    ensure!(
        Timestamp::now().duration_since(created).as_secs() >= 60,
        "too early"
    );
    let uid = rule.uid().unwrap_or_default();
    let completed = format!("readiness.k8s.io/bootstrap-completed-{uid}");
    ensure!(
        node.annotations().contains_key(&completed),
        "{:?}",
        node.annotations()
    );
    // The rule ignores it from now on, and it counts as late until it is ready.
    set_node_condition(&client, TEST, READY, "False").await?;
    never("it is closed again", A_WHILE, async || {
        sights::has_taint(&client, TEST, &key(TEST)).await
    })
    .await?;
    ensure!(deadline(&client, &rule, TEST).await?.is_some(), "not late");
    set_node_condition(&client, TEST, READY, "True").await?;
    eventually("it is not late any more", SOON, async || {
        Ok(deadline(&client, &rule, TEST).await?.is_none())
    })
    .await
}

#[tokio::test]
async fn by_default_it_is_told_once_and_nothing_is_done() -> Result<()> {
    const TEST: &str = "told";
    let client = client().await?;
    let silent = rule(TEST, "None").spec("repair", json!({"readinessTTL": "1m"}));
    let rule = silent.create(&client).await?;
    claim(TEST, TEST).create(&client).await?;
    node(TEST, TEST)
        .taint(&key(TEST), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    let note = eventually_told(&client, TEST, "NodeNotReadyInTime").await?;
    ensure!(
        note.starts_with("The node should have been ready by "),
        "{note}"
    );
    set_node_condition(&client, TEST, READY, "False").await?;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(notes(&client, TEST, "NodeNotReadyInTime").await?.len(), 1);
    are_left_alone(&client, &[TEST]).await?;
    ensure!(sights::has_taint(&client, TEST, &key(TEST)).await?, "open");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_repaired() -> Result<()> {
    const TEST: &str = "would";
    let client = client().await?;
    let dry = rule(TEST, "DeleteNodeClaim").dry_run().spec(
        "repair",
        json!({"readinessTTL": "1m", "action": "DeleteNodeClaim", "maxUnhealthy": 2}),
    );
    let rule = dry.create(&client).await?;
    let late = async |name: &str| {
        claim(TEST, name).create(&client).await?;
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(2))
            .create(&client)
            .await
    };
    late("would-1").await?;
    late("would-2").await?;
    node(TEST, "would-3")
        .condition(READY, "True")
        .create(&client)
        .await?;
    let summary = async || {
        let status = sights::rule_status(&client, TEST).await?;
        let summary = status["dryRunResults"]["summary"].as_str();
        Ok(summary.context("a summary")?.to_owned())
    };
    let expected = "2 nodes have missing conditions, would repair 2 nodes";
    eventually_eq("the dry run's result", SOON, expected.to_owned(), summary).await?;
    late("would-4").await?;
    let expected =
        "3 nodes have missing conditions, would not repair 3 nodes while so many are unhealthy";
    eventually_eq("the dry run's result", SOON, expected.to_owned(), summary).await?;
    are_left_alone(&client, &["would-1", "would-2", "would-4"]).await
}
