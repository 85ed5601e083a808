//! Removes the installation, in the documented order and in a wrong one. `typed` cleans up by hand what is stuck for good.

use anyhow::{Context, Result};
use nodegate_suite::gates::eventually_gated;
use nodegate_testbed::fixtures::{node, rule, rules};
use nodegate_testbed::install::{NAMESPACE, config};
use nodegate_testbed::sights::has_taint;
use nodegate_testbed::{Cluster, Controller, Options, deployment, eventually};

use crate::{CONDITION, CRD, SOON, TAINT};

/// A cluster with everything installed and running, and a node that a rule holds.
async fn installed() -> Result<(Cluster, Controller)> {
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    apply(&cluster).await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    node("held").create(&client).await?;
    rule("network", TAINT)
        .waits_for(CONDITION)
        .create(&client)
        .await?;
    eventually_gated(&client, "held", TAINT).await?;
    Ok((cluster, controller))
}

async fn apply(cluster: &Cluster) -> Result<()> {
    let default = config("default");
    let apply = ["apply", "--server-side", "-k", &default.to_string_lossy()];
    cluster.kubectl(&apply).await?;
    cluster.until_established(CRD).await?;
    Ok(())
}

#[tokio::test]
async fn rules_first_then_the_rest_leaves_nothing() -> Result<()> {
    let (cluster, controller) = installed().await?;
    let client = cluster.client().await?;
    cluster
        .kubectl(&["delete", "nrr", "--all", "--timeout=60s"])
        .await
        .with_context(|| controller.log())?;
    assert!(!has_taint(&client, "held", TAINT).await?);
    controller.stop().await?;
    let default = config("default");
    let default = default.to_string_lossy();
    cluster
        .kubectl(&["delete", "-k", &default, "--timeout=120s"])
        .await?;
    let kinds = "namespace,clusterrole,clusterrolebinding,crd";
    let left = cluster.kubectl(&["get", kinds, "-o", "name"]).await?;
    assert!(!left.contains("nrr-"), "{left}");
    assert!(!left.contains(CRD), "{left}");
    Ok(())
}

#[tokio::test]
async fn what_is_stuck_without_a_controller_ends_once_there_is_one_again() -> Result<()> {
    let (cluster, controller) = installed().await?;
    let client = cluster.client().await?;
    controller.stop().await?;
    // Everything is deleted at once, and the controller is gone first.
    let default = config("default");
    let default = default.to_string_lossy();
    cluster
        .kubectl(&["delete", "-k", &default, "--wait=false"])
        .await?;
    let namespace = format!("namespace/{NAMESPACE}");
    cluster
        .kubectl(&["wait", "--for=delete", &namespace, "--timeout=120s"])
        .await?;
    let stuck = rules(&client).get("network").await?;
    assert!(stuck.metadata.deletion_timestamp.is_some());
    assert!(has_taint(&client, "held", TAINT).await?);

    // Everything returns except the CRD, which is being deleted.
    for folder in ["rbac", "manager"] {
        let folder = config(folder);
        cluster
            .kubectl(&["apply", "-k", &folder.to_string_lossy()])
            .await?;
    }
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    eventually("the taint is gone, and with it the CRD", SOON, async || {
        let crd = ["get", "crd", CRD, "--ignore-not-found", "-o", "name"];
        Ok(!has_taint(&client, "held", TAINT).await?
            && cluster.kubectl(&crd).await?.trim().is_empty())
    })
    .await
    .with_context(|| controller.log())
}
