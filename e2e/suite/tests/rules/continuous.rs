//! Rules that close a node whenever its conditions are unmet, and how conditions combine.

use anyhow::Result;
use kube::ResourceExt;
use nodegate_testbed::changes::{remove_node_condition, set_node_condition};
use nodegate_testbed::{eventually_eq, sights};
use serde_json::json;

use super::rule::{RuleBuilder, continuous};
use super::{
    READY, SOON, client, eventually_gated, eventually_open, is_gated, key, node, stays_gated,
    stays_open,
};

#[tokio::test]
async fn a_node_closes_and_opens_with_its_condition() -> Result<()> {
    let client = client().await?;
    continuous("flips").create(&client).await?;
    node("flips", "flips").create(&client).await?;
    eventually_gated(&client, "flips", "flips").await?;
    for _ in 0..3 {
        set_node_condition(&client, "flips", READY, "True").await?;
        eventually_open(&client, "flips", "flips").await?;
        set_node_condition(&client, "flips", READY, "Unknown").await?;
        eventually_gated(&client, "flips", "flips").await?;
        set_node_condition(&client, "flips", READY, "True").await?;
        eventually_open(&client, "flips", "flips").await?;
        remove_node_condition(&client, "flips", READY).await?;
        eventually_gated(&client, "flips", "flips").await?;
    }
    let node = sights::node(&client, "flips").await?;
    let completions = node
        .annotations()
        .keys()
        .filter(|key| key.contains("completed"));
    assert_eq!(completions.count(), 0);
    Ok(())
}

/// A rule that requires A to be `True` and B to be `False`.
fn two_conditions(name: &str) -> RuleBuilder {
    continuous(name).with(&json!({"conditions": [
        {"type": "example.com/A", "requiredStatus": "True"},
        {"type": "example.com/B", "requiredStatus": "False"},
    ]}))
}

#[tokio::test]
async fn all_of_wants_every_condition() -> Result<()> {
    let client = client().await?;
    two_conditions("all-of").create(&client).await?;
    node("all-of", "all-of").create(&client).await?;
    eventually_gated(&client, "all-of", "all-of").await?;
    set_node_condition(&client, "all-of", "example.com/A", "True").await?;
    stays_gated(&client, "all-of", "all-of").await?;
    set_node_condition(&client, "all-of", "example.com/B", "False").await?;
    eventually_open(&client, "all-of", "all-of").await?;
    set_node_condition(&client, "all-of", "example.com/A", "False").await?;
    eventually_gated(&client, "all-of", "all-of").await
}

#[tokio::test]
async fn any_of_wants_one_condition() -> Result<()> {
    let client = client().await?;
    let rule = two_conditions("any-of").with(&json!({"conditionPolicy": "anyOf"}));
    rule.create(&client).await?;
    node("any-of", "any-of").create(&client).await?;
    eventually_gated(&client, "any-of", "any-of").await?;
    set_node_condition(&client, "any-of", "example.com/B", "False").await?;
    eventually_open(&client, "any-of", "any-of").await?;
    set_node_condition(&client, "any-of", "example.com/A", "True").await?;
    set_node_condition(&client, "any-of", "example.com/B", "True").await?;
    stays_open(&client, "any-of", "any-of").await?;
    set_node_condition(&client, "any-of", "example.com/A", "Unknown").await?;
    eventually_gated(&client, "any-of", "any-of").await
}

#[tokio::test]
async fn a_missing_condition_has_the_default_status_or_is_unknown() -> Result<()> {
    let client = client().await?;
    // Rule, required status, default status, and whether a node without the condition is open.
    let cases = [
        ("missing-true", "True", None, false),
        ("missing-unknown", "Unknown", None, true),
        ("missing-default-true", "True", Some("True"), true),
        ("missing-default-false", "True", Some("False"), false),
        ("missing-both-false", "False", Some("False"), true),
    ];
    for (name, required, default, _) in cases {
        continuous(name)
            .with(&json!({"conditions": [
                {"type": READY, "requiredStatus": required, "defaultStatus": default},
            ]}))
            .create(&client)
            .await?;
        node(name, name).create(&client).await?;
    }
    for (name, _, _, is_open) in cases {
        eventually_eq(name, SOON, is_open, async || {
            Ok(!is_gated(&client, name, name).await?)
        })
        .await?;
        if is_open {
            stays_open(&client, name, name).await?;
        }
    }
    // The node's condition takes precedence over the default.
    let name = "missing-default-true";
    set_node_condition(&client, name, READY, "False").await?;
    eventually_gated(&client, name, name).await?;
    remove_node_condition(&client, name, READY).await?;
    eventually_open(&client, name, name).await
}

#[tokio::test]
async fn the_taint_is_put_on_as_the_rule_has_it() -> Result<()> {
    let client = client().await?;
    for (name, effect, value) in [
        ("effect-schedule", "NoSchedule", None),
        ("effect-prefer", "PreferNoSchedule", Some("starting")),
        ("effect-execute", "NoExecute", Some("starting")),
    ] {
        continuous(name)
            .with(&json!({"taint": {"effect": effect, "value": value}}))
            .create(&client)
            .await?;
        node(name, name).create(&client).await?;
        eventually_gated(&client, name, name).await?;
        let taints = sights::taints(&client, name).await?;
        let ours: Vec<_> = taints
            .iter()
            .filter(|taint| taint.key == key(name))
            .collect();
        assert_eq!(ours.len(), 1, "{taints:?}");
        assert_eq!(
            (&*ours[0].effect, ours[0].value.as_deref()),
            (effect, value)
        );
        set_node_condition(&client, name, READY, "True").await?;
        eventually_open(&client, name, name).await?;
    }
    Ok(())
}
