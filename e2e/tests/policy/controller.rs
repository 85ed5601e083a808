//! The policy restricts Nodegate's own service account to its own taints, annotations and conditions.

use anyhow::{Context, Result, ensure};
use nodegate_tests::gates::eventually_reported;
use nodegate_tests::reporter::CONDITION;
use nodegate_tests::rules::delete;
use serde_json::{Value, json};
use testkit::nodegate::changes::{set_node_condition, set_pod_ready};
use testkit::nodegate::fixtures::{CRITICAL, node, pod, rule};
use testkit::nodegate::state::{has_taint, node as read_node};
use testkit::nodegate::{Cluster, Controller, eventually_eq};

use crate::reporter::report;
use crate::{
    SOON, cluster, condition, crowd, in_force, is_refused, nodegate, patch_node, patch_status,
    removal,
};

const GARDENER: &str = "node.gardener.cloud/critical-components-not-ready";
const OTHER: &str = "example.com/other";
/// The taint that the API server adds to every new node.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

#[tokio::test]
async fn the_controller_does_its_work_under_the_policy() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    let pool = ("example.com/pool", "working");
    // The last one is the example's: its reporter removes it.
    let taints = [
        "readiness.k8s.io/continuous",
        "readiness.k8s.io/bootstrap",
        GARDENER,
        "readiness.k8s.io/NetworkReady",
    ];
    node("working")
        .label(pool.0, pool.1)
        .label("node-role.kubernetes.io/worker", "")
        .annotation("example.com/other", "kept")
        .taint(GARDENER, "NoSchedule")
        .create(&client)
        .await?;
    pod("kube-system/critical")
        .label(CRITICAL.0, CRITICAL.1)
        .on("working")
        .create(&client)
        .await?;
    let controller = Controller::start(cluster, &[]).await?;
    in_force_for_the_controller(cluster, "working").await?;
    let components = "node.gardener.cloud/CriticalComponentsReady";
    for rule in [
        rule("continuous", taints[0]).waits_for("example.com/Ready"),
        rule("bootstrap", taints[1])
            .waits_for("example.com/Ready")
            .bootstrap_only(),
        rule("gardener", GARDENER)
            .waits_for(components)
            .bootstrap_only()
            .nodegate("taintPolicy", json!("remove-only")),
    ] {
        let rule = rule.selects(pool.0, pool.1);
        rule.create(&client).await?;
    }
    let seen = async || {
        let mut seen = Vec::new();
        for taint in taints {
            seen.push(has_taint(&client, "working", taint).await?);
        }
        anyhow::Ok(seen)
    };
    eventually_eq("it is gated", SOON, vec![true; 4], seen).await?;
    eventually_reported(&client, "working", components, "False").await?;
    set_node_condition(&client, "working", "example.com/Ready", "True").await?;
    set_pod_ready(&client, "kube-system", "critical", true).await?;
    let endpoint = format!("tcp://{}", cluster.store());
    let reporter = report(cluster, &client, "working", &endpoint, CONDITION).await?;
    eventually_eq("it is released", SOON, vec![false; 4], seen).await?;
    set_node_condition(&client, "working", "example.com/Ready", "False").await?;
    eventually_eq(
        "it is gated again",
        SOON,
        vec![true, false, false, false],
        seen,
    )
    .await?;
    for name in [
        "continuous",
        "bootstrap",
        "gardener",
        "network-readiness-rule",
    ] {
        delete(&client, name).await?;
    }
    let left = vec!["example.com/other".to_owned()];
    eventually_eq("nothing of it is left", SOON, left, async || {
        let node = read_node(&client, "working").await?;
        let annotations = node.metadata.annotations.unwrap_or_default();
        // The controller manager adds one of its own.
        let keys = annotations.into_keys();
        Ok(keys.filter(|key| !key.starts_with("node.alpha.")).collect())
    })
    .await?;
    let log = controller.log() + &reporter.log();
    ensure!(!log.contains("ValidatingAdmissionPolicy"), "{log}");
    Ok(())
}

/// One of each prefix of the conditions that Nodegate publishes.
const CONDITIONS: [&str; 9] = [
    "node.gardener.cloud/CriticalComponentsReady",
    "daemonset.nodegate.dev/kube-system.cilium",
    "daemonsets.nodegate.dev/all",
    "check.nodegate.dev/gpu-checks.nccl",
    "csidriver.nodegate.dev/ebs.csi.aws.com",
    "label.nodegate.dev/example.com/ready",
    "resource.nodegate.dev/nvidia.com/gpu",
    "resourceslice.nodegate.dev/gpu.nvidia.com",
    "nodegate.dev/NotReadyInTime",
];

