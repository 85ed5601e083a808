//! Claims of late nodes are deleted, so that new nodes replace these.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DeleteParams;
use nodegate_testbed::Controller;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{self, node_claims};

use super::{
    A_WHILE, READY, SOON, TERMINATION, TTL, are_left_alone, claim, client, created, deadline_key,
    eventually_deleted_within, eventually_due, eventually_open, eventually_told, in_seconds, key,
    living_claim, node, notes, own_cluster, rule,
};

pub(super) async fn a_node_that_is_not_ready_in_time_has_its_claim_deleted() -> Result<()> {
    const TEST: &str = "late";
    let client = client().await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    let late = node(TEST, "late").create(&client).await?;
    claim(TEST, "late").create(&client).await?;
    node(TEST, "in-time").create(&client).await?;
    claim(TEST, "in-time").create(&client).await?;

    let due = eventually_due(&client, &rule, "late").await?;
    assert_eq!(due, created(&late)?.checked_add(TTL)?);
    eventually_due(&client, &rule, "in-time").await?;
    set_node_condition(&client, "in-time", READY, "True").await?;
    eventually_open(&client, TEST, "in-time").await?;
    ensure!(
        super::deadline(&client, &rule, "in-time").await?.is_none(),
        "a node that got ready has no deadline any more"
    );

    eventually_deleted_within(&client, "late", TTL + SOON).await?;
    let claim = node_claims(&client).get("late").await?;
    let deleted = claim
        .metadata
        .deletion_timestamp
        .clone()
        .context("deleted")?;
    ensure!(deleted.0 >= due, "deleted at {}, due at {due}", deleted.0);
    let termination: Timestamp = claim.annotations()[TERMINATION].parse()?;
    ensure!(
        termination <= deleted.0,
        "{termination} after {}",
        deleted.0
    );
    let note = eventually_told(&client, "late", "NodeClaimDeleted").await?;
    ensure!(
        note.starts_with(
            "NodeClaim 'late' deleted by rule 'late'. The node should have been ready by "
        ) && note.ends_with("example.com/Ready is not reported (counts as Unknown, must be True)"),
        "{note}"
    );
    are_left_alone(&client, &["in-time"]).await?;
    // Karpenter takes its time with the node: the claim is not deleted again in the meantime.
    set_node_condition(&client, "late", READY, "False").await?;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(notes(&client, "late", "NodeClaimDeleted").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_claim_that_was_created_again_under_its_name_is_never_deleted_by_mistake() -> Result<()> {
    const TEST: &str = "again";
    let (cluster, client) = own_cluster().await?;
    let controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    fixtures::node_claim(TEST)
        .node(TEST)
        .create(&client)
        .await?;
    node(TEST, TEST)
        .taint(&key(TEST), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(5))
        .create(&client)
        .await?;
    // The controller has observed everything; its timer fires while it cannot observe the claim's change.
    tokio::time::sleep(Duration::from_secs(1)).await;
    controller.pause()?;
    let first = node_claims(&client).get(TEST).await?.uid();
    node_claims(&client)
        .delete(TEST, &DeleteParams::default())
        .await?;
    fixtures::node_claim(TEST)
        .node("another")
        .create(&client)
        .await?;
    tokio::time::sleep(Duration::from_secs(6)).await;
    controller.resume()?;
    let note = eventually_told(&client, TEST, "NodeRepairImpossible").await?;
    ensure!(note.ends_with("no NodeClaim names this node"), "{note}");
    let second = living_claim(&client, TEST)
        .await?
        .context("the new claim is there")?;
    assert_ne!(second.uid(), first);
    ensure!(
        second.annotations().is_empty(),
        "{:?}",
        second.annotations()
    );
    Ok(())
}
