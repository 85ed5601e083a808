//! Claims of late nodes are deleted, so that new nodes replace these.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use nodegate_testbed::changes::{delete_rule, set_node_condition};
use nodegate_testbed::fixtures::{self, node_claims, rules};
use nodegate_testbed::{Controller, eventually, never};
use serde_json::json;

use super::{
    A_WHILE, READY, SOON, TERMINATION, TTL, are_left_alone, claim, client, created, deadline_key,
    eventually_deleted, eventually_deleted_within, eventually_due, eventually_gated,
    eventually_open, eventually_told, eventually_told_within, in_seconds, key, living_claim, node,
    notes, own_cluster, rule,
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
        note.starts_with("NodeClaim 'late' deleted by rule 'late'. The node was to be ready by ")
            && note
                .ends_with("example.com/Ready is not reported (counts as Unknown, must be True)"),
        "{note}"
    );
    are_left_alone(&client, &["in-time"]).await?;
    // Karpenter takes its time with the node: the claim is not deleted again in the meantime.
    set_node_condition(&client, "late", READY, "False").await?;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(notes(&client, "late", "NodeClaimDeleted").await?.len(), 1);
    Ok(())
}

pub(super) async fn an_old_cluster_loses_nothing_to_a_new_rule() -> Result<()> {
    const TEST: &str = "old-cluster";
    let client = client().await?;
    let mut names: Vec<String> = (0..5).map(|index| format!("old-{index}")).collect();
    for name in &names {
        node(TEST, name)
            .label("karpenter.sh/initialized", "true")
            .create(&client)
            .await?;
        claim(TEST, name)
            .condition("Initialized", "True")
            .create(&client)
            .await?;
    }
    // A node that Karpenter has not initialized is protected by its neighbours.
    node(TEST, "old-started").create(&client).await?;
    claim(TEST, "old-started").create(&client).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let careful = json!({"readinessTTL": "1m", "action": "DeleteNodeClaim"});
    let new_rule = || rule(TEST, "DeleteNodeClaim").spec("repair", careful.clone());
    new_rule().create(&client).await?;
    eventually_gated(&client, TEST, "old-0").await?;
    delete_rule(&client, TEST).await?;
    eventually_open(&client, TEST, "old-0").await?;
    eventually("the rule is gone", SOON, async || {
        Ok(rules(&client).get_opt(TEST).await?.is_none())
    })
    .await?;

    let again = new_rule().create(&client).await?;
    let created = again.creation_timestamp().context("a rule has an age")?;
    names.push("old-started".into());
    for name in &names {
        let due = eventually_due(&client, &again, name).await?;
        ensure!(due >= created.0.checked_add(TTL)?, "{name} is due at {due}");
    }
    let note =
        eventually_told_within(&client, "old-started", "NodeRepairBlocked", TTL + SOON).await?;
    ensure!(
        note.contains("6 of 6 nodes of NodePool 'old-cluster'"),
        "{note}"
    );
    tokio::time::sleep(A_WHILE).await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    are_left_alone(&client, &names).await
}

#[tokio::test]
async fn the_claim_is_found_by_its_instance_where_it_does_not_name_the_node() -> Result<()> {
    const TEST: &str = "by-instance";
    let client = client().await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    let unnamed = fixtures::node_claim(TEST)
        .pool(TEST)
        .provider_id("test://by-instance");
    unnamed.finalizer().create(&client).await?;
    node(TEST, TEST)
        .provider_id("test://by-instance")
        .taint(&key(TEST), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    eventually_deleted(&client, TEST).await
}

#[tokio::test]
async fn a_claim_that_may_not_be_the_nodes_is_left_alone() -> Result<()> {
    const TEST: &str = "doubt";
    let client = client().await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    let overdue = |name: &str| {
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(-5))
    };
    claim(TEST, "twin-a").node("twins").create(&client).await?;
    claim(TEST, "twin-b").node("twins").create(&client).await?;
    claim(TEST, "before")
        .provider_id("test://before")
        .create(&client)
        .await?;
    overdue("twins").create(&client).await?;
    overdue("before")
        .provider_id("test://now")
        .create(&client)
        .await?;
    overdue("nobodys").create(&client).await?;
    for (node, why) in [
        (
            "twins",
            "NodeClaims 'twin-a' and 'twin-b' both name this node",
        ),
        (
            "before",
            "NodeClaim 'before' names this node, but another instance than the node's providerID",
        ),
        ("nobodys", "no NodeClaim names this node"),
    ] {
        let note = eventually_told(&client, node, "NodeRepairImpossible").await?;
        assert_eq!(note, format!("Rule 'doubt' cannot repair this node: {why}"));
    }
    are_left_alone(&client, &["twin-a", "twin-b", "before"]).await?;

    node_claims(&client)
        .delete("twin-b", &DeleteParams::default())
        .await?;
    remove_finalizers(&client, "twin-b").await?;
    eventually_deleted(&client, "twin-a").await
}

#[tokio::test]
async fn a_termination_is_brought_forward_and_never_put_off() -> Result<()> {
    const TEST: &str = "termination";
    let client = client().await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    let (earlier, later) = (in_seconds(-3600), in_seconds(3600));
    for (name, termination) in [
        ("terminates-earlier", &earlier),
        ("terminates-later", &later),
    ] {
        claim(TEST, name)
            .annotation(TERMINATION, termination)
            .create(&client)
            .await?;
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(-5))
            .create(&client)
            .await?;
        eventually_deleted(&client, name).await?;
    }
    let termination = async |name| {
        let claim = node_claims(&client).get(name).await?;
        anyhow::Ok(claim.annotations()[TERMINATION].clone())
    };
    assert_eq!(termination("terminates-earlier").await?, earlier);
    let brought_forward: Timestamp = termination("terminates-later").await?.parse()?;
    ensure!(brought_forward <= Timestamp::now(), "{brought_forward}");
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

#[tokio::test]
async fn two_rules_repair_one_claim_once() -> Result<()> {
    let client = client().await?;
    let one = rule("once", "DeleteNodeClaim").create(&client).await?;
    let two = rule("once-more", "DeleteNodeClaim").selects(super::TEST, "once");
    let two = two.create(&client).await?;
    claim("once", "once").create(&client).await?;
    node("once", "once")
        .taint(&key("once"), "NoSchedule")
        .taint(&key("once-more"), "NoSchedule")
        .annotation(&deadline_key(&one), &in_seconds(-5))
        .annotation(&deadline_key(&two), &in_seconds(-5))
        .create(&client)
        .await?;
    eventually_deleted(&client, "once").await?;
    eventually_told(&client, "once", "NodeClaimDeleted").await?;
    never("it is repaired again", A_WHILE, async || {
        Ok(notes(&client, "once", "NodeClaimDeleted").await?.len() > 1)
    })
    .await
}

async fn remove_finalizers(client: &Client, claim: &str) -> Result<()> {
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    node_claims(client)
        .patch(claim, &PatchParams::default(), &none)
        .await?;
    Ok(())
}
