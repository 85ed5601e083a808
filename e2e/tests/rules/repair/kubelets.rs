//! A compromised kubelet writes everything that it can about its own node, with its own credentials: no other node is gated,
//! released or replaced because of it, and none is left alone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::CSINode;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use nodegate_tests::kubelet::kubelet;
use nodegate_tests::rules::eventually_says;
use nodegate_tests::{SOON, has_words, refused};
use serde_json::{Value, json};
use testkit::nodegate::changes::{delete_node, patch_node, patch_node_status, set_node_condition};
use testkit::nodegate::fixtures::{self, pod};
use testkit::nodegate::{Cluster, Controller, Options, eventually, never, state};

use super::{POOL, claim, deadline_key, eventually_deleted, key, late, living_claim, node, rule};

const ZONE: &str = "topology.kubernetes.io/zone";
/// The condition and the label of the rule with a disruption limit.
const LIMITED: &str = "example.com/Limited";
/// Longer than it takes to gate a node or to delete a claim.
const SHORTLY: Duration = Duration::from_millis(700);

/// The taints of every node but one, and whether its claim lives.
async fn others(client: &Client, but: &str) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    for node in state::nodes(client).await? {
        let name = node.name_any();
        if name != but {
            let keys: Vec<_> = state::taints_of(&node).map(|it| it.key.clone()).collect();
            let lives = living_claim(client, &name).await?.is_some();
            seen.push(format!("{name}: {keys:?}, {lives}"));
        }
    }
    Ok(seen)
}

/// What a kubelet can write about its Node: each with the subresource.
fn writes(uids: [&str; 2]) -> Vec<(bool, Value)> {
    let label = |key: &str, value: &str| (false, json!({"metadata": {"labels": {key: value}}}));
    let annotation = |key: String, value: Value| {
        let annotations = json!({key: value});
        (false, json!({"metadata": {"annotations": annotations}}))
    };
    let condition = |kind: &str, status: &str| {
        let condition = json!({"type": kind, "status": status, "reason": "Test", "message": ""});
        (true, json!({"status": {"conditions": [condition]}}))
    };
    let mut writes = vec![
        label(ZONE, "dead"),
        label(ZONE, "elsewhere"),
        label("failure-domain.beta.kubernetes.io/zone", "dead"),
        label("topology.kubernetes.io/region", "nowhere"),
        label(POOL, "dead"),
        label("karpenter.sh/initialized", "true"),
        condition("Ready", "False"),
        condition("MaintenanceInProgress", "True"),
        condition("MaintenanceInProgress", "False"),
        condition(LIMITED, "False"),
        condition(LIMITED, "True"),
        (
            true,
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}),
        ),
        (
            true,
            json!({"status": {"images": [{"names": ["example.com/i:1"], "sizeBytes": 1}]}}),
        ),
        (
            true,
            json!({"status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}}),
        ),
        (true, json!({"status": {"nodeInfo": {"bootID": "another"}}})),
        (false, json!({"spec": {"unschedulable": true}})),
        (false, json!({"spec": {"providerID": "aws:///dead/i-1"}})),
    ];
    for uid in uids {
        let owned =
            json!({"rule-name": "dead", "taint-key": key("dead"), "taint-effect": "NoSchedule"});
        writes.extend([
            annotation(format!("nodegate.dev/ready-deadline-{uid}"), json!("never")),
            annotation(
                format!("nodegate.dev/ready-deadline-{uid}"),
                json!("2020-01-01T00:00:00Z"),
            ),
            annotation(
                format!("nodegate.dev/taint-added-by-{uid}"),
                json!(owned.to_string()),
            ),
            annotation(
                format!("readiness.k8s.io/bootstrap-completed-{uid}"),
                json!("{}"),
            ),
            annotation(
                format!("readiness.k8s.io/bootstrap-completed-{uid}"),
                Value::Null,
            ),
        ]);
    }
    let vetoes = ["nodegate.dev/do-not-repair", "karpenter.sh/do-not-repair"];
    writes.extend(vetoes.map(|key| annotation(key.to_owned(), json!("true"))));
    writes
}

/// A rule that gates no more nodes, since most nodes of a small cluster do not meet it; of these `m` does.
async fn stopped(client: &Client) -> Result<DynamicObject> {
    let limited = fixtures::rule("limited", &key("limited"))
        .selects(LIMITED, "true")
        .waits_for(LIMITED)
        .nodegate("disruption", json!({"evictionRate": 5}));
    let limited = limited.create(client).await?;
    let names: Vec<_> = (0..7).map(|index| format!("limited-{index}")).collect();
    for name in names.iter().map(String::as_str).chain(["m"]) {
        node("dead", name)
            .label(LIMITED, "true")
            .label(ZONE, "live")
            .label(super::TEST, if name == "m" { "dead" } else { "limited" })
            .condition(LIMITED, "True")
            .create(client)
            .await?;
    }
    eventually("the rule counts its nodes", SOON, async || {
        let status = state::rule_status(client, "limited").await?;
        Ok(status["nodegate"]["releasedNodes"] == 8)
    })
    .await?;
    for name in &names {
        set_node_condition(client, name, LIMITED, "False").await?;
    }
    eventually_says(client, "limited", "DisruptionLimited", "True").await?;
    Ok(limited)
}

