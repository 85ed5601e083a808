//! Rules that close a node once, while it starts.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use nodegate_testbed::Witness;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::sights::count_taints;
use serde_json::Value;

use super::rule::{bootstrap, completion, ownership, startup};
use super::{READY, client, eventually_gated, eventually_open, key, node};

#[tokio::test]
async fn the_taint_goes_and_the_completion_comes_in_one_write() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("one-write").create(&client).await?;
    let witness = Witness::of_nodes(&client).await?;
    node("one-write", "one-write").create(&client).await?;
    eventually_gated(&client, "one-write", "one-write").await?;
    set_node_condition(&client, "one-write", READY, "False").await?;
    set_node_condition(&client, "one-write", READY, "True").await?;
    eventually_open(&client, "one-write", "one-write").await?;

    let seen = witness.up_to(&client, "one-write").await?;
    let states = &seen["one-write"];
    let is_gated = |node: &Node| count_taints(node, &key("one-write")) > 0;
    let from = states.iter().position(is_gated);
    for node in &states[from.context("it was gated")?..] {
        let is_gated = is_gated(node);
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
