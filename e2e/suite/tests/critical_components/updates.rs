//! An update of a critical `DaemonSet` under a rule that also adds its taint.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use nodegate_testbed::sights::{count_taints, is_ready};
use nodegate_testbed::{Witness, eventually, kwok};
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
