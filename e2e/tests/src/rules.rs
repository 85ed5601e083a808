//! Rules: their taint keys and their brake, and waits until they are in force, say something, or are gone.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::Value;
use testkit::nodegate::changes::delete_rule;
use testkit::nodegate::fixtures::{rule, rules};
use testkit::nodegate::install::NAMESPACE;
use testkit::nodegate::state::{rule_condition, taints_of};
use testkit::nodegate::{Cluster, eventually};

use crate::SOON;

/// The controller's Lease.
pub const LEASE: &str = "ba65f13e.readiness.node.x-k8s.io";

/// The taint key of a rule.
pub fn key(rule: &str) -> String {
    format!("readiness.k8s.io/{rule}")
}

/// Every taint of a node, as `key=value:effect`, in order.
pub fn taint_texts(node: &Node) -> Vec<String> {
    let text = |it: &Taint| {
        let value = it.value.as_deref().unwrap_or_default();
        format!("{}={value}:{}", it.key, it.effect)
    };
    let mut texts: Vec<String> = taints_of(node).map(text).collect();
    texts.sort();
    texts
}

/// The fields of a status with times.
pub const TIMES: [&str; 2] = ["lastEvaluationTime", "lastTransitionTime"];

/// A value without fields of these names, wherever they are.
pub fn without(value: &Value, names: &[&str]) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter(|(key, _)| !names.contains(&key.as_str()));
            let kept = kept.map(|(key, value)| (key.clone(), without(value, names)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(|item| without(item, names)).collect(),
        other => other.clone(),
    }
}

/// Annotates the Lease, by which all rules can be suspended.
pub async fn annotate_lease(cluster: &Cluster, annotation: &str) -> Result<()> {
    let annotate = format!("annotate -n {NAMESPACE} --overwrite lease/{LEASE} {annotation}");
    cluster.types(&annotate).await.map(drop)
}

/// Creates a continuous rule with this taint key, which waits for this condition.
pub async fn create_rule(client: &Client, name: &str, key: &str, condition: &str) -> Result<()> {
    let rule = rule(name, key).waits_for(condition);
    rule.create(client).await.map(drop)
}

/// Deletes a rule and waits until it is gone.
pub async fn delete(client: &Client, name: &str) -> Result<()> {
    delete_rule(client, name).await?;
    eventually_gone(client, name).await
}

/// Waits until a deleted rule is gone.
pub async fn eventually_gone(client: &Client, name: &str) -> Result<()> {
    eventually(&format!("rule {name} is gone"), SOON, async || {
        Ok(rules(client).get_opt(name).await?.is_none())
    })
    .await
}

/// Waits until a rule is in force: it has its finalizer, unless it is a dry run, and its status covers the current spec.
pub async fn eventually_observed(client: &Client, name: &str) -> Result<DynamicObject> {
    eventually(&format!("rule {name} is observed"), SOON, async || {
        let rule = rules(client).get(name).await?;
        let observed = &rule.data["status"]["observedGeneration"];
        let is_current = observed.as_i64() == rule.metadata.generation;
        let is_dry_run = rule.data["spec"]["dryRun"] == true;
        let is_taken_on = is_dry_run || !rule.finalizers().is_empty();
        Ok((is_current && is_taken_on).then_some(rule))
    })
    .await
}

/// Waits until a condition of a rule has this status; returns the condition.
pub async fn eventually_says(
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
