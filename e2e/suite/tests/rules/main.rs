//! What rules do to nodes, on a real API server, with the controller under its own service account.
//!
//! ```text
//! rule          makes, changes and reads rules
//! history       every state a node has been in
//! requests      what the controller has asked of the API server
//!
//! bootstrap     gated once
//! continuous    gated whenever conditions are unmet; how conditions are combined
//! selecting     which nodes a rule is about, and nodes that change, go and come back
//! dry_run       counted, not done
//! events        what is said about a node, and how often
//! neighbours    taints and annotations of others; rules that only remove
//! several       more than one rule on a node, or on one taint
//! deletion      what a deleted rule leaves behind
//! status        what a rule says about its nodes
//! away          what happens while no controller runs, or one starts
//! lax           a CRD that checks less and holds less
//! frozen        nodes that cannot be written
//! denied        nodes that somebody's webhook denies to write
//! forged        annotations that are not Nodegate's
//! faults        faults that users of the Node Readiness Controller have reported
//! ```
//!
//! The tests share one cluster. Each keeps to a name of its own: its rule's, its taint's after the prefix, its nodes'
//! to begin with, and the value of the label by which they are selected.

mod away;
mod bootstrap;
mod continuous;
mod deletion;
mod denied;
mod dry_run;
mod events;
mod faults;
mod forged;
mod frozen;
mod history;
mod lax;
mod neighbours;
mod requests;
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

/// The label by which rules select nodes.
const TEST: &str = "test";
/// The condition that rules wait for unless they say something else.
const READY: &str = "example.com/Ready";

async fn cluster() -> Result<&'static Cluster> {
    INSTALLATION.get().await
}

async fn client() -> Result<Client> {
    cluster().await?.client().await
}

/// A node that the rules of a test select.
fn node(test: &str, name: &str) -> NodeBuilder {
    fixtures::node(name).label(TEST, test)
}

/// The key of a rule's taint.
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
