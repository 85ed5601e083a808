//! What rules do to nodes, on a real API server, with the controller under its own service account.
//!
//! The tests share one cluster. Each uses its own name for its rule, its taint key, its nodes' prefix and its node label.

mod after;
mod away;
mod bootstrap;
mod continuous;
mod deletion;
mod denied;
mod dry_run;
mod events;
mod frozen;
mod requirements;
mod rule;
mod selecting;
mod several;
mod status;

use anyhow::Result;
use kube::{Client, ResourceExt};
use nodegate_suite::{A_WHILE, SOON, gates};
use nodegate_testbed::fixtures::{self, NodeBuilder};
use nodegate_testbed::{Cluster, Options, SharedInstallation, never, sights};

static INSTALLATION: SharedInstallation =
    SharedInstallation::new(Options::api_only().audited(), &[]);

/// The label that rules select by.
const TEST: &str = "test";
/// The default condition of rules.
const READY: &str = "example.com/Ready";

async fn cluster() -> Result<&'static Cluster> {
    INSTALLATION.get().await
}

async fn client() -> Result<Client> {
    cluster().await?.client().await
}

fn node(test: &str, name: &str) -> NodeBuilder {
    fixtures::node(name).label(TEST, test)
}

/// The taint key of a rule.
fn key(rule: &str) -> String {
    format!("readiness.k8s.io/{rule}")
}

async fn is_gated(client: &Client, node: &str, rule: &str) -> Result<bool> {
    sights::has_taint(client, node, &key(rule)).await
}

async fn eventually_gated(client: &Client, node: &str, rule: &str) -> Result<()> {
    gates::eventually_gated(client, node, &key(rule)).await
}

async fn eventually_open(client: &Client, node: &str, rule: &str) -> Result<()> {
    gates::eventually_open(client, node, &key(rule)).await
}

async fn stays_open(client: &Client, node: &str, rule: &str) -> Result<()> {
    let what = format!("{node} is gated by {rule}");
    never(&what, A_WHILE, async || is_gated(client, node, rule).await).await
}

async fn stays_gated(client: &Client, node: &str, rule: &str) -> Result<()> {
    let what = format!("{node} is open under {rule}");
    never(&what, A_WHILE, async || {
        Ok(!is_gated(client, node, rule).await?)
    })
    .await
}

async fn annotation(client: &Client, node: &str, key: &str) -> Result<Option<String>> {
    let node = sights::node(client, node).await?;
    Ok(node.annotations().get(key).cloned())
}
