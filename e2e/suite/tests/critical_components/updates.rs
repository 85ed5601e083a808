//! Updates of critical `DaemonSet`s under a rule that also adds its taint.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use nodegate_testbed::sights::{count_taints, events_on, has_taint, is_ready};
use nodegate_testbed::{Witness, eventually, eventually_eq, kwok};
use serde_json::json;

use crate::pool::{NAMESPACE, Pool};
use crate::{COMPONENTS_READY, SOON};

/// How long the pods of the new version take to become Ready.
const WARM_UP: Duration = Duration::from_millis(1500);

/// Makes the `DaemonSet` controller replace every pod by one that takes longer.
async fn update(pool: &Pool, daemon_set: &str) -> Result<()> {
    let delay = format!("{}ms", WARM_UP.as_millis());
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {
        (kwok::READY_AFTER): delay,
    }}}}});
    Api::<DaemonSet>::namespaced(pool.client.clone(), NAMESPACE)
        .patch(
            &pool.daemon_set_name(daemon_set),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await?;
    Ok(())
}

/// How many events with this reason a node has about the pool's own rule.
async fn events(pool: &Pool, node: &str, reason: &str) -> Result<usize> {
    let own = pool.own_taint();
    let is_it = |event: &&Event| {
        event.reason.as_deref() == Some(reason)
            && event
                .message
                .as_ref()
                .is_some_and(|text| text.contains(&own))
    };
    Ok(events_on(&pool.client, node)
        .await?
        .iter()
        .filter(is_it)
        .count())
}

#[tokio::test]
async fn a_surge_update_closes_no_node() -> Result<()> {
    let pool = Pool::under_gardeners_rule("surge").await?;
    pool.enforce(pool.rule().waits_for(COMPONENTS_READY))
        .await?;
    let mut daemon_set = pool.daemon_set("cni").build();
    daemon_set.spec.as_mut().context("no spec")?.update_strategy = serde_json::from_value(json!({
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }))?;
    Api::namespaced(pool.client.clone(), NAMESPACE)
        .create(&PostParams::default(), &daemon_set)
        .await?;
    pool.join(pool.node()).await?;
    pool.opens().await?;
    let first = pool.pod_of("cni").await?;
    pool.gets_own_taint(false).await?;

    let witness = Witness::of_nodes(&pool.client).await?;
    update(&pool, "cni").await?;
    let mut most = 0;
    eventually("the update ends", SOON, async || {
        let pods = pool.pods_of("cni").await?;
        most = most.max(pods.len());
        let is_new = |pod: &Pod| pod.metadata.name.as_ref() != Some(&first);
        Ok(matches!(&*pods, [pod] if is_new(pod) && is_ready(pod)))
    })
    .await?;
    assert_eq!(most, 2, "old and new pod were to be there at once");
    let states = witness.up_to(&pool.client, pool.name).await?;
    let is_closed = |node: &&Node| count_taints(node, &pool.own_taint()) > 0;
    let closed = states.get(pool.name).into_iter().flatten().find(is_closed);
    assert!(closed.is_none(), "the node was closed: {closed:?}");
    Ok(())
}

#[tokio::test]
async fn a_rolling_update_closes_and_reopens_each_node() -> Result<()> {
    let pool = Pool::under_gardeners_rule("rolling").await?;
    pool.enforce(pool.rule().waits_for(COMPONENTS_READY))
        .await?;
    pool.daemon_set("cni").create(&pool.client).await?;
    let nodes = ["rolling-1", "rolling-2", "rolling-3"];
    for node in nodes {
        let node = pool.further_node(node).managed_by_kwok();
        pool.join(node).await?;
    }
    let taint = pool.own_taint();
    let open = async || {
        let mut open = 0;
        for node in nodes {
            let closed = has_taint(&pool.client, node, &taint).await?;
            open += usize::from(!closed && events(&pool, node, "TaintRemoved").await? > 0);
        }
        Ok(open)
    };
    eventually_eq("open nodes", SOON, nodes.len(), open).await?;
    let count = async |reason: &str| {
        let mut counts = Vec::new();
        for node in nodes {
            counts.push(events(&pool, node, reason).await?);
        }
        anyhow::Ok(counts)
    };
    let one_more = |counts: Vec<usize>| counts.into_iter().map(|n| n + 1).collect::<Vec<_>>();
    let (added, removed) = (count("TaintAdded").await?, count("TaintRemoved").await?);

    update(&pool, "cni").await?;
    eventually_eq("nodes reopened", SOON, one_more(removed), async || {
        count("TaintRemoved").await
    })
    .await?;
    assert_eq!(count("TaintAdded").await?, one_more(added));
    assert_eq!(open().await?, nodes.len());
    Ok(())
}
