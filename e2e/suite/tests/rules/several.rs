//! Two rules on one taint: the earlier one governs.

use anyhow::{Context, Result};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::eventually;
use nodegate_testbed::fixtures::{self, RuleBuilder};
use nodegate_testbed::sights::rule_status;
use serde_json::Value;

use super::rule::{self, continuous};
use super::{READY, SOON, TEST, client, eventually_gated, eventually_open, key, node, stays_gated};

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
