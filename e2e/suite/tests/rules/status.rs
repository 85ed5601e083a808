//! A rule's status.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use nodegate_suite::rest::{at_rest, writes_about};
use nodegate_testbed::changes::{patch_node_status, patch_rule, set_node_condition};
use nodegate_testbed::fixtures::rules;
use nodegate_testbed::sights::rule_status;
use nodegate_testbed::{eventually_eq, never, sights};
use serde_json::{Value, json};

use super::rule::{self, continuous};
use super::{READY, SOON, client, eventually_gated, node};

/// A status without timestamps.
fn without_times(mut status: Value) -> Value {
    for list in ["nodeEvaluations", "failedNodes", "conditions"] {
        let list = status.get_mut(list).and_then(Value::as_array_mut);
        for entry in list.into_iter().flatten() {
            for time in ["lastEvaluationTime", "lastTransitionTime"] {
                if let Some(entry) = entry.as_object_mut() {
                    entry.remove(time);
                }
            }
        }
    }
    status
}

#[tokio::test]
async fn a_status_says_what_was_found_on_each_node_and_what_follows() -> Result<()> {
    let client = client().await?;
    let conditions = json!([
        {"type": READY, "requiredStatus": "True", "defaultStatus": "False"},
        {"type": "example.com/Busy", "requiredStatus": "False"},
    ]);
    let rule = continuous("says").spec("conditions", conditions);
    rule.create(&client).await?;
    node("says", "says-held").create(&client).await?;
    node("says", "says-open")
        .condition(READY, "True")
        .condition("example.com/Busy", "False")
        .create(&client)
        .await?;
    let results = |ready: &str, busy: &str| {
        json!([
            {"type": READY, "currentStatus": ready, "requiredStatus": "True", "defaultStatus": "False"},
            {"type": "example.com/Busy", "currentStatus": busy, "requiredStatus": "False", "defaultStatus": "Unknown"},
        ])
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "observedGeneration": 1,
        })
    };
    let expected = json!({
        "observedGeneration": 1,
        "matchedNodes": 2,
        "heldNodes": 1,
        "releasedNodes": 1,
        "failedNodeCount": 0,
        "appliedNodes": ["says-held", "says-open"],
        "nodeEvaluations": [
            {"nodeName": "says-held", "taintStatus": "Present", "conditionResults": results("Unknown", "Unknown")},
            {"nodeName": "says-open", "taintStatus": "Absent", "conditionResults": results("True", "False")},
        ],
        "conditions": [
            condition("Accepted", "True", "Valid", "the rule is in force"),
            condition("Conflicted", "False", "NoConflict", "no other rule governs the same taint"),
        ],
    });
    eventually_eq("the status", SOON, expected, async || {
        Ok(without_times(rule_status(&client, "says").await?))
    })
    .await?;

    patch_rule(&client, "says", &json!({"spec": {"dryRun": true}})).await?;
    let rule = rule::eventually_observed(&client, "says").await?;
    assert_eq!(rule.data["status"]["observedGeneration"], 2);
    Ok(())
}

#[tokio::test]
async fn nothing_is_written_while_nothing_changes() -> Result<()> {
    let cluster = super::cluster().await?;
    let client = cluster.client().await?;
    continuous("quiet").create(&client).await?;
    node("quiet", "quiet-held").create(&client).await?;
    node("quiet", "quiet-open")
        .condition(READY, "True")
        .create(&client)
        .await?;
    eventually_gated(&client, "quiet-held", "quiet").await?;
    set_node_condition(&client, "quiet-held", READY, "False").await?;
    eventually_eq(
        "the held node is in the status",
        SOON,
        json!("Present"),
        async || {
            let status = rule_status(&client, "quiet").await?;
            Ok(status["nodeEvaluations"][0]["taintStatus"].clone())
        },
    )
    .await?;
    rule::eventually_counts(&client, "quiet", [2, 1, 1]).await?;
    // A status is written at most once a second, so one more write may follow.
    let before = at_rest(cluster, "quiet").await?;
    let version = rules(&client).get("quiet").await?.resource_version();
    never("a write", Duration::from_secs(3), async || {
        Ok(writes_about(cluster, "quiet") != before)
    })
    .await?;
    let beat = json!({"status": {"conditions": [
        {"type": READY, "lastHeartbeatTime": Timestamp::now().to_string()},
    ]}});
    for name in ["quiet-held", "quiet-open"] {
        let before = sights::node(&client, name).await?;
        patch_node_status(&client, name, &beat).await?;
        let after = sights::node(&client, name).await?;
        assert_ne!(before.resource_version(), after.resource_version());
    }
    never(
        "a write after a heartbeat",
        Duration::from_secs(2),
        async || Ok(writes_about(cluster, "quiet") != before),
    )
    .await?;
    let now = rules(&client).get("quiet").await?.resource_version();
    assert_eq!(now, version);
    Ok(())
}
