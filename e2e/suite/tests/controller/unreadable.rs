//! A node of an unexpected form on a real API server. `kubectl` writes and reads it, since the test's own client cannot decode it
//! either.

use anyhow::Result;
use nodegate_suite::SOON;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{node, rule};
use nodegate_testbed::sights::has_taint;
use nodegate_testbed::{Cluster, Controller, Options, eventually};
use serde_json::json;

const READY: &str = "example.com/Ready";
const TAINT: &str = "readiness.k8s.io/gate";

/// Sets the rule's condition on a node, with a time that Go can parse and others cannot.
async fn set_beyond(cluster: &Cluster, node: &str, status: &str) -> Result<()> {
    let condition = json!({
        "type": READY, "status": status, "reason": "Test", "message": "",
        "lastHeartbeatTime": "9999-12-31T23:59:59Z", "lastTransitionTime": "9999-12-31T23:59:59Z",
    });
    let patch = json!({"status": {"conditions": [condition]}}).to_string();
    let node = ["patch", "node", node, "--subresource=status"];
    cluster
        .kubectl(&[&node[..], &["--type=strategic", "-p", &patch]].concat())
        .await?;
    Ok(())
}

/// Whether a node has the rule's taint, according to `kubectl`.
async fn is_gated(cluster: &Cluster, node: &str) -> Result<bool> {
    let keys = "jsonpath={.spec.taints[*].key}";
    let keys = cluster.kubectl(&["get", "node", node, "-o", keys]).await?;
    Ok(keys.split_whitespace().any(|key| key == TAINT))
}

#[tokio::test]
async fn a_node_with_a_time_out_of_range_is_a_node_like_any_other() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    node("odd").create(&client).await?;
    node("plain").create(&client).await?;
    set_beyond(&cluster, "odd", "True").await?;
    let gate = rule("gate", TAINT).waits_for(READY);
    gate.create(&client).await?;
    // One in the first list...
    let _controller = Controller::start(&cluster, &[]).await?;
    let plain = async |gated: bool| {
        let what = format!("the other node is gated: {gated}");
        eventually(&what, SOON, async || {
            Ok(has_taint(&client, "plain", TAINT).await? == gated)
        })
        .await
    };
    plain(true).await?;
    assert!(!is_gated(&cluster, "odd").await?, "its condition is met");
    // ...and changed later.
    set_beyond(&cluster, "odd", "False").await?;
    eventually("the odd node is gated", SOON, async || {
        is_gated(&cluster, "odd").await
    })
    .await?;
    set_node_condition(&client, "plain", READY, "True").await?;
    plain(false).await?;
    set_beyond(&cluster, "odd", "True").await?;
    eventually("the odd node is open", SOON, async || {
        Ok(!is_gated(&cluster, "odd").await?)
    })
    .await
}
