//! Creates, changes and reads rules.

use anyhow::{Context, Result};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use nodegate_testbed::rule::resource;
pub(crate) use nodegate_testbed::rule::rules;
use nodegate_testbed::{eventually, eventually_eq};
use serde_json::{Value, json};

use super::{READY, SOON, TEST, key};

/// The finalizer that keeps a deleted rule until its nodes are clean.
pub(crate) const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";

#[derive(Debug, Clone)]
pub(crate) struct RuleBuilder {
    name: String,
    spec: Value,
}

/// A rule that closes the nodes of the test of this name whenever [`READY`] is not `True`.
pub(crate) fn continuous(name: &str) -> RuleBuilder {
    RuleBuilder {
        name: name.to_owned(),
        spec: json!({
            "conditions": [{"type": READY, "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": key(name), "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {TEST: name}},
        }),
    }
}

/// The same rule in bootstrap-only mode.
pub(crate) fn bootstrap(name: &str) -> RuleBuilder {
    continuous(name).with(&json!({"enforcementMode": "bootstrap-only"}))
}

impl RuleBuilder {
    /// Changes the spec with a JSON merge patch.
    pub(crate) fn with(mut self, patch: &Value) -> Self {
        json_patch::merge(&mut self.spec, patch);
        self
    }

    /// Uses another rule's nodes and taint.
    pub(crate) fn beside(self, test: &str) -> Self {
        self.with(&json!({
            "taint": {"key": key(test)},
            "nodeSelector": {"matchLabels": {TEST: test}},
        }))
    }

    pub(crate) async fn create(self, client: &Client) -> Result<DynamicObject> {
        let mut rule = DynamicObject::new(&self.name, &resource());
        rule.data = json!({"spec": self.spec});
        rules(client)
            .create(&PostParams::default(), &rule)
            .await
            .with_context(|| format!("creating rule {}", self.name))
    }
}

/// Changes a rule's spec with a JSON merge patch.
pub(crate) async fn change(client: &Client, name: &str, spec: Value) -> Result<DynamicObject> {
    rules(client)
        .patch(
            name,
            &PatchParams::default(),
            &Patch::Merge(json!({ "spec": spec })),
        )
        .await
        .with_context(|| format!("changing rule {name}"))
}

/// Deletes a rule without waiting for its end.
pub(crate) async fn start_deletion(client: &Client, name: &str) -> Result<()> {
    rules(client)
        .delete(name, &DeleteParams::default())
        .await
        .with_context(|| format!("deleting rule {name}"))?;
    Ok(())
}

/// Deletes a rule and waits until it is gone.
pub(crate) async fn delete(client: &Client, name: &str) -> Result<()> {
    start_deletion(client, name).await?;
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

/// A rule's status, or `null`.
pub(crate) async fn status(client: &Client, name: &str) -> Result<Value> {
    let rule = rules(client).get(name).await?;
    Ok(rule.data["status"].clone())
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
        let status = status(client, name).await?;
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
        let found = condition_of(&status(client, name).await?, condition);
        Ok(found.filter(|found| found["status"] == is))
    })
    .await
}

/// A condition in a rule's status.
pub(crate) fn condition_of(status: &Value, condition: &str) -> Option<Value> {
    let mut conditions = status["conditions"].as_array()?.iter();
    conditions.find(|found| found["type"] == condition).cloned()
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
