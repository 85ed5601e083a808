//! Clusters without Karpenter, and controllers that are not told of it or may not read it: everything else works, and the rule
//! reports what it cannot do.

use anyhow::{Result, ensure};
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::rules::eventually_says;
use nodegate_tests::{SOON, has_words};
use testkit::nodegate::definitions::KARPENTER;
use testkit::nodegate::state::rule_condition;
use testkit::nodegate::{Cluster, Controller, Options, eventually};

use super::{
    A_WHILE, POOL, claim, eventually_deleted, eventually_told, key, late, living_claim,
    own_cluster, rule,
};

#[tokio::test]
async fn a_cluster_without_karpenter_works_and_one_that_gets_it_deletes_claims() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_karpenter_rbac().await?;
    let client = cluster.client().await?;
    let mut controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    cluster.idles();
    for (name, action) in [("releasing", "Release"), ("deleting", "DeleteNodeClaim")] {
        let rule = rule(name, action).create(&client).await?;
        late(name, name, &rule)
            .label(POOL, name)
            .create(&client)
            .await?;
    }
    eventually_released(&client, "releasing", &key("releasing")).await?;
    let condition = eventually_says(&client, "deleting", "RepairUnavailable", "True").await?;
    assert_eq!(
        condition["message"],
        "no node can be repaired: Karpenter's NodeClaim resource is not installed in this cluster"
    );
    let note = eventually_told(&client, "deleting", "NodeRepairImpossible", SOON).await?;
    has_words(&note, "is not installed in this cluster")?;
    let words = "the CustomResourceDefinition nodeclaims.karpenter.sh is not installed";
    has_words(&controller.log(), words)?;
    ensure!(controller.is_ready().await, "not ready");

    cluster.install_definitions(&KARPENTER).await?;
    claim("deleting", "deleting").create(&client).await?;
    eventually_deleted(&client, "deleting", SOON * 2).await?;
    ensure!(controller.exited()?.is_none(), "it had to be restarted");
    eventually("the rule has no complaint any more", SOON, async || {
        let condition = rule_condition(&client, "deleting", "RepairUnavailable").await?;
        Ok(condition.is_null())
    })
    .await
}

#[tokio::test]
async fn without_the_permissions_it_says_what_to_apply_and_gates_all_the_same() -> Result<()> {
    let (cluster, client) = own_cluster().await?;
    let delete = "delete clusterrolebinding nrr-karpenter-rolebinding";
    cluster.types(delete).await?;
    // One that is not told of Karpenter asks for nothing of Karpenter's.
    let untold = Controller::start(&cluster, &[]).await?;
    let rule = rule("forbidden", "DeleteNodeClaim").create(&client).await?;
    claim("forbidden", "forbidden").create(&client).await?;
    late("forbidden", "forbidden", &rule)
        .create(&client)
        .await?;
    let note = eventually_told(&client, "forbidden", "NodeRepairImpossible", SOON).await?;
    let words = "start the controller with --enable-karpenter";
    ensure!(note.ends_with(words), "{note}");
    eventually_says(&client, "forbidden", "RepairUnavailable", "True").await?;
    let log = untold.log();
    has_words(&log, "--enable-karpenter")?;
    ensure!(!log.contains("config/karpenter"), "{log}");
    untold.stop().await?;

    let controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let remedy = "kubectl apply -k config/karpenter";
    controller.says(remedy, SOON).await?;
    eventually_gated(&client, "forbidden", &key("forbidden")).await?;
    tokio::time::sleep(A_WHILE).await;
    ensure!(
        living_claim(&client, "forbidden").await?.is_some(),
        "NodeClaim forbidden has been deleted"
    );
    cluster.install_karpenter_rbac().await?;
    eventually_deleted(&client, "forbidden", SOON).await
}
