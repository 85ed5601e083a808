//! Which `DaemonSet`s match a node. None of those here ever gets a Ready pod, so a node that opens has not waited.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use kube::api::PostParams;
use nodegate_testbed::changes::{patch_node, set_node_condition};
use nodegate_testbed::fixtures::{self, DaemonSetBuilder};
use serde_json::{Value, json};

use crate::pool::{NAMESPACE, POOL, Pool};
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
async fn a_daemon_set_for_other_nodes_is_not_waited_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("others").await?;
    pool.daemon_set("selects-another-label")
        .node_selector("kubernetes.io/arch", "arm64")
        .create(&pool.client)
        .await?;
    create_with_affinity(
        &pool,
        pool.daemon_set("wants-another-zone"),
        json!([{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b", "c"]}
        ]}]),
    )
    .await?;
    create_with_affinity(
        &pool,
        pool.daemon_set("wants-a-label"),
        json!([{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]),
    )
    .await?;
    create_with_affinity(
        &pool,
        pool.daemon_set("wants-another-name"),
        json!([{"matchFields": [
            {"key": "metadata.name", "operator": "NotIn", "values": [pool.name]}
        ]}]),
    )
    .await?;
    pool.join(pool.node().label("topology.kubernetes.io/zone", "a"))
        .await?;
    pool.opens().await?;
    Ok(())
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

#[tokio::test]
async fn a_node_that_comes_to_be_meant_waits_and_one_that_ceases_to_be_does_not() -> Result<()> {
    let pool = Pool::under_gardeners_rule("relabelled").await?;
    let label = "relabelled-gpu";
    pool.pod("holder")
        .never_ready()
        .create(&pool.client)
        .await?;
    pool.intolerant_daemon_set("gpu")
        .tolerate(GATE, NO_SCHEDULE)
        .node_selector(label, "true")
        .create(&pool.client)
        .await?;
    pool.join(pool.node()).await?;
    pool.is_held_because("pod kube-system/relabelled-holder is not Ready")
        .await?;
    patch_node(
        &pool.client,
        pool.name,
        &json!({"metadata": {"labels": {label: "true"}}}),
    )
    .await?;
    pool.is_held_for_want_of("gpu").await?;
    pool.set_pod_ready("holder", true).await?;
    pool.stays_closed().await?;
    patch_node(
        &pool.client,
        pool.name,
        &json!({"metadata": {"labels": {label: null}}}),
    )
    .await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_that_a_foreign_taint_shuts_out_is_not_waited_for() -> Result<()> {
    let pool = Pool::under_gardeners_rule("dedicated").await?;
    pool.intolerant_daemon_set("cni")
        .tolerate(GATE, NO_SCHEDULE)
        .create(&pool.client)
        .await?;
    pool.join(pool.node().taint("example.com/dedicated", NO_SCHEDULE))
        .await?;
    pool.opens().await?;
    Ok(())
}

#[tokio::test]
async fn a_foreign_taint_that_only_discourages_shuts_nothing_out() -> Result<()> {
    let pool = Pool::under_gardeners_rule("discouraged").await?;
    pool.intolerant_daemon_set("cni")
        .tolerate(GATE, NO_SCHEDULE)
        .create(&pool.client)
        .await?;
    pool.join(
        pool.node()
            .taint("example.com/dedicated", "PreferNoSchedule"),
    )
    .await?;
    pool.is_held_for_want_of("cni").await?;
    pool.lift_not_ready().await?;
    pool.opens().await?;
    Ok(())
}

/// Taints that go by themselves do not decide where a `DaemonSet` runs.
#[tokio::test]
async fn taints_that_will_go_shut_nothing_out() -> Result<()> {
    let pool = Pool::under_gardeners_rule("passing").await?;
    pool.intolerant_daemon_set("cni")
        .tolerate(GATE, NO_SCHEDULE)
        .create(&pool.client)
        .await?;
    for (node, taint) in [
        (
            "passing-cloud",
            "node.cloudprovider.kubernetes.io/uninitialized",
        ),
        ("passing-network", "node.kubernetes.io/network-unavailable"),
        ("passing-karpenter", "karpenter.sh/unregistered"),
        ("passing-cilium", "node.cilium.io/agent-not-ready"),
        ("passing-ebs", "ebs.csi.aws.com/agent-not-ready"),
        ("passing-efs", "efs.csi.aws.com/agent-not-ready"),
    ] {
        pool.join(
            pool.further_node(node)
                .taint(taint, "NoExecute")
                .taint(taint, NO_SCHEDULE),
        )
        .await?;
        let one = Pool::on(pool.cluster, node).await?;
        let why = "DaemonSet kube-system/passing-cni has no pod on this node";
        one.is_held_because(why)
            .await
            .with_context(|| format!("under taint {taint}"))?;
    }
    Ok(())
}

/// What one rule waits for cannot depend on the current presence of another rule's taint.
#[tokio::test]
async fn the_taint_of_another_rule_shuts_nothing_out() -> Result<()> {
    let pool = Pool::under_gardeners_rule("two-rules").await?;
    let condition = "example.com/KernelTuned";
    pool.enforce(pool.rule().waits_for(condition)).await?;
    fixtures::daemon_set(&format!("{NAMESPACE}/two-rules-cni"))
        .critical()
        .node_selector(POOL, pool.name)
        .tolerate(GATE, NO_SCHEDULE)
        .create(&pool.client)
        .await?;
    pool.join(pool.node().taint(&pool.own_taint(), NO_SCHEDULE))
        .await?;
    pool.lift_not_ready().await?;
    pool.is_held_for_want_of("cni").await?;
    set_node_condition(&pool.client, pool.name, condition, "True").await?;
    pool.opens().await?;
    assert_eq!(pool.pods_of("cni").await?.len(), 1);
    Ok(())
}
