//! From the Node Readiness Controller to Nodegate and back, in a cluster in use. Nodegate finds the other's definition, rules,
//! statuses, taints, annotations and Lease, and no taint changes on the way.
//!
//! The steps are those of `docs/moving-in/node-readiness-controller.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use nodegate_tests::gates::{eventually_gated, eventually_released};
use nodegate_tests::network::OWNER;
use nodegate_tests::rules::{LEASE, taint_texts};
use nodegate_tests::{SOON, fixture};
use serde_json::{Value, json};
use testkit::nodegate::changes::{patch_rule, set_node_condition};
use testkit::nodegate::fixtures::{RuleBuilder, node, rule, rules};
use testkit::nodegate::install::{CRD, NAMESPACE, config};
use testkit::nodegate::state::{count_taints, nodes, rule_condition, rule_status};
use testkit::nodegate::{Cluster, Controller, NodeHistory, Options, eventually, eventually_eq};

const COUNT: usize = 300;
const FINALIZER: &str = "readiness.node.x-k8s.io/cleanup-taints";
const COMPLETED: &str = "readiness.k8s.io/bootstrap-completed-";

const NETWORK: &str = "readiness.k8s.io/network";
const AGENT: &str = "readiness.k8s.io/agent";
const NETWORK_READY: &str = "example.com/NetworkReady";
const AGENT_READY: &str = "example.com/AgentReady";

/// The state of a node when the other controller stops.
struct Case {
    /// The key and the value.
    taint: Option<(&'static str, &'static str)>,
    /// The statuses of the network's and the agent's condition.
    conditions: [&'static str; 2],
    /// What its bootstrap is on record by: the rule's UID, or its name.
    completed: Option<&'static str>,
}

const UID: &str = "<uid>";

#[rustfmt::skip]
static CASES: [Case; 6] = [
    Case { taint: None, conditions: ["True", "True"], completed: Some(UID) },
    // On record as older releases wrote it, and its network is down.
    Case { taint: None, conditions: ["False", "True"], completed: Some("network") },
    // Its bootstrap is not complete.
    Case { taint: Some((NETWORK, "pending")), conditions: ["False", "True"], completed: None },
    // The same, with another taint value than the rule's.
    Case { taint: Some((NETWORK, "by-hand")), conditions: ["False", "True"], completed: None },
    // The continuous rule holds it.
    Case { taint: Some((AGENT, "")), conditions: ["True", "False"], completed: Some(UID) },
    // The other controller has never observed it: no taint, no annotation, and its conditions are met.
    Case { taint: None, conditions: ["True", "True"], completed: None },
];

impl Case {
    fn of(index: usize) -> &'static Self {
        &CASES[index % CASES.len()]
    }
}

fn name(index: usize) -> String {
    format!("worker-{index:03}")
}

