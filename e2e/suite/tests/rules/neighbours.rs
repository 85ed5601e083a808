//! Others' taints and annotations, and rules that only remove taints.

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use nodegate_testbed::changes::{patch_node, set_node_condition};
use nodegate_testbed::{eventually, never, sights};
use serde_json::json;

use super::history::{History, has_taint_of};
use super::rule::{self, bootstrap, completion, continuous};
use super::{
    A_WHILE, READY, SOON, annotation, client, eventually_gated, eventually_open, key, node,
    stays_gated, stays_open,
};

#[tokio::test]
async fn taints_and_annotations_of_others_are_never_touched() -> Result<()> {
    let client = client().await?;
    let created = node("others", "others")
        .taint("example.com/first", "NoSchedule")
        .taint(&key("others"), "NoExecute")
        .taint("example.com/last", "PreferNoSchedule")
        .annotation("example.com/mine", "kept")
        .annotation("readiness.k8s.io/not-a-rules", "kept")
        .create(&client)
        .await?;
    let history = History::since(&client, created).await?;
    continuous("others").create(&client).await?;
    let is_gated = async |node: &str| {
        let taints = sights::taints(&client, node).await?;
        anyhow::Ok(
            taints
                .iter()
                .any(|taint| taint.key == key("others") && taint.effect == "NoSchedule"),
        )
    };
    for round in ["first", "second"] {
        let what = format!("gated the {round} time");
        set_node_condition(&client, "others", READY, "False").await?;
        eventually(&what, SOON, async || is_gated("others").await).await?;
        set_node_condition(&client, "others", READY, "True").await?;
        eventually("open", SOON, async || Ok(!is_gated("others").await?)).await?;
    }
    rule::delete(&client, "others").await?;

    let states = history.states().await?;
    let others_of = |node: &Node| {
        let mut taints = node
            .spec
            .clone()
            .unwrap_or_default()
            .taints
            .unwrap_or_default();
        taints.retain(|taint| taint.key != key("others") || taint.effect != "NoSchedule");
        let mut annotations = node.annotations().clone();
        annotations.retain(|key, _| !key.starts_with("nodegate.dev/"));
        (taints, annotations)
    };
    for state in &states {
        assert_eq!(others_of(state), others_of(&states[0]));
    }
    // At least: the taint twice on and twice off, and the conditions in between.
    assert!(states.len() > 8, "{} states", states.len());
    Ok(())
}

#[tokio::test]
async fn a_taint_with_another_value_is_left_as_it_is_until_it_is_lifted() -> Result<()> {
    let client = client().await?;
    node("value", "value").create(&client).await?;
    let taint = json!({"key": key("value"), "value": "theirs", "effect": "NoSchedule"});
    patch_node(&client, "value", &json!({"spec": {"taints": [taint]}})).await?;
    let before = sights::taints(&client, "value").await?;
    let rule = continuous("value").with(&json!({"taint": {"value": "ours"}}));
    rule.create(&client).await?;
    rule::eventually_counts(&client, "value", [1, 1, 0]).await?;
    never("the taint is touched", A_WHILE, async || {
        Ok(sights::taints(&client, "value").await? != before)
    })
    .await?;
    set_node_condition(&client, "value", READY, "True").await?;
    eventually_open(&client, "value", "value").await
}

#[tokio::test]
async fn a_remove_only_rule_lifts_other_projects_startup_taints_and_adds_none() -> Result<()> {
    let client = client().await?;
    for (name, taint) in [
        ("lifts-cilium", "node.cilium.io/agent-not-ready"),
        ("lifts-ebs", "ebs.csi.aws.com/agent-not-ready"),
        (
            "lifts-autoscaler",
            "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
        ),
        ("lifts-bare", "starting"),
    ] {
        continuous(name)
            .with(&json!({"taintPolicy": "remove-only", "taint": {"key": taint}}))
            .create(&client)
            .await?;
        node(name, name)
            .taint(taint, "NoSchedule")
            .create(&client)
            .await?;
        rule::eventually_counts(&client, name, [1, 1, 0]).await?;
        set_node_condition(&client, name, READY, "True").await?;
        eventually(&format!("{taint} is lifted"), SOON, async || {
            Ok(!sights::has_taint(&client, name, taint).await?)
        })
        .await?;
        set_node_condition(&client, name, READY, "False").await?;
        never(&format!("{taint} is put on"), A_WHILE / 2, async || {
            sights::has_taint(&client, name, taint).await
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_remove_only_bootstrap_rule_has_on_record_what_it_lifted() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("lifts-once")
        .with(&json!({"taintPolicy": "remove-only"}))
        .create(&client)
        .await?;
    let tainted = |name| node("lifts-once", name).taint(&key("lifts-once"), "NoSchedule");
    tainted("lifts-once").create(&client).await?;
    let without = node("lifts-once", "lifts-once-without").condition(READY, "True");
    without.create(&client).await?;
    stays_gated(&client, "lifts-once", "lifts-once").await?;
    set_node_condition(&client, "lifts-once", READY, "True").await?;
    eventually_open(&client, "lifts-once", "lifts-once").await?;
    let key = completion(&rule);
    assert!(annotation(&client, "lifts-once", &key).await?.is_some());
    assert_eq!(annotation(&client, "lifts-once-without", &key).await?, None);
    set_node_condition(&client, "lifts-once", READY, "False").await?;
    stays_open(&client, "lifts-once", "lifts-once").await
}

#[tokio::test]
async fn several_rules_work_on_one_node_without_regard_to_each_other() -> Result<()> {
    let cluster = super::cluster().await?;
    let client = cluster.client().await?;
    let kinds = ["Network", "Storage", "Gpu"];
    let name_of = |kind: &str| format!("together-{}", kind.to_lowercase());
    for kind in kinds {
        let rule = continuous(&name_of(kind)).with(&json!({
            "conditions": [{"type": kind, "requiredStatus": "True"}],
            "nodeSelector": {"matchLabels": {"test": "together"}},
        }));
        rule.create(&client).await?;
        rule::eventually_observed(&client, &name_of(kind)).await?;
    }
    let created = node("together", "together").create(&client).await?;
    let history = History::since(&client, created).await?;
    for kind in kinds {
        eventually_gated(&client, "together", &name_of(kind)).await?;
    }
    for state in history.states().await? {
        let gated = kinds.map(|kind| has_taint_of(&state, &name_of(kind)));
        assert!(
            gated.iter().all(|is_gated| *is_gated == gated[0]),
            "more than one write"
        );
    }
    set_node_condition(&client, "together", "Storage", "True").await?;
    eventually_open(&client, "together", "together-storage").await?;
    stays_gated(&client, "together", "together-network").await?;
    stays_gated(&client, "together", "together-gpu").await?;
    rule::delete(&client, "together-gpu").await?;
    eventually_open(&client, "together", "together-gpu").await?;
    stays_gated(&client, "together", "together-network").await
}
