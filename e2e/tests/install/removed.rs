//! Removes the installation: in the documented order, in a wrong one, and to install it again. `documentation` cleans up by hand what is
//! stuck for good.

use anyhow::{Context, Result};
use kube::api::ListParams;
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::rules::create_rule;
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::{node, rule, rules};
use testkit::nodegate::install::{NAMESPACE, config};
use testkit::nodegate::state::has_taint;
use testkit::nodegate::{Cluster, Controller, Options, deployment, eventually};

use crate::{CONDITION, CRD, SOON, TAINT};

/// A cluster with everything installed and running, and a node that a rule holds.
async fn installed() -> Result<(Cluster, Controller)> {
    let cluster = Cluster::start(Options::full()).await?;
    let client = cluster.client().await?;
    cluster.install_crd().await?;
    cluster.apply_path(&config("default")).await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    node("held").create(&client).await?;
    create_rule(&client, "network", TAINT, CONDITION).await?;
    eventually_gated(&client, "held", TAINT).await?;
    Ok((cluster, controller))
}

#[tokio::test]
async fn a_reinstallation_with_rules_in_place_loses_none_and_a_removal_leaves_nothing() -> Result<()>
{
    let (cluster, controller) = installed().await?;
    let client = cluster.client().await?;
    let other = rule("other", "readiness.k8s.io/other");
    other.waits_for("example.com/Other").create(&client).await?;
    let there = async || {
        let rules = rules(&client).list(&ListParams::default()).await?;
        let known = rules.into_iter().map(|rule| rule.metadata);
        anyhow::Ok(
            known
                .map(|it| (it.name, it.uid, it.deletion_timestamp))
                .collect::<Vec<_>>(),
        )
    };
    let before = there().await?;
    controller.stop().await?;
    // What is in the namespace may be gone with it before it is deleted itself.
    let delete = ["delete", "--ignore-not-found", "--timeout=120s"];
    cluster.kubectl_on(&delete, &config("default")).await?;
    assert_eq!(there().await?, before);
    assert!(has_taint(&client, "held", TAINT).await?);

    cluster.kubectl_on(&["apply"], &config("default")).await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    let controller = controller.once_ready().await?;
    assert_eq!(there().await?, before);
    set_node_condition(&client, "held", CONDITION, "True").await?;
    let released = eventually_released(&client, "held", TAINT).await;
    released.with_context(|| controller.log())?;

    // In the documented order: rules, then the rest.
    set_node_condition(&client, "held", CONDITION, "False").await?;
    eventually_gated(&client, "held", TAINT).await?;
    let deleted = cluster.types("delete nrr --all --timeout=60s").await;
    deleted.with_context(|| controller.log())?;
    assert!(!has_taint(&client, "held", TAINT).await?);
    controller.stop().await?;
    for folder in ["default", "crd"] {
        cluster.kubectl_on(&delete, &config(folder)).await?;
    }
    let kinds = "namespace,clusterrole,clusterrolebinding,crd";
    let left = cluster.kubectl(&["get", kinds, "-o", "name"]).await?;
    assert!(!left.contains("nrr-") && !left.contains(CRD), "{left}");
    Ok(())
}

#[tokio::test]
async fn a_rule_stuck_without_a_controller_goes_once_one_runs_again() -> Result<()> {
    let (cluster, controller) = installed().await?;
    let client = cluster.client().await?;
    controller.stop().await?;
    // Everything is deleted at once, and the controller is gone first.
    for folder in ["crd", "default"] {
        let delete = ["delete", "--wait=false"];
        cluster.kubectl_on(&delete, &config(folder)).await?;
    }
    let gone = format!("wait --for=delete namespace/{NAMESPACE} --timeout=120s");
    cluster.types(&gone).await?;
    let stuck = rules(&client).get("network").await?;
    assert!(stuck.metadata.deletion_timestamp.is_some());
    assert!(has_taint(&client, "held", TAINT).await?);

    // Everything returns except the CRD, which is being deleted.
    cluster.kubectl_on(&["apply"], &config("default")).await?;
    let (controller, _) = deployment::run(&cluster, NAMESPACE).await?;
    eventually("the taint is gone, and with it the CRD", SOON, async || {
        let crd = ["get", "crd", CRD, "--ignore-not-found", "-o", "name"];
        Ok(!has_taint(&client, "held", TAINT).await?
            && cluster.kubectl(&crd).await?.trim().is_empty())
    })
    .await
    .with_context(|| controller.log())
}
