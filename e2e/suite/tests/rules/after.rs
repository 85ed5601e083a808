//! Rules that come after others.

use anyhow::{Context, Result};
use kube::Client;
use nodegate_testbed::changes::{patch_rule, set_node_condition};
use nodegate_testbed::eventually;
use nodegate_testbed::fixtures::{self, RuleBuilder};
use nodegate_testbed::sights::rule_condition;
use serde_json::{Value, json};

use super::rule::{self, bootstrap, continuous};
use super::{
    READY, TEST, client, eventually_gated, eventually_open, key, node, stays_gated, stays_open,
};

const SECOND: &str = "example.com/Second";

/// A rule for the nodes of a test that comes after these.
fn after(name: &str, test: &str, others: Value) -> RuleBuilder {
    fixtures::rule(name, &key(name))
        .selects(TEST, test)
        .waits_for(SECOND)
        .spec("after", others)
}

/// Waits until a status condition of a rule is gone.
async fn eventually_silent(client: &Client, name: &str, condition: &str) -> Result<()> {
    let what = format!("rule {name} does not say {condition}");
    eventually(&what, super::SOON, async || {
        let found = rule_condition(client, name, condition).await?;
        Ok((found["status"] != "True").then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_node_is_let_go_by_one_rule_after_another() -> Result<()> {
    let client = client().await?;
    let others = json!(["order", "order-nobody"]);
    after("order-second", "order", others.clone())
        .create(&client)
        .await?;
    let said = rule::eventually_says(&client, "order-second", "AfterUnknown", "True").await?;
    let message = said["message"].as_str().context("a message")?;
    assert!(message.contains("'order', 'order-nobody'"), "{message}");
    bootstrap("order").create(&client).await?;
    rule::eventually_observed(&client, "order").await?;
    node("order", "order")
        .condition(SECOND, "True")
        .create(&client)
        .await?;
    eventually_gated(&client, "order", "order").await?;
    eventually_gated(&client, "order", "order-second").await?;
    stays_gated(&client, "order", "order-second").await?;
    set_node_condition(&client, "order", READY, "True").await?;
    eventually_open(&client, "order", "order").await?;
    eventually_open(&client, "order", "order-second").await?;
    patch_rule(
        &client,
        "order-second",
        &json!({"spec": {"after": ["order"]}}),
    )
    .await?;
    eventually_silent(&client, "order-second", "AfterUnknown").await
}

#[tokio::test]
async fn an_open_node_stays_open_while_another_rule_holds_it() -> Result<()> {
    let client = client().await?;
    continuous("turn").create(&client).await?;
    after("turn-second", "turn", json!(["turn"]))
        .create(&client)
        .await?;
    for rule in ["turn", "turn-second"] {
        rule::eventually_observed(&client, rule).await?;
    }
    node("turn", "turn")
        .condition(READY, "True")
        .condition(SECOND, "True")
        .create(&client)
        .await?;
    rule::eventually_counts(&client, "turn-second", [1, 0, 1]).await?;
    set_node_condition(&client, "turn", READY, "False").await?;
    eventually_gated(&client, "turn", "turn").await?;
    set_node_condition(&client, "turn", SECOND, "False").await?;
    stays_open(&client, "turn", "turn-second").await?;
    set_node_condition(&client, "turn", READY, "True").await?;
    eventually_gated(&client, "turn", "turn-second").await
}

#[tokio::test]
async fn rules_in_a_circle_do_nothing_until_it_is_broken() -> Result<()> {
    let client = client().await?;
    after("circle-a", "circle", json!(["circle-b"]))
        .create(&client)
        .await?;
    after("circle-b", "circle", json!(["circle-a"]))
        .create(&client)
        .await?;
    for rule in ["circle-a", "circle-b"] {
        let said = rule::eventually_says(&client, rule, "Accepted", "False").await?;
        assert_eq!(said["reason"], "Circle", "{said}");
    }
    node("circle", "circle").create(&client).await?;
    stays_open(&client, "circle", "circle-a").await?;
    stays_open(&client, "circle", "circle-b").await?;
    patch_rule(&client, "circle-a", &json!({"spec": {"after": null}})).await?;
    for rule in ["circle-a", "circle-b"] {
        rule::eventually_says(&client, rule, "Accepted", "True").await?;
        eventually_gated(&client, "circle", rule).await?;
    }
    rule::delete(&client, "circle-a").await?;
    eventually_open(&client, "circle", "circle-a").await
}
