//! Late nodes, on a real API server with Karpenter's own resource definitions, with the controller under its own service
//! account. Which nodes are repaired, and which are not, is tested beside the code, in the simulation, and beside a real
//! Karpenter.
//!
//! Tests of what is not about time record a deadline that has passed or is near.

mod kubelets;
mod remediators;
mod without;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use nodegate_tests::rules::key;
use serde_json::json;
use testkit::nodegate::fixtures::{self, NodeBuilder, NodeClaimBuilder, RuleBuilder, node_claims};
use testkit::nodegate::{Cluster, Options, eventually, state};

/// Longer than a decision takes.
const A_WHILE: Duration = Duration::from_secs(2);
/// The label by which a node names its pool.
const POOL: &str = "karpenter.sh/nodepool";
/// The label that rules select by.
const TEST: &str = "test";
/// The rules' condition.
const READY: &str = "example.com/Ready";

/// A cluster with Karpenter's resources.
async fn own_cluster() -> Result<(Cluster, Client)> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_karpenter().await?;
    let client = cluster.client().await?;
    cluster.idles();
    Ok((cluster, client))
}

/// A test's rule, which takes this action after a minute, whatever other nodes do.
fn rule(test: &str, action: &str) -> RuleBuilder {
    let repair = json!({"readinessTTL": "1m", "action": action, "maxUnhealthy": "100%"});
    fixtures::rule(test, &key(test))
        .bootstrap_only()
        .selects(TEST, test)
        .waits_for(READY)
        .nodegate("repair", repair)
}

/// A Ready node of a test that does not meet the rule's condition.
fn node(test: &str, name: &str) -> NodeBuilder {
    fixtures::node(name)
        .label(TEST, test)
        .condition("Ready", "True")
}

/// The same node, held, whose time is up in some seconds.
fn late(test: &str, name: &str, rule: &DynamicObject) -> NodeBuilder {
    let now = Timestamp::now().as_second();
    let due = Timestamp::from_second(now + 2).map_or_else(|_| String::new(), |it| it.to_string());
    node(test, name)
        .taint(&key(test), "NoSchedule")
        .annotation(&deadline_key(rule), &due)
}

/// The claim of a test's node. A finalizer keeps it visible once deleted.
fn claim(test: &str, node: &str) -> NodeClaimBuilder {
    fixtures::node_claim(node).pool(test).node(node).finalizer()
}

/// The annotation with a node's deadline under this rule.
fn deadline_key(rule: &DynamicObject) -> String {
    let uid = rule.uid().unwrap_or_default();
    format!("nodegate.dev/ready-deadline-{uid}")
}

/// A claim, if it exists and is not being deleted.
async fn living_claim(client: &Client, name: &str) -> Result<Option<DynamicObject>> {
    let claim = node_claims(client).get_opt(name).await?;
    Ok(claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()))
}

async fn eventually_deleted(client: &Client, claim: &str, within: Duration) -> Result<()> {
    let what = format!("NodeClaim {claim} is deleted");
    eventually(&what, within, async || {
        Ok(living_claim(client, claim).await?.is_none())
    })
    .await
}

/// Waits for an event of this reason about a node; returns its note.
async fn eventually_told(
    client: &Client,
    node: &str,
    reason: &str,
    within: Duration,
) -> Result<String> {
    eventually(&format!("{reason} on {node}"), within, async || {
        Ok(notes(client, node, reason).await?.into_iter().next())
    })
    .await
}

async fn notes(client: &Client, node: &str, reason: &str) -> Result<Vec<String>> {
    let events = state::events_on(client, node).await?.into_iter();
    let of_reason = events.filter(|event| event.reason.as_deref() == Some(reason));
    Ok(of_reason.filter_map(|event| event.message).collect())
}
