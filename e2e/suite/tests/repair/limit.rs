//! With too many unhealthy nodes, the nodes are not the cause, and nothing is repaired.

use anyhow::Result;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::never;
use serde_json::json;

use super::{
    A_WHILE, READY, are_left_alone, claim, client, deadline_key, eventually_deleted,
    eventually_open, eventually_told, in_seconds, key, node, rule,
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
