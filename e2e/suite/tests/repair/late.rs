//! Nodes that are not ready within a whole readiness TTL, a minute at least: the claim of one is deleted, another one is released.

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use nodegate_suite::SOON;
use nodegate_suite::gates::{eventually_gated, eventually_open, opened_within, stays_open};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::node_claims;
use nodegate_testbed::{Controller, eventually, sights};

use super::{
    A_WHILE, POOL, READY, TTL, claim, deadline_key, eventually_deleted, eventually_told, key,
    living_claim, node, notes, own_cluster, rule,
};

const TERMINATION: &str = "karpenter.sh/nodeclaim-termination-timestamp";

#[tokio::test]
async fn what_takes_a_readiness_ttl() -> Result<()> {
    let (cluster, client) = own_cluster().await?;
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    tokio::try_join!(
        a_node_that_is_not_ready_in_time_has_its_claim_deleted(&client),
        a_node_that_is_not_ready_in_time_is_released(&client),
        a_node_that_replaces_a_late_one_and_lacks_the_same_waits(&client),
    )?;
    Ok(())
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

async fn a_node_that_is_not_ready_in_time_has_its_claim_deleted(client: &Client) -> Result<()> {
    const TEST: &str = "late";
    let rule = rule(TEST, "DeleteNodeClaim").create(client).await?;
    let late = node(TEST, "late").label(POOL, TEST).create(client).await?;
    claim(TEST, "late").create(client).await?;
    node(TEST, "in-time")
        .label(POOL, TEST)
        .create(client)
        .await?;
    claim(TEST, "in-time").create(client).await?;

    let due = eventually_due(client, &rule, "late").await?;
    let created = late.creation_timestamp().context("a node has an age")?;
    assert_eq!(due, created.0.checked_add(TTL)?);
    eventually_due(client, &rule, "in-time").await?;
    set_node_condition(client, "in-time", READY, "True").await?;
    eventually_open(client, "in-time", &key(TEST)).await?;
    ensure!(
        deadline(client, &rule, "in-time").await?.is_none(),
        "a node that got ready has no deadline any more"
    );

    eventually_deleted(client, "late", TTL + SOON).await?;
    let claim = node_claims(client).get("late").await?;
    let deleted = claim.metadata.deletion_timestamp.clone();
    let deleted = deleted.context("deleted")?.0;
    ensure!(deleted >= due, "deleted at {deleted}, due at {due}");
    eventually("Karpenter need not wait for pods", SOON, async || {
        let claim = node_claims(client).get("late").await?;
        let termination = claim.annotations().get(TERMINATION);
        let termination: Option<Timestamp> = termination.map(|it| it.parse()).transpose()?;
        Ok(termination.is_some_and(|at| at <= Timestamp::now()))
    })
    .await?;
    let note = eventually_told(client, "late", "NodeClaimDeleted", SOON).await?;
    ensure!(
        note.starts_with(
            "NodeClaim 'late' deleted by rule 'late'. The node should have been ready by "
        ) && note.ends_with("example.com/Ready is not reported (counts as Unknown, must be True)"),
        "{note}"
    );
    ensure!(
        living_claim(client, "in-time").await?.is_some(),
        "NodeClaim in-time has been deleted"
    );
    // Karpenter takes its time with the node: the claim is not deleted again in the meantime.
    set_node_condition(client, "late", READY, "False").await?;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(notes(client, "late", "NodeClaimDeleted").await?.len(), 1);
    Ok(())
}

async fn a_node_that_is_not_ready_in_time_is_released(client: &Client) -> Result<()> {
    const TEST: &str = "released";
    let rule = rule(TEST, "Release").create(client).await?;
    let node = node(TEST, TEST).label(POOL, TEST).create(client).await?;
    eventually_gated(client, TEST, &key(TEST)).await?;
    opened_within(client, TEST, &key(TEST), TTL + SOON).await?;
    let created = node.creation_timestamp().context("a node has an age")?;
    let lasted = Timestamp::now().duration_since(created.0);
    ensure!(lasted.as_secs() >= 60, "too early");
    let note = eventually_told(client, TEST, "NodeReleasedUnready", SOON).await?;
    assert_eq!(
        note,
        "Rule 'released' has released this node although it is not ready: its readiness TTL has passed; example.com/Ready is not reported \
         (counts as Unknown, must be True)"
    );
    // The rule ignores it from now on, and it counts as late until it is ready.
    set_node_condition(client, TEST, READY, "False").await?;
    stays_open(client, TEST, &key(TEST)).await?;
    ensure!(deadline(client, &rule, TEST).await?.is_some(), "not late");
    set_node_condition(client, TEST, READY, "True").await?;
    eventually("it is not late any more", SOON, async || {
        Ok(deadline(client, &rule, TEST).await?.is_none())
    })
    .await
}

async fn a_node_that_replaces_a_late_one_and_lacks_the_same_waits(client: &Client) -> Result<()> {
    const TEST: &str = "in-vain";
    let rule = rule(TEST, "DeleteNodeClaim").create(client).await?;
    let joins = async |name: &str| {
        claim(TEST, name).create(client).await?;
        // In a zone of their own: one in which more than two nodes are late is left alone.
        let node = super::late(TEST, name, &rule).label("topology.kubernetes.io/zone", TEST);
        node.label(POOL, TEST).create(client).await
    };
    joins("first").await?;
    eventually_deleted(client, "first", SOON).await?;
    // Creation times are whole seconds.
    tokio::time::sleep(A_WHILE).await;
    joins("second").await?;
    let note = eventually_told(client, "second", "NodeRepairBlocked", SOON).await?;
    let expected = "Rule 'in-vain' does not repair this node: 1 replacement of NodePool 'in-vain' missed example.com/Ready too: the \
                    next is replaced at ";
    ensure!(note.starts_with(expected), "{note}");
    let setbacks = sights::rule_status(client, TEST).await?["nodegate"]["setbacks"].clone();
    ensure!(
        setbacks[0]["condition"] == READY && setbacks[0]["missed"] == 0,
        "{setbacks}"
    );
    ensure!(
        living_claim(client, "second").await?.is_some(),
        "it was deleted"
    );
    Ok(())
}
