//! Grace periods, the disruption guard and critical components together.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use nodegate_testbed::changes::{patch_node, set_node_condition};
use nodegate_testbed::fixtures::{self, NodeBuilder};
use nodegate_testbed::{
    Cluster, Controller, Options, Witness, eventually, eventually_eq, kwok, sights,
};
use serde_json::json;

use super::{
    READY, TEST, client, count_gated, create_open, disruption, eventually_gated, eventually_open,
    eventually_says, key, rule,
};

const COMPONENTS_READY: &str = "node.gardener.cloud/CriticalComponentsReady";
const NAMESPACE: &str = "kube-system";
const NODES: usize = 50;
/// In this time the pods of fifty nodes are replaced.
const ROLLOUT: Duration = Duration::from_secs(120);

fn member(name: &str) -> NodeBuilder {
    fixtures::node(name).label(TEST, "pool").managed_by_kwok()
}

/// How often a node went from open to closed.
fn closings(states: &[Node], key: &str) -> usize {
    let closed: Vec<bool> = states
        .iter()
        .map(|node| sights::count_taints(node, key) > 0)
        .collect();
    closed.windows(2).filter(|pair| !pair[0] && pair[1]).count()
}

async fn updated(client: &Client, daemon_set: &str) -> Result<bool> {
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    let daemon_set = daemon_sets.get(daemon_set).await?;
    let generation = daemon_set.metadata.generation;
    let Some(status) = daemon_set.status else {
        return Ok(false);
    };
    let all = status.desired_number_scheduled;
    Ok(status.observed_generation == generation
        && all == i32::try_from(NODES)?
        && status.updated_number_scheduled == Some(all)
        && status.number_ready == all)
}

/// In sequence on the same fifty open nodes: an update of a critical `DaemonSet`, and a new one that never becomes ready.
#[expect(clippy::too_many_lines, reason = "one story")]
#[tokio::test]
async fn rollouts_of_critical_components_over_fifty_open_nodes() -> Result<()> {
    let cluster = Cluster::start(Options::full()).await?;
    cluster.install().await?;
    let client = cluster.client().await?;
    let _controller = Controller::start(&cluster, &[]).await?;
    let waiting = |name: &str| {
        fixtures::rule(name, &key(name))
            .selects(TEST, "pool")
            .waits_for(COMPONENTS_READY)
    };
    waiting("patient")
        .spec("gracePeriod", json!("5m"))
        .create(&client)
        .await?;
    waiting("prompt")
        .spec("gracePeriod", json!("1ms"))
        .create(&client)
        .await?;
    fixtures::daemon_set(&format!("{NAMESPACE}/cni"))
        .critical()
        .tolerate_everything()
        .create(&client)
        .await?;
    let nodes: Vec<String> = (0..NODES).map(|index| format!("pool-{index}")).collect();
    for name in &nodes {
        member(name).create(&client).await?;
    }
    for rule in ["patient", "prompt"] {
        eventually_eq("open nodes", ROLLOUT, json!(NODES), async || {
            let status = sights::rule_status(&client, rule).await?;
            Ok(status["releasedNodes"].clone())
        })
        .await?;
    }

    let witness = Witness::of_nodes(&client).await?;
    let patch = json!({"spec": {
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "20%"}},
        "template": {"metadata": {"annotations": {(kwok::READY_AFTER): "500ms"}}},
    }});
    Api::<DaemonSet>::namespaced(client.clone(), NAMESPACE)
        .patch("cni", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    eventually("the update ends", ROLLOUT, async || {
        updated(&client, "cni").await
    })
    .await?;
    for name in &nodes {
        eventually_open(&client, name, "prompt").await?;
    }
    let states = witness.up_to(&client, &nodes[0]).await?;
    for name in &nodes {
        let (patient, prompt) = (key("patient"), key("prompt"));
        ensure!(closings(&states[name], &patient) == 0, "{name} was closed");
        let closed = closings(&states[name], &prompt);
        ensure!(closed == 1, "{name} was closed {closed} times");
    }

    // A DaemonSet that breaks every node at once: with the guard none is closed.
    waiting("guarded")
        .spec("disruption", json!({}))
        .create(&client)
        .await?;
    eventually_says(
        &client,
        "guarded",
        "DisruptionLimited",
        ["False", "NoNodeHeldBack"],
    )
    .await?;
    eventually_eq("nodes seen", ROLLOUT, json!(NODES), async || {
        let status = sights::rule_status(&client, "guarded").await?;
        Ok(status["releasedNodes"].clone())
    })
    .await?;
    fixtures::daemon_set(&format!("{NAMESPACE}/broken"))
        .critical()
        .tolerate_everything()
        .never_ready()
        .create(&client)
        .await?;
    eventually_eq(
        "closed by the rule without a guard",
        ROLLOUT,
        NODES,
        async || count_gated(&client, "prompt", &nodes).await,
    )
    .await?;
    eventually_says(
        &client,
        "guarded",
        "DisruptionLimited",
        ["True", "AllZonesDisrupted"],
    )
    .await?;
    let closed = count_gated(&client, "guarded", &nodes).await?;
    // At first, one unmet node is a failure like any other.
    ensure!(closed <= 1, "{closed} nodes closed");
    ensure!(
        count_gated(&client, "patient", &nodes).await? == 0,
        "the grace period is not over"
    );
    Api::<DaemonSet>::namespaced(client.clone(), NAMESPACE)
        .delete("broken", &DeleteParams::background())
        .await?;
    eventually_eq("closed nodes", ROLLOUT, 0, async || {
        let prompt = count_gated(&client, "prompt", &nodes).await?;
        Ok(prompt + count_gated(&client, "guarded", &nodes).await?)
    })
    .await
}

