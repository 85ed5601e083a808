//! The conditions that `kubectl describe node` shows.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::NodeCondition;
use nodegate_testbed::changes::{delete_rule, patch_node, set_node_condition};
use nodegate_testbed::sights::node_condition;
use nodegate_testbed::{eventually, eventually_eq, never};
use serde_json::json;

use crate::pool::{NAMESPACE, POOL, Pool};
use crate::{A_WHILE, COMPONENTS_READY, GATE, NO_SCHEDULE, SOON};

const PODS_READY: &str = "node.gardener.cloud/CriticalPodsReady";
const DRIVERS_REGISTERED: &str = "node.gardener.cloud/CSIDriversRegistered";
const OTHER: &str = "example.com/SomebodyElse";

/// A rule for the pool alone, on conditions that no other rule uses.
async fn create_rule(pool: &Pool) -> Result<()> {
    let rule = pool
        .rule()
        .waits_for(PODS_READY)
        .waits_for(DRIVERS_REGISTERED);
    pool.enforce(rule).await
}

async fn condition(pool: &Pool, name: &str) -> Result<NodeCondition> {
    node_condition(&pool.client, pool.name, name)
        .await?
        .with_context(|| format!("there is no {name}"))
}

/// The condition's status and reason.
async fn state(pool: &Pool, name: &str) -> Result<Option<(String, String)>> {
    let condition = node_condition(&pool.client, pool.name, name).await?;
    Ok(condition.map(|condition| (condition.status, condition.reason.unwrap_or_default())))
}

