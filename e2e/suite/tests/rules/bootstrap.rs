//! Rules that close a node once, while it starts.

use anyhow::{Context, Result};
use nodegate_testbed::changes::{remove_node_condition, set_node_condition};
use nodegate_testbed::eventually;
use serde_json::Value;

use super::history::{History, has_taint_of};
use super::rule::{self, bootstrap, completion, completion_by, ownership, startup};
use super::{READY, SOON, annotation, client, eventually_gated, eventually_open, node, stays_open};

#[tokio::test]
async fn the_taint_goes_and_the_completion_comes_in_one_write() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("one-write").create(&client).await?;
    let created = node("one-write", "one-write").create(&client).await?;
    let history = History::since(&client, created).await?;
    eventually_gated(&client, "one-write", "one-write").await?;
    set_node_condition(&client, "one-write", READY, "False").await?;
    set_node_condition(&client, "one-write", READY, "True").await?;
    eventually_open(&client, "one-write", "one-write").await?;

    let states = history.states().await?;
    let from = states
        .iter()
        .position(|node| has_taint_of(node, "one-write"));
    for node in &states[from.context("it was gated")?..] {
        let is_gated = has_taint_of(node, "one-write");
        let annotations = node.metadata.annotations.as_ref();
        let completed = annotations.and_then(|all| all.get(&completion(&rule)));
        let expected = (!is_gated).then_some(r#"{"rule-name":"one-write"}"#);
        assert_eq!(completed.map(String::as_str), expected, "{node:?}");
        let is_owned = annotations.is_some_and(|all| all.contains_key(&ownership(&rule)));
        assert_eq!(is_owned, is_gated, "{node:?}");
        let start = annotations.and_then(|all| all.get(&startup(&rule)));
        assert_eq!(start.is_none(), is_gated, "{node:?}");
        if let Some(start) = start {
            let start: Value = serde_json::from_str(start)?;
            assert!(start["conditions"][READY].is_string(), "{start}");
            assert!(start["opened"].is_string(), "{start}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_completed_node_is_never_gated_again() -> Result<()> {
    let client = client().await?;
    bootstrap("completed").create(&client).await?;
    node("completed", "completed").create(&client).await?;
    eventually_gated(&client, "completed", "completed").await?;
    set_node_condition(&client, "completed", READY, "True").await?;
    eventually_open(&client, "completed", "completed").await?;

    set_node_condition(&client, "completed", READY, "False").await?;
    stays_open(&client, "completed", "completed").await?;
    remove_node_condition(&client, "completed", READY).await?;
    stays_open(&client, "completed", "completed").await
}

#[tokio::test]
async fn a_node_that_is_ready_already_is_on_record_and_never_tainted() -> Result<()> {
    let client = client().await?;
    let created = node("already", "already").condition(READY, "True");
    let created = created.create(&client).await?;
    let history = History::since(&client, created).await?;
    let rule = bootstrap("already").create(&client).await?;
    let value = eventually("the completion is on record", SOON, async || {
        annotation(&client, "already", &completion(&rule)).await
    })
    .await?;
    assert_eq!(value, r#"{"rule-name":"already"}"#);
    set_node_condition(&client, "already", READY, "False").await?;
    stays_open(&client, "already", "already").await?;
    let states = history.states().await?;
    assert!(!states.iter().any(|node| has_taint_of(node, "already")));
    Ok(())
}

#[tokio::test]
async fn a_completion_on_record_under_the_rules_name_counts() -> Result<()> {
    let client = client().await?;
    node("by-name", "by-name")
        .annotation(&completion_by("by-name"), "true")
        .create(&client)
        .await?;
    node("by-name", "by-name-new").create(&client).await?;
    bootstrap("by-name").create(&client).await?;
    eventually_gated(&client, "by-name-new", "by-name").await?;
    stays_open(&client, "by-name", "by-name").await
}

#[tokio::test]
async fn a_rule_is_carried_out_only_once_its_finalizer_is_there() -> Result<()> {
    let cluster = super::cluster().await?;
    let client = cluster.client().await?;
    node("finalizer", "finalizer-node").create(&client).await?;
    bootstrap("finalizer").create(&client).await?;
    eventually_gated(&client, "finalizer-node", "finalizer").await?;
    let rule = rule::eventually_observed(&client, "finalizer").await?;
    assert_eq!(
        rule.metadata.finalizers,
        Some(vec![rule::FINALIZER.to_owned()])
    );
    let writes = super::requests::writes(cluster, "finalizer")?;
    let order = writes.iter().map(|write| &*write.resource);
    let order: Vec<_> = order.take(2).collect();
    assert_eq!(order, ["nodereadinessrules", "nodes"]);
    Ok(())
}
