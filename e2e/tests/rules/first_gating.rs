//! A rule that would gate more nodes in use than its limit, when it comes into force.

use std::time::Duration;

use anyhow::Result;
use nodegate_tests::SOON;
use nodegate_tests::gates::stays_released;
use serde_json::json;
use testkit::nodegate::changes::patch_rule;
use testkit::nodegate::{eventually, state};

use super::{client, continuous, eventually_gated, key, node};

#[tokio::test]
async fn a_rule_that_would_gate_too_many_nodes_in_use_gates_none_until_somebody_allows_it()
-> Result<()> {
    const NAME: &str = "first-blow";
    let client = client().await?;
    let names: Vec<String> = (0..5).map(|number| format!("{NAME}-{number}")).collect();
    for name in &names {
        node(NAME, name).create(&client).await?;
    }
    // Creation times are whole seconds, and the nodes have to be older than the rule.
    tokio::time::sleep(Duration::from_secs(2)).await;
    continuous(NAME)
        .nodegate("disruption", json!({"maxFirstGated": "10%"}))
        .create(&client)
        .await?;
    let why = "would gate 5 of 5 nodes in use at once (5 have never reported example.com/Ready); at most 10% are allowed";
    eventually("the rule is held back", SOON, async || {
        let status = state::rule_status(&client, NAME).await?;
        let conditions = status["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        let found = conditions.find(|it| it["type"] == "HeldBack");
        let found = found.filter(|it| it["reason"] == "WouldGateTooMany");
        Ok(found.is_some_and(|it| it["message"].as_str().is_some_and(|it| it.starts_with(why))))
    })
    .await?;
    node(NAME, "first-blow-joins").create(&client).await?;
    eventually_gated(&client, "first-blow-joins", NAME).await?;
    for name in &names {
        stays_released(&client, name, &key(NAME)).await?;
    }
    let yes = json!({"spec": {"nodegate": {"disruption": {"maxFirstGated": "100%"}}}});
    patch_rule(&client, NAME, &yes).await?;
    for name in &names {
        eventually_gated(&client, name, NAME).await?;
    }
    Ok(())
}
