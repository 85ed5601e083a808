//! Reads the state of a cluster: that of the test bed, and the status of rules.

use anyhow::{Context, Result};
use kube::Client;
use serde_json::Value;

pub use kube_testbed::sights::*;

use crate::rule::rules;

/// The status of a rule; `null` where it has none.
pub async fn rule_status(client: &Client, rule: &str) -> Result<Value> {
    let mut rule = rules(client)
        .get(rule)
        .await
        .with_context(|| format!("reading rule {rule}"))?;
    Ok(rule.data["status"].take())
}

/// A condition of a rule's status; `null` where it has none of this type.
pub async fn rule_condition(client: &Client, rule: &str, condition_type: &str) -> Result<Value> {
    let status = rule_status(client, rule).await?;
    let conditions = status["conditions"].as_array();
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == condition_type);
    Ok(condition.cloned().unwrap_or_default())
}
