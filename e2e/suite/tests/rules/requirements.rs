//! What a rule may ask of a condition beside its status: how many of something, and reasons.

use anyhow::Result;
use kube::Client;
use nodegate_suite::SOON;
use nodegate_testbed::changes::{patch_node, patch_node_status};
use nodegate_testbed::{eventually, fixtures, sights};
use serde_json::{Value, json};

use super::{
    READY, TEST, client, eventually_gated, eventually_open, key, node, stays_gated, stays_open,
};

const GPU: &str = "nvidia.com/gpu";
const GPUS: &str = "resource.nodegate.dev/nvidia.com/gpu";

/// A continuous rule with one condition, which selects the nodes of a test.
async fn asks(client: &Client, test: &str, kind: &str, terms: &Value) -> Result<()> {
    let mut condition = json!({"type": kind, "requiredStatus": "True"});
    for (field, value) in terms.as_object().into_iter().flatten() {
        condition[field] = value.clone();
    }
    let rule = fixtures::rule(test, &key(test)).selects(TEST, test);
    rule.spec("conditions", json!([condition]))
        .create(client)
        .await
        .map(drop)
}

/// The kubelet reports this many GPUs.
async fn offers(client: &Client, node: &str, gpus: &str) -> Result<()> {
    let patch = json!({"status": {"allocatable": {GPU: gpus}, "capacity": {GPU: "8"}}});
    patch_node_status(client, node, &patch).await
}

/// Waits until a rule's status has this status for its condition on a node.
async fn eventually_counts_as(client: &Client, rule: &str, node: &str, is: &str) -> Result<()> {
    eventually(&format!("{node} counts as {is}"), SOON, async || {
        let status = sights::rule_status(client, rule).await?;
        let evaluations = status["nodeEvaluations"].as_array().cloned();
        let mut evaluations = evaluations.into_iter().flatten();
        let found = evaluations.find(|it| it["nodeName"] == node);
        Ok(found.is_some_and(|it| it["conditionResults"][0]["currentStatus"] == is))
    })
    .await
}

#[tokio::test]
async fn a_node_is_open_with_as_many_as_the_rule_asks_for() -> Result<()> {
    let client = client().await?;
    asks(&client, "minimum", GPUS, &json!({"minimum": 8})).await?;
    let gpus = node("minimum", "minimum").allocatable(GPU, "7");
    gpus.create(&client).await?;
    eventually_gated(&client, "minimum", "minimum").await?;
    eventually_counts_as(&client, "minimum", "minimum", "False").await?;
    // The published condition is the same for every rule.
    eventually("the plain condition is published", SOON, async || {
        let published = sights::node_condition(&client, "minimum", GPUS).await?;
        Ok(published.is_some_and(|it| {
            it.status == "True" && it.reason.as_deref() == Some("ResourceAllocatable")
        }))
    })
    .await?;
    stays_gated(&client, "minimum", "minimum").await?;
    offers(&client, "minimum", "8").await?;
    eventually_open(&client, "minimum", "minimum").await?;
    eventually_counts_as(&client, "minimum", "minimum", "True").await?;
    offers(&client, "minimum", "7").await?;
    eventually_gated(&client, "minimum", "minimum").await
}

#[tokio::test]
async fn a_label_of_the_node_says_how_many_there_have_to_be() -> Result<()> {
    let client = client().await?;
    let by_label = json!({"minimumFromLabel": "nvidia.com/gpu.count"});
    asks(&client, "by-label", GPUS, &by_label).await?;
    let gpus = node("by-label", "by-label").allocatable(GPU, "4");
    gpus.create(&client).await?;
    eventually_gated(&client, "by-label", "by-label").await?;
    eventually_counts_as(&client, "by-label", "by-label", "Unknown").await?;
    for (count, opens) in [("many", false), ("8", false), ("4", true)] {
        let labels = json!({"metadata": {"labels": {"nvidia.com/gpu.count": count}}});
        patch_node(&client, "by-label", &labels).await?;
        if opens {
            eventually_open(&client, "by-label", "by-label").await?;
        } else {
            stays_gated(&client, "by-label", "by-label").await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_condition_counts_only_with_the_reasons_that_the_rule_names() -> Result<()> {
    let client = client().await?;
    let reasons = json!({"reasons": ["Done", "Skipped"]});
    asks(&client, "reasons", READY, &reasons).await?;
    node("reasons", "reasons").create(&client).await?;
    eventually_gated(&client, "reasons", "reasons").await?;
    let report = async |reason: &str| {
        let condition = json!({"type": READY, "status": "True", "reason": reason});
        let patch = json!({"status": {"conditions": [condition]}});
        patch_node_status(&client, "reasons", &patch).await
    };
    report("Starting").await?;
    eventually_counts_as(&client, "reasons", "reasons", "Unknown").await?;
    stays_gated(&client, "reasons", "reasons").await?;
    // Only the reason changes.
    report("Done").await?;
    eventually_open(&client, "reasons", "reasons").await?;
    report("Skipped").await?;
    stays_open(&client, "reasons", "reasons").await?;
    report("Starting").await?;
    eventually_gated(&client, "reasons", "reasons").await
}
