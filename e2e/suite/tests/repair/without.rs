//! Clusters without Karpenter, and controllers that are not told of it: everything else works, and a rule reports what it
//! cannot do.

use anyhow::{Result, ensure};
use nodegate_testbed::definitions::KARPENTER;
use nodegate_testbed::{Cluster, Controller, Options, eventually};
use std::time::Duration;

use super::{
    SOON, claim, deadline_key, eventually_deleted_within, eventually_gated, eventually_open,
    eventually_says, eventually_told, in_seconds, key, node, own_cluster, rule,
};

#[tokio::test]
async fn a_cluster_without_karpenter_works_and_one_that_gets_it_deletes_claims() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_karpenter_rbac().await?;
    let client = cluster.client().await?;
    let mut controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let releasing = rule("releasing", "Release").create(&client).await?;
    let deleting = rule("deleting", "DeleteNodeClaim").create(&client).await?;
    node("releasing", "releasing")
        .taint(&key("releasing"), "NoSchedule")
        .annotation(&deadline_key(&releasing), &in_seconds(1))
        .create(&client)
        .await?;
    node("deleting", "deleting")
        .taint(&key("deleting"), "NoSchedule")
        .annotation(&deadline_key(&deleting), &in_seconds(1))
        .create(&client)
        .await?;
    eventually_open(&client, "releasing", "releasing").await?;
    let condition = eventually_says(&client, "deleting", "RepairUnavailable").await?;
    assert_eq!(
        condition["message"],
        "no node can be repaired: Karpenter's NodeClaim resource is not installed in this cluster"
    );
    let note = eventually_told(&client, "deleting", "NodeRepairImpossible").await?;
    ensure!(note.contains("is not installed in this cluster"), "{note}");
    let words = "the CustomResourceDefinition nodeclaims.karpenter.sh is not installed";
    ensure!(controller.log().contains(words), "{}", controller.log());
    ensure!(controller.is_ready().await, "not ready");

    cluster.install_definitions(&KARPENTER).await?;
    claim("deleting", "deleting").create(&client).await?;
    eventually_deleted_within(&client, "deleting", SOON * 2).await?;
    ensure!(controller.exited()?.is_none(), "it had to be restarted");
    eventually("the rule has no complaint any more", SOON, async || {
        let condition =
            nodegate_testbed::sights::rule_condition(&client, "deleting", "RepairUnavailable")
                .await?;
        Ok(condition.is_null())
    })
    .await
}

#[tokio::test]
async fn a_controller_that_was_not_told_of_karpenter_says_what_to_tell_it() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    cluster.install().await?;
    cluster.install_definitions(&KARPENTER).await?;
    let client = cluster.client().await?;
    let controller = Controller::start(&cluster, &[]).await?;
    let rule = rule("untold", "DeleteNodeClaim").create(&client).await?;
    claim("untold", "untold").create(&client).await?;
    node("untold", "untold")
        .taint(&key("untold"), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    let note = eventually_told(&client, "untold", "NodeRepairImpossible").await?;
    ensure!(
        note.ends_with("start the controller with --enable-karpenter"),
        "{note}"
    );
    let condition = eventually_says(&client, "untold", "RepairUnavailable").await?;
    ensure!(
        condition["message"]
            .as_str()
            .is_some_and(|message| message.contains("--enable-karpenter"))
    );
    ensure!(
        controller.log().contains("--enable-karpenter"),
        "{}",
        controller.log()
    );
    super::are_left_alone(&client, &["untold"]).await?;
    ensure!(
        !cluster.audit_log().contains("nodegate/") || !asks_for_claims(&cluster),
        "it asked for NodeClaims"
    );
    Ok(())
}

/// Whether the controller has requested anything of Karpenter's.
fn asks_for_claims(cluster: &Cluster) -> bool {
    cluster
        .audit_log()
        .lines()
        .filter(|line| line.contains("nodegate/"))
        .any(|line| line.contains("karpenter.sh/v1"))
}

#[tokio::test]
async fn without_the_permissions_it_says_what_to_apply_and_gates_all_the_same() -> Result<()> {
    let (cluster, client) = own_cluster().await?;
    cluster
        .kubectl(&["delete", "clusterrolebinding", "nrr-karpenter-rolebinding"])
        .await?;
    let controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let rule = rule("forbidden", "DeleteNodeClaim").create(&client).await?;
    claim("forbidden", "forbidden").create(&client).await?;
    node("forbidden", "forbidden")
        .taint(&key("forbidden"), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    eventually_gated(&client, "forbidden", "forbidden").await?;
    eventually("it says what to apply", SOON, async || {
        Ok(controller
            .log()
            .contains("kubectl apply -k config/karpenter"))
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    super::are_left_alone(&client, &["forbidden"]).await?;
    cluster.install_karpenter_rbac().await?;
    eventually_deleted_within(&client, "forbidden", SOON).await
}
