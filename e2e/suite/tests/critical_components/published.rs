//! The conditions that `kubectl describe node` shows.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::NodeCondition;
use nodegate_testbed::changes::delete_rule;
use nodegate_testbed::eventually_eq;
use nodegate_testbed::sights::node_condition;

use crate::pool::{NAMESPACE, Pool};
use crate::{COMPONENTS_READY, GATE, NO_SCHEDULE, SOON};

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
