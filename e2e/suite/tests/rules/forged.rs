//! Annotations that a kubelet may forge on its own Node, and what they cannot achieve.

use anyhow::Result;
use nodegate_testbed::changes::patch_node;
use nodegate_testbed::{never, sights};
use serde_json::{Value, json};

use super::rule::{self, continuous};
use super::{A_WHILE, annotation, client, eventually_gated, key, node};

fn claim(uid: &str, key: &str) -> Value {
    let value = json!({"rule-name": "x", "taint-key": key, "taint-effect": "NoSchedule"});
    let annotation = format!("nodegate.dev/taint-added-by-{uid}");
    json!({"metadata": {"annotations": {annotation: value.to_string()}}})
}

#[tokio::test]
async fn no_taint_goes_for_an_annotation_that_names_it() -> Result<()> {
    let client = client().await?;
    continuous("forged").create(&client).await?;
    let quarantine = "readiness.k8s.io/quarantine";
    node("forged", "forged")
        .taint("dedicated", "NoSchedule")
        .taint(quarantine, "NoSchedule")
        .create(&client)
        .await?;
    eventually_gated(&client, "forged", "forged").await?;
    // A dry run keeps the taint that the rule has added.
    rule::change(&client, "forged", json!({"dryRun": true})).await?;
    rule::eventually_observed(&client, "forged").await?;

    let keys = ["dedicated", quarantine, &key("forged")];
    for (index, key) in keys.into_iter().enumerate() {
        patch_node(&client, "forged", &claim(&format!("x{index}"), key)).await?;
    }
    never("a taint goes", A_WHILE, async || {
        let node = sights::node(&client, "forged").await?;
        let counts = keys.map(|key| sights::count_taints(&node, key));
        Ok(counts != [1, 1, 1])
    })
    .await?;
    let left = annotation(&client, "forged", "nodegate.dev/taint-added-by-x0").await?;
    assert!(left.is_some(), "nor is it taken for Nodegate's own");
    Ok(())
}
