//! Reads the state of a cluster and of its rules.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::kubernetes::eventually;
use crate::nodegate::rule::rules;

pub use crate::kubernetes::state::*;

/// Waits for the running pod of a `DaemonSet` on a node, and returns its name. kwok overwrites what is changed of a pod before it
/// runs.
pub async fn running_pod(client: &Client, node: &str, daemon_set: &str) -> Result<String> {
    let what = format!("DaemonSet {daemon_set} has a running pod on {node}");
    eventually(&what, Duration::from_secs(60), async || {
        let pods = pods_on(client, node).await?;
        let is_it = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
            let mut owners = pod.owner_references().iter();
            phase == Some("Running") && owners.any(|owner| owner.name == daemon_set)
        };
        Ok(pods.iter().find(is_it).map(ResourceExt::name_any))
    })
    .await
}

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
