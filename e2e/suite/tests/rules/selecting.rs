//! Which nodes a rule selects, and nodes that change, leave and return.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use nodegate_testbed::changes::{delete_node, patch_node, set_node_condition};
use nodegate_testbed::{eventually, eventually_eq, fixtures, sights};
use serde_json::{Value, json};

use super::history::has_taint_of;
use super::rule::{self, bootstrap, completion, continuous, ownership};
use super::{
    READY, SOON, TEST, annotation, client, eventually_gated, eventually_open, key, node,
    stays_gated, stays_open,
};

#[tokio::test]
async fn every_operator_selects_the_nodes_it_says() -> Result<()> {
    let client = client().await?;
    for (name, pool) in [
        ("selectors-gpu", Some("gpu")),
        ("selectors-cpu", Some("cpu")),
        ("selectors-none", None),
    ] {
        let node = node("selectors", name);
        let node = pool.map_or(node.clone(), |pool| node.label("pool", pool));
        node.create(&client).await?;
    }
    fixtures::node("selectors-other")
        .label("pool", "gpu")
        .create(&client)
        .await?;
    let cases: [(&str, Value, &[&str]); 6] = [
        (
            "in",
            json!({"operator": "In", "values": ["gpu", "tpu"]}),
            &["gpu"],
        ),
        (
            "not-in",
            json!({"operator": "NotIn", "values": ["gpu"]}),
            &["cpu", "none"],
        ),
        ("exists", json!({"operator": "Exists"}), &["cpu", "gpu"]),
        ("absent", json!({"operator": "DoesNotExist"}), &["none"]),
        (
            "in-both",
            json!({"operator": "In", "values": ["gpu", "cpu"]}),
            &["cpu", "gpu"],
        ),
        (
            "in-neither",
            json!({"operator": "In", "values": ["tpu"]}),
            &[],
        ),
    ];
    for (name, requirement, _) in &cases {
        let mut requirement = requirement.clone();
        requirement["key"] = json!("pool");
        continuous(&format!("selectors-{name}"))
            .with(&json!({"nodeSelector": {
                "matchLabels": {TEST: "selectors"},
                "matchExpressions": [requirement],
            }}))
            .create(&client)
            .await?;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    for (name, _, expected) in cases {
        let rule = format!("selectors-{name}");
        let expected: BTreeSet<String> = expected
            .iter()
            .map(|node| format!("selectors-{node}"))
            .collect();
        rule::eventually_counts(
            &client,
            &rule,
            [expected.len() as u64, expected.len() as u64, 0],
        )
        .await?;
        eventually_eq(&rule, SOON, expected, async || {
            let all = nodes.list(&ListParams::default()).await?;
            let gated = all.iter().filter(|node| has_taint_of(node, &rule));
            Ok(gated.map(ResourceExt::name_any).collect())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_node_that_leaves_a_rule_loses_the_taint_that_it_registered_with() -> Result<()> {
    let client = client().await?;
    let rule = continuous("registered").create(&client).await?;
    rule::eventually_observed(&client, "registered").await?;
    node("registered", "registered")
        .taint(&key("registered"), "NoSchedule")
        .create(&client)
        .await?;
    eventually("the taint is owned", SOON, async || {
        annotation(&client, "registered", &ownership(&rule)).await
    })
    .await?;
    patch_node(
        &client,
        "registered",
        &json!({"metadata": {"labels": {TEST: null}}}),
    )
    .await?;
    eventually_open(&client, "registered", "registered").await?;
    assert_eq!(
        annotation(&client, "registered", &ownership(&rule)).await?,
        None
    );
    Ok(())
}

#[tokio::test]
async fn a_node_that_leaves_a_rule_loses_its_taint_and_one_that_joins_gets_it() -> Result<()> {
    let client = client().await?;
    let rule = continuous("leaves").create(&client).await?;
    node("leaves", "leaves").create(&client).await?;
    eventually_gated(&client, "leaves", "leaves").await?;
    patch_node(
        &client,
        "leaves",
        &json!({"metadata": {"labels": {TEST: null}}}),
    )
    .await?;
    eventually_open(&client, "leaves", "leaves").await?;
    assert_eq!(
        annotation(&client, "leaves", &ownership(&rule)).await?,
        None
    );
    rule::eventually_counts(&client, "leaves", [0, 0, 0]).await?;
    patch_node(
        &client,
        "leaves",
        &json!({"metadata": {"labels": {TEST: "leaves"}}}),
    )
    .await?;
    eventually_gated(&client, "leaves", "leaves").await
}

#[tokio::test]
async fn a_node_that_leaves_a_remove_only_rule_keeps_its_taint() -> Result<()> {
    let client = client().await?;
    let remove_only = json!({"taintPolicy": "remove-only"});
    continuous("keeps")
        .with(&remove_only)
        .create(&client)
        .await?;
    node("keeps", "keeps")
        .taint(&key("keeps"), "NoSchedule")
        .create(&client)
        .await?;
    rule::eventually_counts(&client, "keeps", [1, 1, 0]).await?;
    patch_node(
        &client,
        "keeps",
        &json!({"metadata": {"labels": {TEST: null}}}),
    )
    .await?;
    rule::eventually_counts(&client, "keeps", [0, 0, 0]).await?;
    stays_gated(&client, "keeps", "keeps").await
}

#[tokio::test]
async fn a_node_created_again_under_its_name_is_gated_again() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("again").create(&client).await?;
    let first = node("again", "again").create(&client).await?;
    eventually_gated(&client, "again", "again").await?;
    set_node_condition(&client, "again", READY, "True").await?;
    eventually_open(&client, "again", "again").await?;

    delete_node(&client, "again").await?;
    let second = node("again", "again").create(&client).await?;
    assert_ne!(first.uid(), second.uid());
    eventually_gated(&client, "again", "again").await?;
    assert_eq!(
        annotation(&client, "again", &completion(&rule)).await?,
        None
    );
    rule::eventually_counts(&client, "again", [1, 1, 0]).await?;
    delete_node(&client, "again").await?;
    rule::eventually_counts(&client, "again", [0, 0, 0]).await
}

#[tokio::test]
async fn a_node_that_is_being_deleted_is_left_alone() -> Result<()> {
    let client = client().await?;
    bootstrap("going").create(&client).await?;
    let finalizers = |value: Value| json!({"metadata": {"finalizers": value}});
    for name in ["going-open", "going-gated"] {
        node("going", name).create(&client).await?;
        patch_node(&client, name, &finalizers(json!(["example.com/instance"]))).await?;
        eventually_gated(&client, name, "going").await?;
    }
    set_node_condition(&client, "going-open", READY, "True").await?;
    eventually_open(&client, "going-open", "going").await?;
    for name in ["going-open", "going-gated"] {
        delete_node(&client, name).await?;
    }
    // Each would change if it were not being deleted.
    patch_node(
        &client,
        "going-open",
        &json!({"metadata": {"annotations": null}}),
    )
    .await?;
    set_node_condition(&client, "going-open", READY, "False").await?;
    set_node_condition(&client, "going-gated", READY, "True").await?;
    let before = sights::node(&client, "going-open").await?;
    stays_open(&client, "going-open", "going").await?;
    stays_gated(&client, "going-gated", "going").await?;
    let after = sights::node(&client, "going-open").await?;
    assert_eq!(before.resource_version(), after.resource_version());

    // Nor does it block its rule's deletion.
    rule::delete(&client, "going").await?;
    for name in ["going-open", "going-gated"] {
        patch_node(&client, name, &finalizers(Value::Null)).await?;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    eventually("the nodes go", SOON, async || {
        Ok(nodes.get_opt("going-gated").await?.is_none())
    })
    .await
}
