//! The events that dashboards and alerts written for Gardener look for.

use anyhow::Result;
use k8s_openapi::api::core::v1::Event;
use nodegate_testbed::eventually;
use nodegate_testbed::fixtures::set_csi_drivers;
use nodegate_testbed::sights::events_on;

use crate::pool::{NAMESPACE, Pool};
use crate::{GATE, NO_SCHEDULE, SOON};

/// Waits for an event about the pool's node.
async fn event(pool: &Pool, reason: &str) -> Result<Event> {
    eventually(&format!("event {reason}"), SOON, async || {
        let events = events_on(&pool.client, pool.name).await?;
        let is_it = |event: &Event| event.reason.as_deref() == Some(reason);
        Ok(events.into_iter().find(is_it))
    })
    .await
}

#[tokio::test]
async fn each_question_of_gardeners_has_its_event() -> Result<()> {
    let pool = Pool::under_gardeners_rule("told").await?;
    pool.intolerant_daemon_set("csi")
        .tolerate(GATE, NO_SCHEDULE)
        .never_ready()
        .wait_for_csi_driver("x", "x.csi.example.com")
        .create(&pool.client)
        .await?;
    let node = pool.join(pool.node()).await?;
    let unscheduled = event(&pool, "UnscheduledNodeCriticalDaemonSets").await?;
    pool.lift_not_ready().await?;
    let unready = event(&pool, "UnreadyNodeCriticalPods").await?;
    let pod = pool.pod_of("csi").await?;
    pool.set_ready("csi", true).await?;
    let unregistered = event(&pool, "UnreadyRequiredCSIDrivers").await?;
    set_csi_drivers(&pool.client, &node, &["x.csi.example.com"]).await?;
    let ready = event(&pool, "NodeCriticalComponentsReady").await?;

    for (event, event_type, message) in [
        (
            unscheduled,
            "Warning",
            "DaemonSet kube-system/told-csi has no pod on this node".to_owned(),
        ),
        (
            unready,
            "Warning",
            format!("pod {NAMESPACE}/{pod} is not Ready"),
        ),
        (
            unregistered,
            "Warning",
            "CSI driver x.csi.example.com is not registered on this node".to_owned(),
        ),
        (
            ready,
            "Normal",
            "every critical component is ready on this node".to_owned(),
        ),
    ] {
        assert_eq!(event.type_.as_deref(), Some(event_type), "{event:?}");
        assert_eq!(event.message, Some(message));
        let reporter = event.reporting_component.as_deref();
        assert_eq!(reporter, Some("node-readiness-controller"));
        assert_eq!(event.involved_object.uid, node.metadata.uid);
    }
    assert!(!pool.is_gated().await?, "the event came before the change");
    let events = events_on(&pool.client, pool.name).await?;
    assert_eq!(events.len(), 4, "one story is told once: {events:?}");
    Ok(())
}

#[tokio::test]
async fn what_keeps_a_node_closed_is_not_repeated() -> Result<()> {
    let pool = Pool::under_gardeners_rule("told-once").await?;
    for name in ["a", "b", "c"] {
        pool.pod(name).never_ready().create(&pool.client).await?;
    }
    pool.join(pool.node()).await?;
    for name in ["a", "b"] {
        event(&pool, "UnreadyNodeCriticalPods").await?;
        pool.set_pod_ready(name, true).await?;
        pool.stays_closed().await?;
    }
    pool.set_pod_ready("c", true).await?;
    event(&pool, "NodeCriticalComponentsReady").await?;
    let events = events_on(&pool.client, pool.name).await?;
    let count = |reason: &str| {
        let is_it = |event: &&Event| event.reason.as_deref() == Some(reason);
        events.iter().filter(is_it).count()
    };
    assert_eq!(count("UnreadyNodeCriticalPods"), 1);
    assert_eq!(count("NodeCriticalComponentsReady"), 1);
    Ok(())
}
