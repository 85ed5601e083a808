//! Nodes that the API server lets nobody write.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use nodegate_testbed::sights::rule_status;
use nodegate_testbed::{Cluster, eventually, eventually_eq};
use serde_json::{Value, json};

use super::rule::{self, continuous};
use super::{SOON, eventually_gated, node};

/// Makes the API server refuse every change of the node except to its status.
async fn freeze(cluster: &Cluster, client: &Client, node: &str) -> Result<()> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": node},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["UPDATE"],
                "resources": ["nodes"],
                "resourceNames": [node],
            }]},
            "validations": [{"expression": "false", "message": "it is frozen"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": node},
        "spec": {"policyName": node, "validationActions": ["Deny"]},
    });
    cluster.apply(&policy.to_string()).await?;
    cluster.apply(&binding.to_string()).await?;
    let nodes: Api<Node> = Api::all(client.clone());
    let touch = Patch::Merge(json!({"metadata": {"labels": {"touched": ""}}}));
    let trial = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    eventually("the policy is in force", SOON, async || {
        Ok(nodes.patch(node, &trial, &touch).await.is_err())
    })
    .await
}

async fn thaw(cluster: &Cluster, node: &str) -> Result<()> {
    let binding = format!("validatingadmissionpolicybinding/{node}");
    cluster.kubectl(&["delete", &binding]).await?;
    Ok(())
}

/// Fault 215 of the Node Readiness Controller.
#[tokio::test]
async fn a_node_that_cannot_be_written_is_a_failure_and_not_applied() -> Result<()> {
    let cluster = super::cluster().await?;
    let client = cluster.client().await?;
    node("frozen", "frozen").create(&client).await?;
    node("frozen", "frozen-not").create(&client).await?;
    freeze(cluster, &client, "frozen").await?;
    continuous("frozen").create(&client).await?;
    let lists = async || {
        let status = rule_status(&client, "frozen").await?;
        let names = |list: &Value, of: fn(&Value) -> &Value| {
            let names = list.as_array().into_iter().flatten().map(of);
            names
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect::<BTreeSet<_>>()
        };
        let applied = names(&status["appliedNodes"], |name| name);
        let failed = names(&status["failedNodes"], |failed| &failed["nodeName"]);
        ensure!(applied.is_disjoint(&failed), "in both lists: {status}");
        Ok((applied, failed))
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let split = (set(&["frozen-not"]), set(&["frozen"]));
    eventually_eq("applied and failed", SOON, split, lists).await?;
    let status = rule_status(&client, "frozen").await?;
    assert_eq!(status["failedNodeCount"], 1);
    let failed = &status["failedNodes"][0];
    assert_eq!(failed["reason"], "EvaluationError");
    let message = failed["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("failed to add taint: "), "{message}");
    assert!(message.contains("it is frozen"), "{message}");
    // Only the other node has the taint.
    rule::eventually_counts(&client, "frozen", [2, 1, 1]).await?;

    thaw(cluster, "frozen").await?;
    eventually_gated(&client, "frozen", "frozen").await?;
    let all = (set(&["frozen", "frozen-not"]), set(&[]));
    eventually_eq("applied and failed", SOON, all, lists).await?;
    rule::eventually_counts(&client, "frozen", [2, 2, 0]).await
}
