//! A node's deadline: from the claim, its pool or the rule, and as recorded.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams};
use nodegate_testbed::changes::{delete_rule, patch_node, patch_rule};
use nodegate_testbed::fixtures::{create_node_pool, node_pools};
use nodegate_testbed::{Controller, eventually, never, sights};
use serde_json::{Value, json};

use super::{
    A_WHILE, SOON, TTL, are_left_alone, claim, client, created, deadline, deadline_key,
    eventually_deleted_within, eventually_due, eventually_gated, eventually_told, in_seconds, key,
    living_claim, node, own_cluster, rule,
};

/// The annotation by which a pool sets its nodes' readiness TTL.
const TTL_ANNOTATION: &str = "nodegate.dev/readiness-ttl";

/// The time from a node's creation to its deadline, in seconds.
async fn time_of(client: &Client, rule: &kube::api::DynamicObject, name: &str) -> Result<i64> {
    let due = eventually_due(client, rule, name).await?;
    let created = created(&sights::node(client, name).await?)?;
    Ok(due.as_second() - created.as_second())
}

async fn annotate_pool(client: &Client, pool: &str, ttl: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {TTL_ANNOTATION: ttl}}});
    node_pools(client)
        .patch(pool, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_pool_wins_over_the_rule_and_later_changes_leave_existing_nodes_alone() -> Result<()> {
    const TEST: &str = "pool-ttl";
    let client = client().await?;
    create_node_pool(&client, TEST, (TTL_ANNOTATION, "20m")).await?;
    let rule = rule(TEST, "None").create(&client).await?;
    node(TEST, "pool-first").create(&client).await?;
    assert_eq!(time_of(&client, &rule, "pool-first").await?, 20 * 60);
    let poolless = node(TEST, "pool-none").label("karpenter.sh/nodepool", "no-such-pool");
    poolless.create(&client).await?;
    assert_eq!(time_of(&client, &rule, "pool-none").await?, 60);

    annotate_pool(&client, TEST, "30m").await?;
    let repair = json!({"spec": {"repair": {"readinessTTL": "2m"}}});
    patch_rule(&client, TEST, &repair).await?;
    let is_second = async |name: &str, expected: i64| {
        node(TEST, name).create(&client).await?;
        anyhow::Ok(time_of(&client, &rule, name).await? == expected)
    };
    let mut number = 0;
    eventually("new nodes have the new time", SOON, async || {
        number += 1;
        is_second(&format!("pool-second-{number}"), 30 * 60).await
    })
    .await?;
    assert_eq!(time_of(&client, &rule, "pool-first").await?, 20 * 60);
    assert_eq!(time_of(&client, &rule, "pool-none").await?, 60);

    annotate_pool(&client, TEST, "Never").await?;
    eventually("new nodes have all the time", SOON, async || {
        number += 1;
        let name = format!("pool-third-{number}");
        node(TEST, &name).create(&client).await?;
        let recorded = eventually("a deadline", SOON, async || {
            deadline(&client, &rule, &name).await
        });
        Ok(recorded.await? == "never")
    })
    .await
}

#[tokio::test]
async fn what_cannot_be_read_on_a_pool_is_told_and_no_node_has_a_deadline_by_it() -> Result<()> {
    const TEST: &str = "bad-ttl";
    let client = client().await?;
    create_node_pool(&client, TEST, (TTL_ANNOTATION, "10 minutes")).await?;
    let rule = rule(TEST, "None").create(&client).await?;
    node(TEST, TEST).create(&client).await?;
    let note = eventually_told(&client, TEST, "NodeRepairImpossible").await?;
    ensure!(
        note.contains(
            "annotation nodegate.dev/readiness-ttl of NodePool 'bad-ttl' is \"10 minutes\""
        ),
        "{note}"
    );
    assert_eq!(deadline(&client, &rule, TEST).await?, None);
    annotate_pool(&client, TEST, "10m").await?;
    eventually_due(&client, &rule, TEST).await?;
    Ok(())
}

#[tokio::test]
async fn a_node_has_no_deadline_before_karpenter_has_taken_it_in() -> Result<()> {
    const TEST: &str = "unregistered";
    let client = client().await?;
    create_node_pool(&client, TEST, (TTL_ANNOTATION, "20m")).await?;
    let rule = rule(TEST, "None").create(&client).await?;
    // As the kubelet registers it, before Karpenter adds its label.
    let new = nodegate_testbed::fixtures::node(TEST).label(super::TEST, TEST);
    new.provider_id("test://unregistered")
        .taint("karpenter.sh/unregistered", "NoExecute")
        .create(&client)
        .await?;
    eventually_gated(&client, TEST, TEST).await?;
    never("it has a deadline", A_WHILE, async || {
        deadline(&client, &rule, TEST).await
    })
    .await?;
    let launched = nodegate_testbed::fixtures::node_claim(TEST).pool(TEST);
    launched
        .provider_id("test://unregistered")
        .create(&client)
        .await?;
    assert_eq!(time_of(&client, &rule, TEST).await?, 20 * 60);
    Ok(())
}

#[tokio::test]
async fn a_claim_wins_over_its_pool_where_it_can_say_so() -> Result<()> {
    const TEST: &str = "claim-ttl";
    let (cluster, client) = own_cluster().await?;
    // No released Karpenter has the field.
    let field = json!([{
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/readinessTTL",
        "value": {"type": "string"},
    }]);
    let patch = field.to_string();
    let crd = "crd/nodeclaims.karpenter.sh";
    cluster
        .kubectl(&["patch", crd, "--type=json", "-p", &patch])
        .await?;
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    create_node_pool(&client, TEST, (TTL_ANNOTATION, "20m")).await?;
    let rule = rule(TEST, "None").create(&client).await?;
    for (name, ttl, expected) in [("short", json!("5m"), 300), ("none", Value::Null, 1200)] {
        let mut number = 0;
        // The API server takes a moment to know the field.
        eventually(name, SOON, async || {
            number += 1;
            let name = format!("{name}-{number}");
            let claim = claim(TEST, &name);
            let claim = if ttl.is_null() {
                claim
            } else {
                claim.spec("readinessTTL", ttl.clone())
            };
            let created = claim.create(&client).await?;
            ensure!(created.data["spec"]["readinessTTL"] == ttl, "not known yet");
            tokio::time::sleep(Duration::from_millis(300)).await;
            node(TEST, &name).create(&client).await?;
            Ok(time_of(&client, &rule, &name).await? == expected)
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_deadline_goes_with_its_rule() -> Result<()> {
    const TEST: &str = "goes";
    let client = client().await?;
    let rule = rule(TEST, "None").create(&client).await?;
    node(TEST, TEST).create(&client).await?;
    eventually_due(&client, &rule, TEST).await?;
    patch_rule(&client, TEST, &json!({"spec": {"repair": null}})).await?;
    let gone = async || Ok(deadline(&client, &rule, TEST).await?.is_none());
    eventually("no repair, no deadline", SOON, gone).await?;
    let repair = json!({"spec": {"repair": {"readinessTTL": "1h"}}});
    patch_rule(&client, TEST, &repair).await?;
    eventually_due(&client, &rule, TEST).await?;
    patch_node(
        &client,
        TEST,
        &json!({"metadata": {"labels": {super::TEST: "other"}}}),
    )
    .await?;
    eventually("not its node any more", SOON, gone).await?;
    patch_node(
        &client,
        TEST,
        &json!({"metadata": {"labels": {super::TEST: TEST}}}),
    )
    .await?;
    eventually_due(&client, &rule, TEST).await?;
    delete_rule(&client, TEST).await?;
    eventually("no rule, no deadline", SOON, gone).await
}

#[tokio::test]
async fn a_node_whose_deadline_is_taken_off_has_the_whole_time_anew() -> Result<()> {
    const TEST: &str = "anew";
    let client = client().await?;
    let rule = rule(TEST, "None").create(&client).await?;
    node(TEST, TEST).create(&client).await?;
    let first = eventually_due(&client, &rule, TEST).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let taken_off = json!({"metadata": {"annotations": {deadline_key(&rule): null}}});
    patch_node(&client, TEST, &taken_off).await?;
    let second = eventually_due(&client, &rule, TEST).await?;
    ensure!(second > first, "due at {first}, then at {second}");
    Ok(())
}

#[tokio::test]
async fn a_deadline_is_not_applied_to_a_node_that_has_been_opened_during_a_dry_run() -> Result<()> {
    const TEST: &str = "opened-dry";
    let client = client().await?;
    let dry = rule(TEST, "DeleteNodeClaim").dry_run();
    let rule = dry.create(&client).await?;
    claim(TEST, TEST).create(&client).await?;
    node(TEST, TEST)
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    let now = Timestamp::now();
    patch_rule(&client, TEST, &json!({"spec": {"dryRun": false}})).await?;
    eventually_gated(&client, TEST, TEST).await?;
    let due = eventually_due(&client, &rule, TEST).await?;
    ensure!(due.duration_since(now).as_secs() >= 59, "due at {due}");
    never("it is deleted", A_WHILE, async || {
        Ok(are_left_alone(&client, &[TEST]).await.is_err())
    })
    .await
}

pub(super) async fn nothing_is_repaired_in_the_first_ttl_after_a_start() -> Result<()> {
    const TEST: &str = "start";
    let (cluster, client) = own_cluster().await?;
    let controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    node(TEST, "start-on-record").create(&client).await?;
    claim(TEST, "start-on-record").create(&client).await?;
    eventually_due(&client, &rule, "start-on-record").await?;
    controller.kill();
    let unrecorded = node(TEST, "start-not-on-record").taint(&key(TEST), "NoSchedule");
    unrecorded.create(&client).await?;
    claim(TEST, "start-not-on-record").create(&client).await?;
    tokio::time::sleep(Duration::from_secs(15)).await;

    let started = Timestamp::now();
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    assert_eq!(time_of(&client, &rule, "start-on-record").await?, 60);
    let due = eventually_due(&client, &rule, "start-not-on-record").await?;
    ensure!(due.duration_since(started).as_secs() >= 60, "due at {due}");
    eventually_deleted_within(&client, "start-on-record", TTL + SOON).await?;
    ensure!(
        Timestamp::now() > due
            || living_claim(&client, "start-not-on-record")
                .await?
                .is_some()
    );
    eventually_deleted_within(&client, "start-not-on-record", TTL + SOON).await?;
    let claim = nodegate_testbed::fixtures::node_claims(&client)
        .get("start-not-on-record")
        .await?;
    let deleted = claim.metadata.deletion_timestamp.context("deleted")?;
    ensure!(deleted.0 >= due, "deleted at {}, due at {due}", deleted.0);
    Ok(())
}

#[tokio::test]
async fn a_deadline_on_record_outlives_a_restart() -> Result<()> {
    const TEST: &str = "restart";
    let (cluster, client) = own_cluster().await?;
    let rule = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    node(TEST, "restart-late")
        .taint(&key(TEST), "NoSchedule")
        .annotation(&deadline_key(&rule), &in_seconds(-5))
        .create(&client)
        .await?;
    claim(TEST, "restart-late").create(&client).await?;
    node(TEST, "restart-early").create(&client).await?;
    claim(TEST, "restart-early").create(&client).await?;
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    eventually_deleted_within(&client, "restart-late", SOON).await?;
    are_left_alone(&client, &["restart-early"]).await
}
