//! Installs Nodegate as an operator does, with kustomize and with Helm: the rendered manifests, the result on a real API
//! server, and what remains after removal.

mod applied;
mod listed;
mod neighbours;
mod permissions;
mod released;
mod removed;
mod rendered;
mod values;

use std::path::PathBuf;

use anyhow::{Context, Result};
use kube::Client;
use nodegate_tests::network::{CONDITION, TAINT, gates_and_releases};
use nodegate_tests::webhook::{CONFIGURATION as WEBHOOK, PATH, call_at};
use nodegate_tests::{SOON, has_words, refused};
use testkit::nodegate::changes::delete_rule;
use testkit::nodegate::fixtures::{node, rule};
use testkit::nodegate::install::CRD;
use testkit::nodegate::{Cluster, Controller, eventually};

const MANAGER: &str = "deployment/nrr-controller-manager";

/// Creates a node with every kind of taint despite which the controller must start.
async fn held_node(client: &Client) -> Result<()> {
    let mut node = node("held").managed_by_kwok();
    #[rustfmt::skip]
    let taints = [
        ("readiness.k8s.io/network", "NoSchedule"),
        ("readiness.k8s.io/storage", "NoExecute"),
        ("readiness.k8s.io/cache", "PreferNoSchedule"),
        ("node.gardener.cloud/critical-components-not-ready", "NoSchedule"),
        ("node.cilium.io/agent-not-ready", "NoExecute"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ];
    for (key, effect) in taints {
        node = node.taint(key, effect);
    }
    node.create(client).await?;
    Ok(())
}

/// Waits until the Deployment's pods are admitted and bound to a node.
async fn until_bound(cluster: &Cluster, namespace: &str, pods: usize) -> Result<()> {
    eventually("the pods are admitted and bound", SOON, async || {
        let path = "jsonpath={range .items[*]}{.spec.nodeName}{\"\\n\"}{end}";
        let arguments = ["get", "pods", "-n", namespace, "-o", path];
        let bound = cluster.kubectl(&arguments).await?;
        Ok(bound.lines().filter(|node| !node.is_empty()).count() == pods)
    })
    .await
    .context(cluster.kubectl(&["get", "events", "-n", namespace]).await?)
}

/// Makes the API server call the webhook at this address.
async fn call_webhook_at(cluster: &Cluster, address: &str) -> Result<()> {
    call_at(cluster, &format!("https://{address}{PATH}")).await
}

/// Waits until the webhook refuses a rule that conflicts with another one, and removes both.
async fn until_conflicts_are_refused(client: &Client, controller: &Controller) -> Result<()> {
    let ready = controller.until_ready(SOON).await;
    ready.with_context(|| controller.log())?;
    let about = |name: &'static str| rule(name, TAINT).waits_for(CONDITION).selects("pool", "a");
    eventually("the first rule is taken", SOON, async || {
        about("first").create(client).await?;
        Ok(true)
    })
    .await?;
    let why = refused(about("second").create(client).await)?;
    has_words(&why, "conflicts with existing rule 'first'")?;
    delete_rule(client, "first").await
}

/// A folder for a test's files.
fn folder(name: &str) -> Result<PathBuf> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("install")
        .join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