#[tokio::test]
async fn nodegate_takes_over_and_hands_back_without_a_taint_that_flaps() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install_without_crd().await?;
    leave_behind(&cluster, &client).await?;
    let before = taints(&client).await?;
    let history = NodeHistory::of_nodes(&client).await?;

    // The migration.
    cluster.apply_over(&config("crd")).await?;
    let controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    let held = COUNT / CASES.len();
    for (rule, expected) in [("network", 2 * held), ("agent", held)] {
        let expected = json!([COUNT, expected, COUNT - expected, 0]);
        eventually_eq("counts of the rule", SOON, expected, async || {
            let status = rule_status(&client, rule).await?;
            let counts = [
                "matchedNodes",
                "heldNodes",
                "releasedNodes",
                "failedNodeCount",
            ];
            Ok(counts.map(|count| status["nodegate"][count].clone()).into())
        })
        .await?;
        let accepted = rule_condition(&client, rule, "Accepted").await?;
        assert_eq!(accepted["status"], "True", "{rule}: {accepted}");
    }
    let status = rule_status(&client, "network").await?;
    let listed = status["nodeEvaluations"].as_array();
    let listed = listed.context("no node is listed")?;
    let first = listed.first().context("no node is listed")?;
    assert_eq!(first["taintStatus"], "Present", "{first}");
    ensure!(listed.len() <= 100, "{} nodes are listed", listed.len());
    let dry = rule_status(&client, "preview").await?;
    assert_eq!(dry["dryRunResults"]["taintsToAdd"], json!(3 * held));
    let uid = rules(&client).get("network").await?.uid();
    let uid = uid.context("a rule without a UID")?;
    // A record by name still counts, and that node is not ready now.
    let on_record = COUNT - 3 * held;
    let completed = format!("{COMPLETED}{uid}");
    eventually_eq("completed bootstraps", SOON, on_record, async || {
        count_annotations(&client, &completed).await
    })
    .await?;
    unchanged(&client, &history, &before).await?;
    cluster.idles();

    // Nodegate is in charge: it gates and releases nodes.
    set_node_condition(&client, &name(2), NETWORK_READY, "True").await?;
    set_node_condition(&client, &name(0), AGENT_READY, "False").await?;
    eventually_released(&client, &name(2), NETWORK).await?;
    eventually_gated(&client, &name(0), AGENT).await?;
    // The rules own the adopted taints, except for the released node's, plus the new one.
    eventually_eq("owned taints", SOON, 3 * held, async || {
        count_annotations(&client, OWNER).await
    })
    .await?;
    // A field that the other controller does not know.
    let patient = json!({"spec": {"nodegate": {"gracePeriod": "5m"}}});
    patch_rule(&client, "agent", &patient).await?;

    // The way back.
    ensure!(controller.stop().await?.success(), "it did not end well");
    drop(history);
    let before = taints(&client).await?;
    let history = NodeHistory::of_nodes(&client).await?;
    cluster.apply_over(&fixture("upstream-crd.yaml")).await?;
    is_as_upstream_wants_it(&client, &uid).await?;
    unchanged(&client, &history, &before).await?;

    // Migrates again: all records still count.
    cluster.apply_over(&config("crd")).await?;
    let _controller = Controller::start(&cluster, &["--leader-elect"]).await?;
    // The other definition has dropped the field, so the rule is frozen until it is applied again.
    eventually_eq("the reason", SOON, json!("FieldsPruned"), async || {
        Ok(rule_condition(&client, "agent", "Accepted").await?["reason"].take())
    })
    .await?;
    patch_rule(&client, "agent", &patient).await?;
    eventually_eq("matched nodes", SOON, json!(COUNT), async || {
        Ok(rule_status(&client, "agent").await?["nodegate"]["matchedNodes"].take())
    })
    .await?;
    unchanged(&client, &history, &before).await
}

/// Sets the cluster up as the Node Readiness Controller leaves it when its process is killed.
async fn leave_behind(cluster: &Cluster, client: &Client) -> Result<()> {
    // By its documentation: a client-side `kubectl apply`.
    let theirs = fixture("upstream-crd.yaml");
    cluster.kubectl_on(&["apply"], &theirs).await?;
    cluster.until_established(CRD).await?;

    let taint =
        |key: &str, value: &str| json!({"key": key, "value": value, "effect": "NoSchedule"});
    let network = rule("network", NETWORK)
        .waits_for(NETWORK_READY)
        .bootstrap_only()
        .spec("taint", taint(NETWORK, "pending"));
    let agent = rule("agent", AGENT).waits_for(AGENT_READY);
    let preview = rule("preview", "readiness.k8s.io/preview")
        .waits_for(NETWORK_READY)
        .dry_run();
    let uid = create(client, network).await?;
    create(client, agent).await?;
    create(client, preview).await?;

    stream::iter((0..COUNT).map(|index| create_node(client, index, &uid)))
        .buffer_unordered(32)
        .try_collect::<Vec<()>>()
        .await?;
    for (rule, key, condition) in [("network", NETWORK, 0), ("agent", AGENT, 1)] {
        let status = json!({"status": evaluated(key, condition)});
        rules(client)
            .patch_status(rule, &PatchParams::default(), &Patch::Merge(&status))
            .await?;
    }

    let now = k8s_openapi::jiff::Timestamp::now();
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {"name": LEASE, "namespace": NAMESPACE},
        "spec": {
            "holderIdentity": "nrr-controller-manager-6d5f8_0c0ffee0-0000-4000-8000-000000000000",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 3,
            "acquireTime": format!("{now:.6}"),
            "renewTime": format!("{now:.6}"),
        },
    }))?;
    Api::<Lease>::namespaced(client.clone(), NAMESPACE)
        .create(&PostParams::default(), &lease)
        .await?;
    Ok(())
}

/// Creates a rule with its finalizer; returns its UID.
async fn create(client: &Client, rule: RuleBuilder) -> Result<String> {
    let created = rule.finalizer(FINALIZER).create(client).await?;
    created.uid().context("a rule without a UID")
}