#[tokio::test]
async fn each_rule_keeps_to_its_own_limits() -> Result<()> {
    let client = client().await?;
    let beside = |name: &str| {
        fixtures::rule(name, &key(name))
            .selects(TEST, "limits")
            .waits_for(READY)
    };
    beside("limits")
        .spec("disruption", disruption(50.0))
        .create(&client)
        .await?;
    beside("slower")
        .spec("disruption", disruption(0.01))
        .create(&client)
        .await?;
    let nodes: Vec<String> = (0..6).map(|index| format!("limits-{index}")).collect();
    for name in &nodes {
        create_open(&client, "limits", name).await?;
    }
    for name in &nodes[..3] {
        set_node_condition(&client, name, READY, "False").await?;
    }
    eventually_eq("closed by the faster rule", super::SOON, 3, async || {
        count_gated(&client, "limits", &nodes).await
    })
    .await?;
    eventually_says(
        &client,
        "slower",
        "DisruptionLimited",
        ["True", "NodesHeldBack"],
    )
    .await?;
    ensure!(
        count_gated(&client, "slower", &nodes).await? == 1,
        "one token"
    );
    Ok(())
}

#[tokio::test]
async fn a_cordoned_node_is_closed_and_opened_like_any_other() -> Result<()> {
    let client = client().await?;
    rule("cordoned")
        .spec("disruption", json!({}))
        .spec("gracePeriod", json!("1s"))
        .create(&client)
        .await?;
    create_open(&client, "cordoned", "cordoned").await?;
    create_open(&client, "cordoned", "cordoned-not").await?;
    patch_node(
        &client,
        "cordoned",
        &json!({"spec": {"unschedulable": true}}),
    )
    .await?;
    set_node_condition(&client, "cordoned", READY, "False").await?;
    eventually_gated(&client, "cordoned", "cordoned").await?;
    set_node_condition(&client, "cordoned", READY, "True").await?;
    eventually_open(&client, "cordoned", "cordoned").await?;
    let node = sights::node(&client, "cordoned").await?;
    let is_cordoned = node.spec.and_then(|spec| spec.unschedulable);
    ensure!(is_cordoned == Some(true), "it is not cordoned any more");
    Ok(())
}