#[tokio::test]
async fn the_controllers_account_may_write_nothing_but_what_rules_are_about() -> Result<()> {
    let cluster = cluster().await?;
    let client = cluster.client().await?;
    node("guarded")
        .label("a", "b")
        .annotation("example.com/other", "kept")
        .taint("example.com/other", "NoSchedule")
        .taint(GARDENER, "NoSchedule")
        .condition("Ready", "True")
        .create(&client)
        .await?;
    crowd(&client, "guarded").await?;
    let nodegate = nodegate(cluster).await?;
    in_force_for_the_controller(cluster, "guarded").await?;
    for patch in [
        json!({"metadata": {"annotations": {"nodegate.dev/x": "y", "readiness.k8s.io/bootstrap-completed-r": "{}"}}}),
        json!({"metadata": {"annotations": {"nodegate.dev/x": null}}}),
        taints(&[OTHER, GARDENER, "readiness.k8s.io/network"]),
        taints(&[OTHER]),
    ] {
        patch_node(&nodegate, "guarded", &patch)
            .await
            .with_context(|| patch.to_string())?;
    }
    for (patch, words) in refused() {
        let refusal = patch_node(&nodegate, "guarded", &patch).await;
        is_refused(refusal, "Nodegate may not", words).with_context(|| patch.to_string())?;
    }
    for own in CONDITIONS {
        patch_status(&nodegate, "guarded", &condition(own, "False")).await?;
        patch_status(&nodegate, "guarded", &removal(own)).await?;
    }
    #[rustfmt::skip]
    let refused = [
        (condition("Ready", "False"), "may not write condition Ready; add its prefix to conditionPrefixes"),
        (condition("example.com/New", "True"), "may not write condition example.com/New"),
        (removal("Ready"), "may not write condition Ready"),
        (json!({"status": {"capacity": {"cpu": "8"}}}), "a Node's status but conditions"),
        (json!({"metadata": {"labels": {"a": "c"}}}), "labels or other metadata"),
    ];
    for (patch, words) in refused {
        let refusal = patch_status(&nodegate, "guarded", &patch).await;
        is_refused(refusal, "Nodegate may not", words).with_context(|| patch.to_string())?;
    }
    Ok(())
}

/// Patches of a node with only the taints [`OTHER`] and [`NOT_READY`], and words of the refusal.
#[rustfmt::skip]
fn refused() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"metadata": {"labels": {"a": "c"}}}), "labels or other metadata"),
        (json!({"metadata": {"labels": {"a": null}}}), "labels or other metadata"),
        (json!({"metadata": {"finalizers": ["example.com/x"]}}), "labels or other metadata"),
        (json!({"metadata": {"annotations": {"example.com/new": "x"}}}), "may not write the annotation example.com/new"),
        (json!({"metadata": {"annotations": {OTHER: "x"}}}), "may not write the annotation example.com/other"),
        (json!({"metadata": {"annotations": {OTHER: null}}}), "may not write the annotation example.com/other"),
        (json!({"spec": {"unschedulable": true}}), "a Node's spec but taints"),
        (json!({"spec": {"providerID": "x://y"}}), "a Node's spec but taints"),
        (taints(&[]), "may not remove example.com/other; add the key to removedTaints"),
        (taints(&[OTHER, "example.com/new"]), "may not put on example.com/new"),
        // Being liftable is not enough.
        (taints(&[OTHER, GARDENER]), "may not put on node.gardener.cloud/critical-components-not-ready"),
        (taints(&[OTHER, "node.kubernetes.io/out-of-service"]), "may not put on node.kubernetes.io/out-of-service"),
    ]
}

/// A patch that leaves a node with these taints and [`NOT_READY`].
fn taints(keys: &[&str]) -> Value {
    let keys = [NOT_READY].into_iter().chain(keys.iter().copied());
    let taints: Vec<Value> = keys
        .map(|key| json!({"key": key, "effect": "NoSchedule"}))
        .collect();
    json!({"spec": {"taints": taints}})
}

/// Like [`in_force`], for the controller's policy.
async fn in_force_for_the_controller(cluster: &Cluster, node: &str) -> Result<()> {
    let client = nodegate(cluster).await?;
    in_force(&client, node, &condition("example.com/Forbidden", "True")).await
}