#[tokio::test]
async fn a_condition_names_what_is_missing_and_keeps_up_with_it() -> Result<()> {
    let pool = Pool::under_gardeners_rule("described").await?;
    for name in ["calico-node", "kube-proxy"] {
        pool.intolerant_daemon_set(name)
            .tolerate(GATE, NO_SCHEDULE)
            .never_ready()
            .create(&pool.client)
            .await?;
    }
    pool.join(pool.node()).await?;
    pool.is_held_because(
        "DaemonSets kube-system/described-calico-node, kube-system/described-kube-proxy have no pod on this node",
    )
    .await?;
    let first = condition(&pool, COMPONENTS_READY).await?;
    assert_eq!(first.reason.as_deref(), Some("DaemonSetPodMissing"));
    assert!(first.last_heartbeat_time.is_some());
    assert!(first.last_transition_time.is_some());
    // Timestamps are in whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;

    pool.lift_not_ready().await?;
    let (calico, proxy) = (
        pool.pod_of("calico-node").await?,
        pool.pod_of("kube-proxy").await?,
    );
    pool.is_held_because(&format!(
        "pods {NAMESPACE}/{calico}, {NAMESPACE}/{proxy} are not Ready"
    ))
    .await?;
    let second = condition(&pool, COMPONENTS_READY).await?;
    assert_eq!(second.reason.as_deref(), Some("PodNotReady"));
    assert!(
        second.last_heartbeat_time > first.last_heartbeat_time,
        "{second:?}, before {first:?}"
    );
    assert_eq!(
        second.last_transition_time, first.last_transition_time,
        "the status has not changed"
    );

    pool.set_ready("calico-node", true).await?;
    pool.is_held_because(&format!("pod {NAMESPACE}/{proxy} is not Ready"))
        .await?;
    pool.set_ready("kube-proxy", true).await?;
    let message = "every critical component is ready on this node";
    pool.says(COMPONENTS_READY, "True", message).await?;
    let last = condition(&pool, COMPONENTS_READY).await?;
    assert_eq!(last.reason.as_deref(), Some("CriticalComponentsReady"));
    assert!(last.last_transition_time > first.last_transition_time);
    // Taint and condition are written concurrently.
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn conditions_are_withdrawn_when_their_rule_goes() -> Result<()> {
    let pool = Pool::under_gardeners_rule("rule-goes").await?;
    create_rule(&pool).await?;
    let node = pool.unattended_node();
    let node = node.condition("Ready", "True").condition(OTHER, "False");
    pool.join(node).await?;
    let of = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    eventually_eq("it is there", SOON, of("True", "PodsReady"), async || {
        state(&pool, PODS_READY).await
    })
    .await?;
    let others = ["Ready", OTHER];
    let mut before = Vec::new();
    for other in others {
        before.push(condition(&pool, other).await?.last_transition_time);
    }
    delete_rule(&pool.client, pool.name).await?;
    for name in [PODS_READY, DRIVERS_REGISTERED] {
        eventually_eq("it is gone", SOON, None, async || state(&pool, name).await).await?;
    }
    for (other, before) in others.into_iter().zip(before) {
        assert_eq!(condition(&pool, other).await?.last_transition_time, before);
    }
    assert!(
        state(&pool, COMPONENTS_READY).await?.is_some(),
        "Gardener's rule still makes this one"
    );
    Ok(())
}

#[tokio::test]
async fn conditions_are_withdrawn_from_a_node_that_is_not_selected_any_more() -> Result<()> {
    let pool = Pool::under_gardeners_rule("node-goes").await?;
    create_rule(&pool).await?;
    pool.pod("agent").never_ready().create(&pool.client).await?;
    let node = pool.node().condition(OTHER, "False");
    pool.join(node).await?;
    let why = "pod kube-system/node-goes-agent is not Ready";
    pool.says(PODS_READY, "False", why).await?;
    pool.gets_own_taint(true).await?;
    patch_node(
        &pool.client,
        pool.name,
        &json!({"metadata": {"labels": {POOL: "another"}}}),
    )
    .await?;
    eventually_eq("it is gone", SOON, None, async || {
        state(&pool, PODS_READY).await
    })
    .await?;
    pool.gets_own_taint(false).await?;
    assert_eq!(condition(&pool, OTHER).await?.status, "False");
    Ok(())
}

/// Whatever others write under a synthesized type, only Nodegate's own observation counts.
#[tokio::test]
async fn a_forged_condition_opens_nothing_and_is_put_right() -> Result<()> {
    let pool = Pool::under_gardeners_rule("forged").await?;
    pool.pod("agent").never_ready().create(&pool.client).await?;
    pool.join(pool.node().condition(COMPONENTS_READY, "True"))
        .await?;
    let why = "pod kube-system/forged-agent is not Ready";
    pool.is_held_because(why).await?;
    set_node_condition(&pool.client, pool.name, COMPONENTS_READY, "True").await?;
    pool.is_held_because(why).await?;
    pool.set_pod_ready("agent", true).await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_type_under_a_reserved_prefix_that_nothing_makes_counts_as_absent() -> Result<()> {
    let unknown = "node.gardener.cloud/NoSuchThing";
    let closed = Pool::under_gardeners_rule("reserved").await?;
    let rule = closed.rule().bootstrap_only().waits_for(unknown);
    closed.enforce(rule).await?;
    let own_taint = closed.own_taint();
    let node = closed.node().taint(&own_taint, NO_SCHEDULE);
    closed.join(node.condition(unknown, "True")).await?;

    // A default status for absence stays in force, whatever the node says.
    let open = Pool::under_gardeners_rule("reserved-default").await?;
    let absent = json!([{"type": unknown, "requiredStatus": "True", "defaultStatus": "True"}]);
    let rule = open.rule().spec("conditions", absent);
    open.enforce(rule).await?;
    let own_taint = open.own_taint();
    let node = open.node().taint(&own_taint, NO_SCHEDULE);
    open.join(node.condition(unknown, "False")).await?;
    open.gets_own_taint(false).await?;

    closed.opens().await?;
    never("the node opens", A_WHILE, async || {
        Ok(!closed.has_own_taint().await?)
    })
    .await?;
    let reported = condition(&closed, unknown).await?;
    assert_eq!(reported.reason.as_deref(), Some("SetByTest"));
    Ok(())
}

#[tokio::test]
async fn a_node_that_no_rule_with_such_a_condition_selects_gets_none() -> Result<()> {
    let pool = Pool::under_gardeners_rule("unselected").await?;
    // Gardener's rule selects Linux nodes only.
    pool.join(pool.node().label("kubernetes.io/os", "windows"))
        .await?;
    eventually("its kubelet reports", SOON, async || {
        Ok(state(&pool, "Ready").await?.is_some())
    })
    .await?;
    never("a condition appears", A_WHILE, async || {
        state(&pool, COMPONENTS_READY).await
    })
    .await?;
    assert!(pool.is_gated().await?, "not this rule's node");
    Ok(())
}