/// The kubelet of `m` writes its `CSINode` and Lease, and the status of its pod.
async fn write_what_belongs_to_it(client: &Client, own: &Client) -> Result<()> {
    let uid = state::node(client, "m").await?.uid().context("a UID")?;
    let driver = json!({"name": "csi.example.com", "nodeID": "m", "topologyKeys": []});
    let csi_node: CSINode = serde_json::from_value(json!({
        "metadata": {
            "name": "m",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "m", "uid": uid}],
        },
        "spec": {"drivers": [driver]},
    }))?;
    let csi_nodes: Api<CSINode> = Api::all(own.clone());
    csi_nodes.create(&PostParams::default(), &csi_node).await?;
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {"name": "m", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "m", "leaseDurationSeconds": 40},
    }))?;
    let leases: Api<Lease> = Api::namespaced(own.clone(), "kube-node-lease");
    leases.create(&PostParams::default(), &lease).await?;
    pod("kube-system/agent")
        .critical()
        .on("m")
        .create(client)
        .await?;
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let pods: Api<Pod> = Api::namespaced(own.clone(), "kube-system");
    let patch = Patch::Strategic(&running);
    pods.patch_status("agent", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

#[tokio::test]
async fn whatever_a_kubelet_writes_moves_no_other_node() -> Result<()> {
    let cluster = Cluster::start(Options {
        node_restriction: true,
        ..Options::api_only()
    })
    .await?;
    cluster.install().await?;
    cluster.install_karpenter().await?;
    let client = cluster.client().await?;
    cluster.idles();
    let _controller = Controller::start(&cluster, &["--enable-karpenter"]).await?;

    let limited = stopped(&client).await?;
    // Every node that joins in this zone is late, so none is replaced.
    let dead = rule("dead", "DeleteNodeClaim").create(&client).await?;
    let doomed = ["dead-0", "dead-1", "dead-2", "dead-3"];
    // Their time is up at once: while one has time left, the others are replaced.
    let due = Timestamp::from_second(Timestamp::now().as_second() + 5)?;
    for name in doomed {
        claim("dead", name).create(&client).await?;
        node("dead", name)
            .label(ZONE, "dead")
            .taint(&key("dead"), "NoSchedule")
            .annotation(&deadline_key(&dead), &due.to_string())
            .create(&client)
            .await?;
    }
    tokio::time::sleep(Duration::from_secs(7)).await;
    let before = others(&client, "m").await?;
    ensure!(
        before.iter().filter(|it| it.ends_with("true")).count() == doomed.len(),
        "{before:#?}"
    );

    let own = kubelet(&cluster, "m").await?;
    let holds = async |what: &str| {
        // What changes about a node has it judged again.
        for name in doomed {
            let now = Timestamp::now().to_string();
            let seen = json!({"type": "example.com/Seen", "status": "True", "message": now});
            let seen = json!({"status": {"conditions": [seen]}});
            patch_node_status(&client, name, &seen).await?;
        }
        never(what, SHORTLY, async || {
            Ok(others(&client, "m").await? != before)
        })
        .await
    };
    let uids = [&limited, &dead].map(|rule| rule.uid().unwrap_or_default());
    for (is_status, patch) in writes([&uids[0], &uids[1]]) {
        if is_status {
            patch_node_status(&own, "m", &patch).await?;
        } else {
            patch_node(&own, "m", &patch).await?;
        }
        holds(&patch.to_string()).await?;
    }
    let taints = json!({"spec": {"taints": []}});
    let refusal = refused(patch_node(&own, "m", &taints).await)?;
    has_words(&refusal, "not allowed to modify taints")?;

    write_what_belongs_to_it(&client, &own).await?;
    holds("its CSINode, Lease and pod").await?;

    // A late node keeps none from being repaired in the zone that it names.
    let label = json!({"metadata": {"labels": {ZONE: "fresh"}}});
    patch_node(&own, "m", &label).await?;
    let deadline = json!({deadline_key(&dead): "2020-01-01T00:00:00Z"});
    patch_node(&own, "m", &json!({"metadata": {"annotations": deadline}})).await?;
    for name in ["fresh-0", "fresh-1"] {
        claim("dead", name).create(&client).await?;
        late("dead", name, &dead)
            .label(ZONE, "fresh")
            .create(&client)
            .await?;
    }
    for name in ["fresh-0", "fresh-1"] {
        eventually_deleted(&client, name, SOON).await?;
    }
    // Another process would see its labels for the first time.
    delete_node(&client, "m").await
}
