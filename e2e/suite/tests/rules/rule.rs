//! The rules of these tests: creates, deletes and reads them.

use anyhow::Result;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::delete_rule;
use nodegate_testbed::fixtures::{self, RuleBuilder, rules};
use nodegate_testbed::sights::{rule_condition, rule_status};
use nodegate_testbed::{eventually, eventually_eq};
use serde_json::Value;

use super::{READY, SOON, TEST, key};

/// The finalizer that keeps a deleted rule until its nodes are clean.
pub(crate) const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";

/// A rule that closes the nodes of the test of this name whenever [`READY`] is not `True`.
pub(crate) fn continuous(name: &str) -> RuleBuilder {
    fixtures::rule(name, &key(name))
        .selects(TEST, name)
        .waits_for(READY)
}

/// The same rule in bootstrap-only mode.
pub(crate) fn bootstrap(name: &str) -> RuleBuilder {
    continuous(name).bootstrap_only()
}

/// Deletes a rule and waits until it is gone.
pub(crate) async fn delete(client: &Client, name: &str) -> Result<()> {
    delete_rule(client, name).await?;
    eventually_gone(client, name).await
}

/// Waits until a deleted rule is gone.
pub(crate) async fn eventually_gone(client: &Client, name: &str) -> Result<()> {
    let rules = rules(client);
    eventually(&format!("rule {name} is gone"), SOON, async || {
        Ok(rules.get_opt(name).await?.is_none())
    })
    .await
}

/// Waits until a rule is in force: it has its finalizer, and its status covers the current spec.
pub(crate) async fn eventually_observed(client: &Client, name: &str) -> Result<DynamicObject> {
    let rules = rules(client);
    eventually(&format!("rule {name} is observed"), SOON, async || {
        let rule = rules.get(name).await?;
        let observed = &rule.data["status"]["observedGeneration"];
        let is_current = observed.as_i64() == rule.metadata.generation;
        let is_dry_run = rule.data["spec"]["dryRun"] == true;
        let is_taken_on = is_dry_run || !rule.finalizers().is_empty();
        Ok((is_current && is_taken_on).then_some(rule))
    })
    .await
}

/// Waits until the status counts this many matched, held and released nodes.
pub(crate) async fn eventually_counts(
    client: &Client,
    name: &str,
    [matched, held, released]: [u64; 3],
) -> Result<()> {
    let what = format!("matched, held and released nodes of {name}");
    let expected = [Some(matched), Some(held), Some(released)];
    eventually_eq(&what, SOON, expected, async || {
        let status = rule_status(client, name).await?;
        Ok(["matchedNodes", "heldNodes", "releasedNodes"].map(|count| status[count].as_u64()))
    })
    .await
}

/// Waits until a condition of a rule has this status; returns the condition.
pub(crate) async fn eventually_says(
    client: &Client,
    name: &str,
    condition: &str,
    is: &str,
) -> Result<Value> {
    let what = format!("{condition} of rule {name} is {is}");
    eventually(&what, SOON, async || {
        let found = rule_condition(client, name, condition).await?;
        Ok((found["status"] == is).then_some(found))
    })
    .await
}

/// The annotation that records a node's completed bootstrap under a rule.
pub(crate) fn completion(rule: &DynamicObject) -> String {
    completion_by(&rule.uid().unwrap_or_default())
}

/// The annotation by which older controllers record a completed bootstrap: with the name in place of the UID.
pub(crate) fn completion_by(id: &str) -> String {
    format!("readiness.k8s.io/bootstrap-completed-{id}")
}

/// The annotation that records how a node started under a rule.
pub(crate) fn startup(rule: &DynamicObject) -> String {
    format!("nodegate.dev/startup-{}", rule.uid().unwrap_or_default())
}

/// The annotation that records that a rule has tainted a node.
pub(crate) fn ownership(rule: &DynamicObject) -> String {
    format!(
        "nodegate.dev/taint-added-by-{}",
        rule.uid().unwrap_or_default()
    )
}
