//! Two rules on one taint: the earlier one governs.

use anyhow::{Context, Result};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::eventually;
use serde_json::{Value, json};

use super::history::{History, has_taint_of};
use super::rule::{self, RuleBuilder, continuous, ownership};
use super::{
    READY, SOON, annotation, client, eventually_gated, eventually_open, node, stays_gated,
};

/// A rule on another rule's taint with another condition. Created in the same second, it ranks second by its name.
fn younger(elder: &str) -> RuleBuilder {
    continuous(&format!("{elder}-younger"))
        .beside(elder)
        .with(&json!({"conditions": [{"type": "example.com/Other", "requiredStatus": "True"}]}))
}

#[tokio::test]
async fn of_two_rules_on_one_taint_the_older_governs_and_the_other_says_so() -> Result<()> {
    let client = client().await?;
    continuous("elder").create(&client).await?;
    younger("elder").create(&client).await?;
    node("elder", "elder").create(&client).await?;
    eventually_gated(&client, "elder", "elder").await?;
    let conflicted = eventually(
        "the younger one says that a node is not its",
        SOON,
        async || {
            let said =
                rule::eventually_says(&client, "elder-younger", "Conflicted", "True").await?;
            Ok((said["reason"] == "TaintGovernedByAnotherRule").then_some(said))
        },
    )
    .await?;
    let message = conflicted["message"].as_str().context("a message")?;
    assert!(message.contains("'elder'"), "{message}");
    rule::eventually_says(&client, "elder", "Conflicted", "False").await?;
    let status = rule::status(&client, "elder-younger").await?;
    assert_eq!(status["appliedNodes"], Value::Null);

    set_node_condition(&client, "elder", "example.com/Other", "True").await?;
    stays_gated(&client, "elder", "elder").await?;
    set_node_condition(&client, "elder", READY, "True").await?;
    eventually_open(&client, "elder", "elder").await
}

#[tokio::test]
async fn rules_with_one_key_and_different_effects_do_not_conflict() -> Result<()> {
    let client = client().await?;
    continuous("effects").create(&client).await?;
    let other = younger("effects").with(&json!({"taint": {"effect": "PreferNoSchedule"}}));
    other.create(&client).await?;
    node("effects", "effects").create(&client).await?;
    for rule in ["effects", "effects-younger"] {
        rule::eventually_counts(&client, rule, [1, 1, 0]).await?;
        rule::eventually_says(&client, rule, "Conflicted", "False").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_deleted_rule_hands_over_to_the_next_without_a_gap() -> Result<()> {
    let client = client().await?;
    let elder = continuous("heir").create(&client).await?;
    let heir = younger("heir").create(&client).await?;
    let created = node("heir", "heir").create(&client).await?;
    eventually_gated(&client, "heir", "heir").await?;
    rule::eventually_says(&client, "heir-younger", "Conflicted", "True").await?;
    let history = History::since(&client, created).await?;
    rule::delete(&client, "heir").await?;
    rule::eventually_says(&client, "heir-younger", "Conflicted", "False").await?;
    assert_eq!(annotation(&client, "heir", &ownership(&elder)).await?, None);
    eventually("the heir owns the taint", SOON, async || {
        annotation(&client, "heir", &ownership(&heir)).await
    })
    .await?;
    // The deleted rule's condition no longer counts.
    set_node_condition(&client, "heir", READY, "True").await?;
    stays_gated(&client, "heir", "heir").await?;

    let states = history.states().await?;
    let from = states.iter().position(|node| has_taint_of(node, "heir"));
    let from = from.context("the node was gated")?;
    assert!(states[from..].iter().all(|node| has_taint_of(node, "heir")));
    set_node_condition(&client, "heir", "example.com/Other", "True").await?;
    eventually_open(&client, "heir", "heir").await
}

#[tokio::test]
async fn a_rule_that_becomes_a_dry_run_lets_the_next_one_govern() -> Result<()> {
    let client = client().await?;
    continuous("yields").create(&client).await?;
    younger("yields").create(&client).await?;
    node("yields", "yields")
        .condition("example.com/Other", "True")
        .create(&client)
        .await?;
    eventually_gated(&client, "yields", "yields").await?;
    rule::change(&client, "yields", json!({"dryRun": true})).await?;
    eventually_open(&client, "yields", "yields").await?;
    rule::change(&client, "yields", json!({"dryRun": false})).await?;
    eventually_gated(&client, "yields", "yields").await
}

#[tokio::test]
async fn a_rule_that_will_conflict_says_so_before_there_is_a_node() -> Result<()> {
    let client = client().await?;
    continuous("overlap").create(&client).await?;
    younger("overlap").create(&client).await?;
    let conflicted =
        rule::eventually_says(&client, "overlap-younger", "Conflicted", "True").await?;
    assert_eq!(conflicted["reason"], "SelectorsOverlap");
    let message = conflicted["message"].as_str().context("a message")?;
    assert!(message.contains("'overlap'"), "{message}");
    rule::eventually_says(&client, "overlap", "Conflicted", "False").await?;
    rule::delete(&client, "overlap").await?;
    rule::eventually_says(&client, "overlap-younger", "Conflicted", "False").await?;
    Ok(())
}
