//! Late nodes, on a real API server with Karpenter's own resource definitions, with the controller under its own service
//! account.
//!
//! Tests that wait for a whole readiness TTL, a minute at least, run in [`what_takes_a_readiness_ttl`]; the others record a
//! deadline that has passed or is near. All share one cluster. Each uses its own name for its rule, pool, taint key and node
//! label.

mod deadlines;
mod deletion;
mod limit;
mod release;
mod remediation;
mod without;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use nodegate_suite::{SOON, gates};
use nodegate_testbed::fixtures::{self, NodeBuilder, NodeClaimBuilder, RuleBuilder, node_claims};
use nodegate_testbed::{Cluster, Controller, Options, eventually, sights};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Longer than a decision takes.
const A_WHILE: Duration = Duration::from_secs(2);
/// The shortest possible readiness TTL.
const TTL: Duration = Duration::from_secs(60);
/// The label that rules select by.
const TEST: &str = "test";
/// The rules' condition.
const READY: &str = "example.com/Ready";
const TERMINATION: &str = "karpenter.sh/nodeclaim-termination-timestamp";

/// These spend their time waiting, so they run concurrently.
#[tokio::test]
async fn what_takes_a_readiness_ttl() -> Result<()> {
    tokio::try_join!(
        deletion::a_node_that_is_not_ready_in_time_has_its_claim_deleted(),
        release::a_node_that_is_not_ready_in_time_is_opened(),
    )?;
    Ok(())
}

/// The shared cluster with Karpenter's resources, and a controller that watches them.
async fn client() -> Result<Client> {
    static INSTALLATION: OnceCell<(Cluster, Controller)> = OnceCell::const_new();
    let (cluster, _) = INSTALLATION
        .get_or_try_init(async || {
            let (cluster, _) = own_cluster().await?;
            let controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
            anyhow::Ok((cluster, controller))
        })
        .await?;
    cluster.client().await
}

/// A separate cluster with Karpenter's resources.
async fn own_cluster() -> Result<(Cluster, Client)> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_karpenter().await?;
    let client = cluster.client().await?;
    Ok((cluster, client))
}

/// The taint key of a test's rule.
fn key(test: &str) -> String {
    format!("readiness.k8s.io/{test}")
}

/// A test's rule, which takes this action after a minute, whatever other nodes do.
fn rule(test: &str, action: &str) -> RuleBuilder {
    let repair = json!({"readinessTTL": "1m", "action": action, "maxUnhealthy": "100%"});
    fixtures::rule(test, &key(test))
        .bootstrap_only()
        .selects(TEST, test)
        .waits_for(READY)
        .spec("repair", repair)
}

/// A Ready node of a test and its pool that does not meet the rule's condition.
fn node(test: &str, name: &str) -> NodeBuilder {
    fixtures::node(name)
        .label(TEST, test)
        .label("karpenter.sh/nodepool", test)
        .condition("Ready", "True")
}

/// The claim of a test's node. A finalizer keeps it visible once deleted.
fn claim(test: &str, node: &str) -> NodeClaimBuilder {
    fixtures::node_claim(node).pool(test).node(node).finalizer()
}

/// A time this many seconds from now, in whole seconds.
fn in_seconds(seconds: i64) -> String {
    let now = Timestamp::now().as_second() + seconds;
    Timestamp::from_second(now).map_or_else(|_| String::new(), |time| time.to_string())
}

/// The annotation with a node's deadline under this rule.
fn deadline_key(rule: &DynamicObject) -> String {
    let uid = rule.uid().unwrap_or_default();
    format!("nodegate.dev/ready-deadline-{uid}")
}

/// The recorded deadline of a node, if any.
async fn deadline(client: &Client, rule: &DynamicObject, node: &str) -> Result<Option<String>> {
    let node = sights::node(client, node).await?;
    Ok(node.annotations().get(&deadline_key(rule)).cloned())
}

/// Waits for a node's recorded deadline.
async fn eventually_due(client: &Client, rule: &DynamicObject, node: &str) -> Result<Timestamp> {
    let what = format!("node {node} has a deadline");
    let deadline = eventually(&what, SOON, async || deadline(client, rule, node).await).await?;
    deadline
        .parse()
        .with_context(|| format!("the deadline {deadline:?}"))
}

fn created(node: &Node) -> Result<Timestamp> {
    let time = node.creation_timestamp().context("a node has an age")?;
    Ok(time.0)
}

/// A claim, if it exists and is not being deleted.
async fn living_claim(client: &Client, name: &str) -> Result<Option<DynamicObject>> {
    let claim = node_claims(client).get_opt(name).await?;
    Ok(claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()))
}

async fn eventually_deleted(client: &Client, claim: &str) -> Result<()> {
    eventually_deleted_within(client, claim, SOON).await
}

async fn eventually_deleted_within(client: &Client, claim: &str, within: Duration) -> Result<()> {
    let what = format!("NodeClaim {claim} is deleted");
    eventually(&what, within, async || {
        Ok(living_claim(client, claim).await?.is_none())
    })
    .await
}

/// Waits for an event of this reason about a node; returns its note.
async fn eventually_told(client: &Client, node: &str, reason: &str) -> Result<String> {
    eventually_told_within(client, node, reason, SOON).await
}

async fn eventually_told_within(
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
    let events = sights::events_on(client, node).await?;
    Ok(events
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some(reason))
        .filter_map(|event| event.message)
        .collect())
}

/// Waits until a condition of a rule's status is `True`; returns it.
async fn eventually_says(client: &Client, rule: &str, condition: &str) -> Result<Value> {
    eventually(&format!("{condition} of {rule}"), SOON, async || {
        let condition = sights::rule_condition(client, rule, condition).await?;
        Ok((condition["status"] == "True").then_some(condition))
    })
    .await
}

async fn eventually_gated(client: &Client, test: &str, node: &str) -> Result<()> {
    gates::eventually_gated(client, node, &key(test)).await
}

async fn eventually_open(client: &Client, test: &str, node: &str) -> Result<()> {
    // A recorded deadline opens no node before its time.
    gates::opened_within(client, node, &key(test), TTL + SOON).await
}

/// Checks that these claims have not been deleted.
async fn are_left_alone(client: &Client, claims: &[&str]) -> Result<()> {
    for claim in claims {
        ensure!(
            living_claim(client, claim).await?.is_some(),
            "NodeClaim {claim} has been deleted"
        );
    }
    Ok(())
}
