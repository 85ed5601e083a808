//! Rules that only count.

use anyhow::Result;
use kube::ResourceExt;
use nodegate_testbed::changes::{patch_rule, set_node_condition};
use nodegate_testbed::sights::rule_status;
use nodegate_testbed::{eventually_eq, sights};
use serde_json::{Value, json};

use super::rule::{self, bootstrap, continuous};
use super::{
    READY, SOON, client, eventually_gated, eventually_open, key, node, stays_gated, stays_open,
};

async fn eventually_results(client: &kube::Client, rule: &str, expected: Value) -> Result<()> {
    eventually_eq("the results of the dry run", SOON, expected, async || {
        Ok(rule_status(client, rule).await?["dryRunResults"].clone())
    })
    .await
}

#[tokio::test]
async fn a_dry_run_counts_what_would_change_and_changes_nothing() -> Result<()> {
    let client = client().await?;
    let tainted = |name| node("dry", name).taint(&key("dry"), "NoSchedule");
    let nodes = [
        node("dry", "dry-unmet").condition(READY, "False"),
        node("dry", "dry-met").condition(READY, "True"),
        node("dry", "dry-missing"),
        tainted("dry-lift").condition(READY, "True"),
        tainted("dry-hold").condition(READY, "False"),
    ];
    let mut before = Vec::new();
    for node in nodes {
        before.push(node.create(&client).await?);
    }
    let rule = bootstrap("dry").dry_run();
    rule.create(&client).await?;
    let summary = format!(
        "would add 2 taints, would remove 1 taints, 1 nodes have missing conditions, 2 of 5 selected nodes are open and \
         unmet now (1 has never reported {READY}): they would be closed at once"
    );
    let expected = json!({
        "affectedNodes": 5,
        "taintsToAdd": 2,
        "taintsToRemove": 1,
        "riskyOperations": 1,
        "summary": summary,
    });
    eventually_results(&client, "dry", expected).await?;
    rule::eventually_counts(&client, "dry", [5, 2, 3]).await?;
    for before in before {
        let after = sights::node(&client, &before.name_any()).await?;
        assert_eq!(after.resource_version(), before.resource_version());
    }
    assert_eq!(
        rule_status(&client, "dry").await?["appliedNodes"],
        Value::Null
    );
    Ok(())
}

/// Sets whether the rule `dry-real` is a dry run.
async fn turn_dry(client: &kube::Client, dry: Value) -> Result<()> {
    patch_rule(client, "dry-real", &json!({"spec": {"dryRun": dry}})).await
}

#[tokio::test]
async fn a_dry_run_becomes_real_and_a_real_rule_a_dry_run() -> Result<()> {
    let client = client().await?;
    node("dry-real", "dry-real").create(&client).await?;
    let rule = continuous("dry-real").dry_run();
    rule.create(&client).await?;
    rule::eventually_observed(&client, "dry-real").await?;
    stays_open(&client, "dry-real", "dry-real").await?;

    turn_dry(&client, json!(false)).await?;
    eventually_gated(&client, "dry-real", "dry-real").await?;
    rule::eventually_observed(&client, "dry-real").await?;
    eventually_results(&client, "dry-real", Value::Null).await?;

    turn_dry(&client, json!(true)).await?;
    rule::eventually_observed(&client, "dry-real").await?;
    set_node_condition(&client, "dry-real", READY, "True").await?;
    stays_gated(&client, "dry-real", "dry-real").await?;
    let expected = json!({
        "affectedNodes": 1,
        "taintsToAdd": 0,
        "taintsToRemove": 1,
        "riskyOperations": 0,
        "summary": "would remove 1 taints",
    });
    eventually_results(&client, "dry-real", expected).await?;

    turn_dry(&client, json!(null)).await?;
    eventually_open(&client, "dry-real", "dry-real").await
}
