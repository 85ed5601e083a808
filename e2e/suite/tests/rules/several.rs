//! Two rules on one taint: the earlier one governs.

use std::time::Duration;

use anyhow::{Context, Result};
use nodegate_testbed::changes::{patch_rule, set_node_condition};
use nodegate_testbed::fixtures::{self, RuleBuilder};
use nodegate_testbed::sights::{count_taints, rule_status};
use nodegate_testbed::{Witness, eventually};
use serde_json::{Value, json};

use super::rule::{self, bootstrap, continuous};
use super::{
    READY, SOON, TEST, client, eventually_gated, eventually_open, key, node, stays_gated,
    stays_open,
};

/// A rule on another rule's taint with another condition. Created in the same second, it ranks second by its name.
fn younger(elder: &str) -> RuleBuilder {
    fixtures::rule(&format!("{elder}-younger"), &key(elder))
        .selects(TEST, elder)
        .waits_for("example.com/Other")
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
    let status = rule_status(&client, "elder-younger").await?;
    assert_eq!(status["appliedNodes"], Value::Null);

    set_node_condition(&client, "elder", "example.com/Other", "True").await?;
    stays_gated(&client, "elder", "elder").await?;
    set_node_condition(&client, "elder", READY, "True").await?;
    eventually_open(&client, "elder", "elder").await
}

/// The steps of `docs/change-a-rule.md`.
#[tokio::test]
async fn a_rule_is_replaced_and_no_node_is_closed_or_opened_meanwhile() -> Result<()> {
    let client = client().await?;
    bootstrap("replaced").create(&client).await?;
    rule::eventually_observed(&client, "replaced").await?;
    let open = node("replaced", "replaced-open").condition(READY, "True");
    open.create(&client).await?;
    node("replaced", "replaced-held").create(&client).await?;
    eventually_gated(&client, "replaced-held", "replaced").await?;
    rule::eventually_counts(&client, "replaced", [2, 1, 1]).await?;
    // It has been ready once, and would not be let in by the successor.
    set_node_condition(&client, "replaced-open", READY, "False").await?;
    // Creation times are whole seconds, and both nodes have to be older than the successor.
    tokio::time::sleep(Duration::from_millis(1100)).await;

    let witness = Witness::of_nodes(&client).await?;
    let successor = younger("replaced").waits_for(READY).bootstrap_only();
    successor
        .spec("existingNodes", json!("Leave"))
        .dry_run()
        .create(&client)
        .await?;
    rule::eventually_observed(&client, "replaced-younger").await?;
    for (rule, dry_run) in [("replaced", true), ("replaced-younger", false)] {
        patch_rule(&client, rule, &json!({"spec": {"dryRun": dry_run}})).await?;
        rule::eventually_observed(&client, rule).await?;
    }
    rule::delete(&client, "replaced").await?;
    stays_gated(&client, "replaced-held", "replaced").await?;
    stays_open(&client, "replaced-open", "replaced").await?;
    for (name, closed) in [("replaced-open", 0), ("replaced-held", 1)] {
        let states = witness.up_to(&client, name).await?;
        for state in &states[name] {
            assert_eq!(count_taints(state, &key("replaced")), closed, "{name}");
        }
    }

    set_node_condition(&client, "replaced-held", READY, "True").await?;
    stays_gated(&client, "replaced-held", "replaced").await?;
    set_node_condition(&client, "replaced-held", "example.com/Other", "True").await?;
    eventually_open(&client, "replaced-held", "replaced").await
}
