//! The policy restricts reporters to their own node and their own conditions, and nobody else.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::PostParams;
use kube::{Api, Client};
use nodegate_tests::gates::eventually_reported;
use nodegate_tests::reporter::{self, CONDITION, SERVICE_ACCOUNT, token_on};
use serde_json::{Value, json};
use testkit::nodegate::changes::set_node_condition;
use testkit::nodegate::fixtures::node;
use testkit::nodegate::install::NAMESPACE;
use testkit::nodegate::{Cluster, Reporter, eventually};

use crate::{
    SOON, cluster, condition, crowd, in_force, is_refused, patch_node, patch_status, removal,
};

const FOREIGN: &str = "example.com/Foreign";

#[tokio::test]
async fn a_reporter_reports_under_the_policy() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    node("reporting").create(&client).await?;
    let endpoint = format!("tcp://{}", cluster.store());
    let reporter = report(cluster, &client, "reporting", &endpoint, CONDITION).await?;
    eventually_reported(&client, "reporting", CONDITION, "True").await?;
    drop(reporter);
    // One that is configured for another condition reports what is wrong.
    node("misreporting").create(&client).await?;
    let reporter = report(cluster, &client, "misreporting", &endpoint, FOREIGN).await?;
    let words = format!("may not write condition {FOREIGN}; it may write {CONDITION}");
    reporter.says(&words, SOON).await
}

#[tokio::test]
async fn a_reporter_may_write_nothing_but_its_condition_on_its_own_node() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    for name in ["own", "foreign"] {
        node(name)
            .condition("Ready", "True")
            .condition(FOREIGN, "True")
            .allocatable("cpu", "4")
            .create(&client)
            .await?;
    }
    crowd(&client, "own").await?;
    let pod = token_on(cluster, &client, "own").await?;
    let unbound = cluster
        .kubeconfig_for_service_account(reporter::NAMESPACE, SERVICE_ACCOUNT)
        .await?;
    let pod = cluster.client_for(&pod).await?;
    let unbound = cluster.client_for(&unbound).await?;
    in_force(&pod, "own", &condition(FOREIGN, "False")).await?;

    for status in ["True", "False"] {
        patch_status(&pod, "own", &condition(CONDITION, status)).await?;
    }
    let reporter = "reporter kube-system/cni-reporter";
    for (node, patch, words) in refused() {
        let refusal = patch_status(&pod, node, &patch).await;
        is_refused(refusal, reporter, words).with_context(|| patch.to_string())?;
    }
    let refusal = patch_status(&unbound, "own", &condition(CONDITION, "True")).await;
    is_refused(refusal, reporter, "its token is not that of a pod")?;
    patch_status(&pod, "own", &removal(CONDITION)).await?;
    // Even if somebody has granted it more.
    grant(cluster, "patch", "nodes").await?;
    eventually("it is refused by the policy", SOON, async || {
        let taint = json!({"spec": {"unschedulable": true}});
        let refusal = patch_node(&pod, "own", &taint).await;
        is_refused(
            refusal,
            "reporter",
            "may write conditions, not the Node itself",
        )?;
        Ok(true)
    })
    .await?;
    // Others are not restricted.
    set_node_condition(&client, "foreign", "Ready", "False").await
}

#[tokio::test]
async fn a_reporter_that_puts_the_status_back_is_held_to_the_same() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    node("updated")
        .condition(FOREIGN, "True")
        .create(&client)
        .await?;
    crowd(&client, "updated").await?;
    let pod = token_on(cluster, &client, "updated").await?;
    let pod = cluster.client_for(&pod).await?;
    in_force(&pod, "updated", &condition(FOREIGN, "False")).await?;
    grant(cluster, "update", "nodes/status").await?;
    let nodes: Api<Node> = Api::all(pod);
    let update = async |condition: &str| {
        let mut node = nodes.get("updated").await?;
        let conditions = &mut node.status.get_or_insert_default().conditions;
        let conditions = conditions.get_or_insert_default();
        conditions.retain(|known| known.type_ != condition);
        conditions.push(NodeCondition {
            type_: condition.to_owned(),
            status: "False".to_owned(),
            ..NodeCondition::default()
        });
        nodes
            .replace_status("updated", &PostParams::default(), &node)
            .await
    };
    eventually("its own condition is taken", SOON, async || {
        Ok(update(CONDITION).await.is_ok())
    })
    .await?;
    // A concurrent write to the node causes a conflict, which is not the policy's answer.
    let refused = eventually("another one is answered", SOON, async || {
        let result = update(FOREIGN).await;
        let is_conflict = matches!(&result, Err(kube::Error::Api(status)) if status.code == 409);
        Ok((!is_conflict).then_some(result))
    })
    .await?;
    is_refused(refused, "reporter", "may not write condition")
}

/// Grants the example's account one more permission.
async fn grant(cluster: &Cluster, verb: &str, resource: &str) -> Result<()> {
    let name = format!("{verb}-{}", resource.replace('/', "-"));
    let account = format!("--serviceaccount={}:{SERVICE_ACCOUNT}", reporter::NAMESPACE);
    let (verb, resource) = (format!("--verb={verb}"), format!("--resource={resource}"));
    let role = format!("--clusterrole={name}");
    for command in [
        ["create", "clusterrole", &name, &verb, &resource],
        ["create", "clusterrolebinding", &name, &role, &account],
    ] {
        cluster.kubectl(&command).await?;
    }
    Ok(())
}

#[tokio::test]
async fn kubelets_are_left_alone_whatever_the_config_map_holds() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    node("kubelets").create(&client).await?;
    for (name, data) in [
        ("empty", "{}"),
        ("half", "{conditionTypes: a}"),
        ("odd", "{serviceAccount: ''}"),
    ] {
        let manifest = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {NAMESPACE}, \
             labels: {{nodegate.dev/reporter: 'true'}}}}, data: {data}}}"
        );
        cluster.apply(&manifest).await?;
    }
    for status in ["True", "False", "True"] {
        set_node_condition(&client, "kubelets", "Ready", status).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// The node, a patch of its status by the reporter's pod, and words of the refusal.
#[rustfmt::skip]
fn refused() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("foreign", condition(CONDITION, "True"), "may write only the Node it runs on, not foreign; its token is of a pod on own"),
        ("own", condition("Ready", "False"), "may not write condition Ready; it may write network.k8s.io/CalicoReady"),
        ("own", condition("example.com/New", "True"), "may not write condition example.com/New"),
        ("own", removal(FOREIGN), "may not write condition example.com/Foreign"),
        ("own", json!({"status": {"allocatable": {"cpu": "8"}}}), "nothing else of the status"),
        ("own", json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}), "nothing else of the status"),
        ("own", json!({"status": {"nodeInfo": {"bootID": "x"}}}), "nothing else of the status"),
        ("own", json!({"metadata": {"labels": {"a": "b"}}}), "not labels, annotations or other metadata"),
        ("own", json!({"metadata": {"annotations": {"a": "b"}}}), "not labels, annotations or other metadata"),
        ("own", json!({"metadata": {"finalizers": ["example.com/x"]}}), "not labels, annotations or other metadata"),
    ]
}

/// Starts a reporter as the example's pod on a node.
pub(crate) async fn report(
    cluster: &Cluster,
    client: &Client,
    node: &str,
    endpoint: &str,
    condition_type: &str,
) -> Result<Reporter> {
    let token = token_on(cluster, client, node).await?;
    let variables = [
        ("NODE_NAME", node),
        ("CHECK_ENDPOINT", endpoint),
        ("CONDITION_TYPE", condition_type),
    ];
    Reporter::start(cluster, &token, &variables)
}
