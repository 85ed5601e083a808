//! Nothing is repaired with too many unhealthy nodes, which then are not the cause, or where somebody forbids it.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::{fixtures, never, sights};
use serde_json::json;

use super::{
    A_WHILE, READY, are_left_alone, claim, client, deadline_key, eventually_deleted,
    eventually_open, eventually_told, in_seconds, key, node, notes, rule,
};

#[tokio::test]
async fn no_claim_is_deleted_while_too_many_nodes_of_the_pool_are_late() -> Result<()> {
    const TEST: &str = "many";
    let client = client().await?;
    // With the default limit.
    let repair = json!({"readinessTTL": "1m", "action": "DeleteNodeClaim"});
    let careful = rule(TEST, "DeleteNodeClaim").spec("repair", repair);
    let rule = careful.create(&client).await?;
    for name in ["many-1", "many-2", "many-3"] {
        node(TEST, name)
            .condition(READY, "True")
            .create(&client)
            .await?;
    }
    let due = in_seconds(5);
    for name in ["many-late", "many-late-too"] {
        claim(TEST, name).create(&client).await?;
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &due)
            .create(&client)
            .await?;
    }
    for name in ["many-late", "many-late-too"] {
        let note = eventually_told(&client, name, "NodeRepairBlocked").await?;
        assert_eq!(
            note,
            "Rule 'many' does not repair this node: 2 of 5 nodes of NodePool 'many' are past their readiness TTL or \
             not Ready any more, and maxUnhealthy 20% allows 1"
        );
    }
    never("a claim is deleted", A_WHILE, async || {
        Ok(are_left_alone(&client, &["many-late", "many-late-too"])
            .await
            .is_err())
    })
    .await?;

    // One of them becomes ready after all: only the other one is late now.
    set_node_condition(&client, "many-late-too", READY, "True").await?;
    eventually_open(&client, TEST, "many-late-too").await?;
    set_node_condition(&client, "many-late", "example.com/Other", "True").await?;
    eventually_deleted(&client, "many-late").await?;
    are_left_alone(&client, &["many-late-too"]).await
}

#[tokio::test]
async fn an_annotation_of_a_pool_or_a_node_forbids_repair_until_it_is_gone() -> Result<()> {
    const TEST: &str = "vetoed";
    const VETO: &str = "nodegate.dev/do-not-repair";
    let client = client().await?;
    let annotate = async |api: Api<DynamicObject>, name: &str, value: &str| {
        let patch = json!({"metadata": {"annotations": {VETO: value}}});
        let params = PatchParams::default();
        api.patch(name, &params, &Patch::Merge(patch)).await
    };
    let pools = || {
        let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodePool");
        Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind))
    };
    let pool = fixtures::node_pool(TEST).annotation(VETO, "true").build();
    let pool: DynamicObject = serde_json::from_value(pool)?;
    pools().create(&PostParams::default(), &pool).await?;
    let deleting = rule(TEST, "DeleteNodeClaim").create(&client).await?;
    let releasing = fixtures::rule("vetoed-release", &key("vetoed-release"))
        .bootstrap_only()
        .selects(super::TEST, "vetoed-release")
        .waits_for(READY)
        .spec(
            "repair",
            json!({"readinessTTL": "1m", "action": "Release", "maxUnhealthy": "100%"}),
        );
    let releasing = releasing.create(&client).await?;
    claim(TEST, "vetoed").create(&client).await?;
    node(TEST, "vetoed")
        .taint(&key(TEST), "NoSchedule")
        .annotation(&deadline_key(&deleting), &in_seconds(2))
        .create(&client)
        .await?;
    fixtures::node("vetoed-release")
        .label(super::TEST, "vetoed-release")
        .condition("Ready", "True")
        .taint(&key("vetoed-release"), "NoSchedule")
        .annotation(VETO, "")
        .annotation(&deadline_key(&releasing), &in_seconds(2))
        .create(&client)
        .await?;
    let note = eventually_told(&client, "vetoed", "NodeRepairSpared").await?;
    ensure!(
        note.starts_with(
            "Rule 'vetoed' does not repair this node: annotation nodegate.dev/do-not-repair on NodePool 'vetoed' forbids it. \
             The node should have been ready by "
        ),
        "{note}"
    );
    set_node_condition(&client, "vetoed", READY, "False").await?;
    never("a node is repaired", A_WHILE, async || {
        let is_open = !sights::has_taint(&client, "vetoed-release", &key("vetoed-release")).await?;
        Ok(is_open || are_left_alone(&client, &["vetoed"]).await.is_err())
    })
    .await?;
    assert_eq!(notes(&client, "vetoed", "NodeRepairSpared").await?.len(), 1);

    annotate(pools(), TEST, "false").await?;
    eventually_deleted(&client, "vetoed").await
}
