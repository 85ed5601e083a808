//! Evaluations of nodes, with their feature gate on, on a real API server and with its garbage collector; and the gate off.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use nodegate_suite::SOON;
use nodegate_suite::gates::eventually_gated;
use nodegate_suite::network::{CONDITION, TAINT, create_node, network_rule};
use nodegate_suite::rest::{at_rest, writes_about};
use nodegate_testbed::changes::{delete_rule, patch_node, patch_node_status, set_node_condition};
use nodegate_testbed::install::CONTROLLER;
use nodegate_testbed::{Cluster, Controller, Options, eventually, never, sights};
use serde_json::{Value, json};

const GATE: &str = "--feature-gates=NodeReadinessEvaluation=true";
const RESOURCE: &str = "nodereadinessevaluations";

fn evaluations(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(
        "readiness.node.x-k8s.io",
        "v1alpha1",
        "NodeReadinessEvaluation",
    );
    let kind = ApiResource::from_gvk_with_plural(&kind, RESOURCE);
    Api::all_with(client.clone(), &kind)
}

/// The status of a node's evaluation, once it has this state.
async fn eventually_is(client: &Client, node: &str, state: &str) -> Result<Value> {
    let what = format!("the evaluation of {node} is {state}");
    eventually(&what, SOON, async || {
        let found = evaluations(client).get_opt(node).await?;
        let status = found.map(|it| it.data["status"].clone());
        Ok(status.filter(|status| status["state"] == state))
    })
    .await
}

async fn eventually_gone(client: &Client, node: &str) -> Result<()> {
    let what = format!("the evaluation of {node} is gone");
    eventually(&what, SOON * 2, async || {
        Ok(evaluations(client).get_opt(node).await?.is_none())
    })
    .await
}

/// The writes of evaluations so far: the verb, the subresource and the node of each.
fn writes(cluster: &Cluster) -> Vec<String> {
    let writes = cluster.controllers_writes().into_iter();
    let writes = writes.filter(|write| write.resource.starts_with(RESOURCE));
    writes
        .map(|it| format!("{} {} {}", it.verb, it.resource, it.code))
        .collect()
}

#[tokio::test]
async fn each_node_that_a_rule_selects_has_one_that_follows_it() -> Result<()> {
    let cluster = Cluster::start(Options::full().audited()).await?;
    cluster.install_alpha().await?;
    let controller = Controller::start(&cluster, &[GATE]).await?;
    let client = cluster.client().await?;
    let rule = network_rule("network").create(&client).await?;
    create_node(&client, "eval-a", "False").await?;
    create_node(&client, "eval-b", "True").await?;

    let closed = eventually_is(&client, "eval-a", "NotReady").await?;
    assert_eq!(closed["summary"], "1 rule keeps this node closed: network");
    let entry = &closed["rules"][0];
    let reference = json!({"name": "network", "uid": rule.uid().context("a UID")?});
    assert_eq!(entry["ruleRef"], reference);
    ensure!(entry["taintAddedAt"].is_string() && entry["taintRemovedAt"].is_null());
    eventually_is(&client, "eval-b", "Ready").await?;
    let node = sights::node(&client, "eval-a").await?;
    let held = evaluations(&client).get("eval-a").await?;
    let owner = held.owner_references().first().context("an owner")?;
    assert_eq!(
        (&*owner.kind, Some(&owner.uid)),
        ("Node", node.uid().as_ref())
    );
    let listed = cluster.kubectl(&["get", "nre", "-o", "wide"]).await?;
    ensure!(listed.contains("1 rule leaves this node open"), "{listed}");

    // Heartbeats write nothing, nor does another process.
    let before = at_rest(&cluster, "eval-").await?;
    let beat = json!({"status": {"conditions": [
        {"type": CONDITION, "lastHeartbeatTime": Timestamp::now().to_string()},
    ]}});
    for node in ["eval-a", "eval-b"] {
        patch_node_status(&client, node, &beat).await?;
    }
    never(
        "a write after a heartbeat",
        Duration::from_secs(3),
        async || Ok(writes_about(&cluster, "eval-") != before),
    )
    .await?;
    let count = writes(&cluster).len();
    drop(controller);
    let _controller = Controller::start(&cluster, &[GATE]).await?;
    never(
        "a write after a restart",
        Duration::from_secs(5),
        async || Ok(writes(&cluster).len() != count),
    )
    .await?;

    set_node_condition(&client, "eval-a", CONDITION, "True").await?;
    let opened = eventually_is(&client, "eval-a", "Ready").await?;
    let after = &opened["rules"][0];
    for time in ["firstEvaluatedAt", "taintAddedAt"] {
        assert_eq!(after[time], entry[time], "{time}");
    }
    ensure!(after["taintRemovedAt"].is_string(), "{after}");

    // Somebody overwrites one, and deletes the other.
    let wrong = Patch::Merge(json!({"status": {"state": "NotReady"}}));
    let params = PatchParams::default();
    evaluations(&client)
        .patch_status("eval-a", &params, &wrong)
        .await?;
    eventually_is(&client, "eval-a", "Ready").await?;
    let uid = evaluations(&client).get("eval-b").await?.uid();
    evaluations(&client)
        .delete("eval-b", &DeleteParams::default())
        .await?;
    eventually_is(&client, "eval-b", "Ready").await?;
    assert_ne!(evaluations(&client).get("eval-b").await?.uid(), uid);

    // A node that no rule selects has none, nor has one that is gone.
    let off = json!({"metadata": {"labels": {"network": null}}});
    patch_node(&client, "eval-b", &off).await?;
    eventually_gone(&client, "eval-b").await?;
    cluster.kubectl(&["delete", "node", "eval-a"]).await?;
    eventually_gone(&client, "eval-a").await?;
    create_node(&client, "eval-c", "True").await?;
    eventually_is(&client, "eval-c", "Ready").await?;
    delete_rule(&client, "network").await?;
    eventually_gone(&client, "eval-c").await?;
    let refused = writes(&cluster);
    let refused: Vec<_> = refused.iter().filter(|it| it.contains(" 403")).collect();
    ensure!(refused.is_empty(), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn without_the_definition_the_rest_works_and_the_log_says_what_to_install() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    let controller = Controller::start(&cluster, &[GATE]).await?;
    let client = cluster.client().await?;
    network_rule("network").create(&client).await?;
    create_node(&client, "eval-a", "False").await?;
    eventually_gated(&client, "eval-a", TAINT).await?;
    eventually("the log says what to install", SOON, async || {
        Ok(controller.log().contains("kubectl apply -k config/alpha"))
    })
    .await?;
    ensure!(controller.is_ready().await, "not ready");
    cluster.install_alpha().await?;
    eventually_is(&client, "eval-a", "NotReady").await?;
    Ok(())
}

#[tokio::test]
async fn with_the_gate_off_nobody_asks_for_evaluations() -> Result<()> {
    let cluster = Cluster::start(Options::api_only().audited()).await?;
    cluster.install_alpha().await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    let client = cluster.client().await?;
    network_rule("network").create(&client).await?;
    create_node(&client, "eval-a", "False").await?;
    eventually_gated(&client, "eval-a", TAINT).await?;
    at_rest(&cluster, "eval-").await?;
    let log = cluster.audit_log();
    let asked = log.lines().find(|line| {
        line.contains(RESOURCE) && line.contains(&format!("\"username\":\"{CONTROLLER}\""))
    });
    ensure!(asked.is_none(), "{asked:?}");
    Ok(())
}
