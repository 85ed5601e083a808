//! Which nodes a rule selects, and nodes that change, leave and return.

use anyhow::Result;
use nodegate_testbed::changes::patch_node;
use serde_json::json;

use super::rule::{self, continuous, ownership};
use super::{TEST, annotation, client, eventually_gated, eventually_open, node};

#[tokio::test]
async fn a_node_that_leaves_a_rule_loses_its_taint_and_one_that_joins_gets_it() -> Result<()> {
    let client = client().await?;
    let rule = continuous("leaves").create(&client).await?;
    node("leaves", "leaves").create(&client).await?;
    eventually_gated(&client, "leaves", "leaves").await?;
    patch_node(
        &client,
        "leaves",
        &json!({"metadata": {"labels": {TEST: null}}}),
    )
    .await?;
    eventually_open(&client, "leaves", "leaves").await?;
    assert_eq!(
        annotation(&client, "leaves", &ownership(&rule)).await?,
        None
    );
    rule::eventually_counts(&client, "leaves", [0, 0, 0]).await?;
    patch_node(
        &client,
        "leaves",
        &json!({"metadata": {"labels": {TEST: "leaves"}}}),
    )
    .await?;
    eventually_gated(&client, "leaves", "leaves").await
}