async fn create_node(client: &Client, index: usize, uid: &str) -> Result<()> {
    let case = Case::of(index);
    let [network, agent] = case.conditions;
    let mut builder = node(&name(index))
        .condition(NETWORK_READY, network)
        .condition(AGENT_READY, agent);
    if let Some(id) = case.completed {
        let key = format!("{COMPLETED}{}", id.replace(UID, uid));
        builder = builder.annotation(&key, r#"{"rule-name":"network"}"#);
    }
    let mut node = builder.build();
    if let Some((key, value)) = case.taint {
        let taint = Taint {
            key: key.to_owned(),
            value: Some(value.to_owned()).filter(|value| !value.is_empty()),
            effect: "NoSchedule".to_owned(),
            time_added: None,
        };
        node.spec.get_or_insert_default().taints = Some(vec![taint]);
    }
    Api::<Node>::all(client.clone())
        .create(&PostParams::default(), &node)
        .await?;
    Ok(())
}

/// The status of a rule that lists every node.
fn evaluated(key: &str, condition: usize) -> Value {
    let evaluation = |index: usize| {
        let case = Case::of(index);
        let held = case.taint.is_some_and(|(taint, _)| taint == key);
        let condition_type = [NETWORK_READY, AGENT_READY][condition];
        json!({
            "nodeName": name(index),
            "taintStatus": if held { "Present" } else { "Absent" },
            "lastEvaluationTime": "2026-08-01T12:00:00Z",
            "conditionResults": [{
                "type": condition_type,
                "currentStatus": case.conditions[condition],
                "requiredStatus": "True",
            }],
        })
    };
    json!({
        "observedGeneration": 1,
        "appliedNodes": (0..COUNT).map(name).collect::<Vec<_>>(),
        "nodeEvaluations": (0..COUNT).map(evaluation).collect::<Vec<_>>(),
    })
}

/// The key, value and effect of every taint of each node.
async fn taints(client: &Client) -> Result<BTreeMap<String, Vec<String>>> {
    let nodes = nodes(client).await?;
    let nodes = nodes.iter();
    Ok(nodes.map(|it| (it.name_any(), taint_texts(it))).collect())
}

/// Checks that no taint of any node has changed since the history began.
async fn unchanged(
    client: &Client,
    history: &NodeHistory,
    expected: &BTreeMap<String, Vec<String>>,
) -> Result<()> {
    // Lets pending changes finish.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The history must have observed the latest write of any node.
    let mut nodes = nodes(client).await?;
    nodes.sort_by_key(|node| {
        let version = node.resource_version().unwrap_or_default();
        version.parse::<u64>().unwrap_or_default()
    });
    let last = nodes.last().context("no nodes")?.name_any();
    let states = history.up_to(client, &last).await?;
    assert_eq!(states.len(), COUNT);
    for (name, states) in states {
        for state in states {
            assert_eq!(taint_texts(&state), expected[&name], "{name}");
        }
    }
    Ok(())
}

/// Checks that the Node Readiness Controller can continue: what it reads is there, and what it does not know is pruned or
/// harmless.
async fn is_as_upstream_wants_it(client: &Client, uid: &str) -> Result<()> {
    eventually("what it does not know is pruned", SOON, async || {
        let rules = rules(client).list(&ListParams::default()).await?;
        Ok(rules.iter().all(|rule| {
            let (spec, status) = (&rule.data["spec"], &rule.data["status"]);
            spec["nodegate"].is_null()
                && status["nodegate"].is_null()
                && status["conditions"].is_null()
        }))
    })
    .await?;
    for name in ["network", "agent", "preview"] {
        let rule = rules(client).get(name).await?;
        assert_eq!(rule.finalizers(), [FINALIZER], "{name}");
        // The rule and its status can be written under that definition.
        let change = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}});
        patch_rule(client, name, &change).await?;
        let mut rule = rules(client).get(name).await?;
        rule.data["status"]["observedGeneration"] = json!(rule.metadata.generation);
        rules(client)
            .replace_status(name, &PostParams::default(), &rule)
            .await
            .with_context(|| format!("writing the status of {name}"))?;
    }
    let status = rule_status(client, "network").await?;
    let evaluations = status["nodeEvaluations"].as_array();
    for evaluation in evaluations.context("no evaluations")? {
        ensure!(
            ["Present", "Absent"].contains(&evaluation["taintStatus"].as_str().unwrap_or_default()),
            "{evaluation}"
        );
    }
    // No released node would be held again: each completed bootstrap is on record by UID or by name.
    for node in nodes(client).await? {
        let annotations = node.annotations();
        let completed = [uid, "network"]
            .iter()
            .any(|id| annotations.contains_key(&format!("{COMPLETED}{id}")));
        let gated = count_taints(&node, NETWORK) > 0;
        ensure!(completed != gated, "{}", node.name_any());
    }
    Ok(())
}

/// How many annotations of all nodes have a key that begins with this.
async fn count_annotations(client: &Client, prefix: &str) -> Result<usize> {
    let nodes = nodes(client).await?;
    let keys = nodes.iter().flat_map(|node| node.annotations().keys());
    Ok(keys.filter(|key| key.starts_with(prefix)).count())
}
