//! Which `DaemonSet`s match a node, as the `DaemonSet` controller says.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use kube::api::PostParams;
use nodegate_testbed::fixtures::DaemonSetBuilder;
use serde_json::{Value, json};

use crate::pool::{NAMESPACE, Pool};
use crate::{GATE, NO_SCHEDULE};

async fn create_with_affinity(
    pool: &Pool,
    daemon_set: DaemonSetBuilder,
    terms: Value,
) -> Result<DaemonSet> {
    let mut daemon_set = daemon_set.build();
    let spec = daemon_set.spec.as_mut().context("no spec")?;
    let pod = spec.template.spec.as_mut().context("no pod spec")?;
    pod.affinity = serde_json::from_value(json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
    }}))?;
    Ok(Api::namespaced(pool.client.clone(), NAMESPACE)
        .create(&PostParams::default(), &daemon_set)
        .await?)
}

#[tokio::test]
async fn a_daemon_set_whose_affinity_fits_is_waited_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("affinity").await?;
    create_with_affinity(
        &pool,
        // Its pod cannot start before the node is ready.
        pool.intolerant_daemon_set("cni")
            .tolerate(GATE, NO_SCHEDULE),
        json!([
            {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
             "matchFields": [{"key": "metadata.name", "operator": "In", "values": [pool.name]}]},
        ]),
    )
    .await?;
    pool.join(pool.node().label("zone", "a")).await?;
    pool.is_held_for_want_of("cni").await?;
    pool.lift_not_ready().await?;
    pool.opens().await?;
    assert_eq!(pool.pods_of("cni").await?.len(), 1);
    Ok(())
}
