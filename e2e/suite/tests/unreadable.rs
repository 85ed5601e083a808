//! Objects of an unexpected form on a real API server affect no others. `kubectl` writes and reads them, since the test's own
//! client cannot decode them either.

use anyhow::Result;
use kube::Client;
use kube::api::{Patch, PatchParams};
use nodegate_suite::SOON;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::fixtures::{node, node_claim, node_claims, rule};
use nodegate_testbed::sights::{events_about, has_taint};
use nodegate_testbed::{Cluster, Controller, Options, eventually};
use serde_json::{Value, json};

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

/// Writes a claim's status.
async fn set_status(client: &Client, claim: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    node_claims(client)
        .patch_status(claim, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Checks that an event reports the claim as unreadable.
async fn is_told(client: &Client, claim: &str) -> Result<()> {
    let what = format!("an event about NodeClaim {claim}");
    let event = eventually(&what, SOON, async || {
        let events = events_about(client, "NodeClaim", claim).await?;
        Ok(events.into_iter().next())
    })
    .await?;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reason.as_deref(), Some("ObjectUnreadable"));
    let said = format!(
        "NodeClaim {claim} cannot be parsed: status.conditions has a form that the API does not know"
    );
    assert_eq!(event.message, Some(said));
    Ok(())
}

#[tokio::test]
async fn a_claim_of_another_form_affects_no_others() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install().await?;
    cluster.install_karpenter().await?;
    let client = cluster.client().await?;
    // A definition without a schema for a claim's status.
    let lax = json!([{
        "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }])
    .to_string();
    let crd = "nodeclaims.karpenter.sh";
    cluster
        .kubectl(&["patch", "crd", crd, "--type=json", "-p", &lax])
        .await?;
    for (claim, status) in [
        ("number", json!({"nodeName": 5})),
        ("odd", json!({"conditions": 5})),
    ] {
        node_claim(claim).create(&client).await?;
        eventually("the lax definition is in force", SOON, async || {
            Ok(set_status(&client, claim, status.clone()).await.is_ok())
        })
        .await?;
    }
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;
    is_told(&client, "odd").await?;
    // The watch continues.
    node_claim("later").create(&client).await?;
    set_status(&client, "later", json!({"conditions": 5})).await?;
    is_told(&client, "later").await?;
    let about_number = events_about(&client, "NodeClaim", "number").await?;
    assert!(about_number.is_empty(), "{about_number:?}");
    Ok(())
}
