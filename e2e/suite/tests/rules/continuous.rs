//! Rules that close a node whenever its conditions are unmet, and how conditions combine.

use anyhow::Result;
use kube::ResourceExt;
use nodegate_testbed::changes::{remove_node_condition, set_node_condition};
use nodegate_testbed::sights;
use serde_json::json;

use super::rule::continuous;
use super::{READY, client, eventually_gated, eventually_open, key, node};

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

#[tokio::test]
async fn the_taint_is_put_on_as_the_rule_has_it() -> Result<()> {
    let client = client().await?;
    for (name, effect, value) in [
        ("effect-schedule", "NoSchedule", None),
        ("effect-prefer", "PreferNoSchedule", Some("starting")),
        ("effect-execute", "NoExecute", Some("starting")),
    ] {
        let mut taint = json!({"key": key(name), "effect": effect});
        if let Some(value) = value {
            taint["value"] = json!(value);
        }
        continuous(name)
            .spec("taint", taint)
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
