//! What a deleted rule leaves behind.

use anyhow::Result;
use kube::ResourceExt;
use nodegate_testbed::changes::set_node_condition;
use nodegate_testbed::sights;
use serde_json::json;

use super::rule::{self, bootstrap, completion, completion_by, continuous, ownership};
use super::{READY, annotation, client, eventually_gated, eventually_open, is_gated, key, node};

#[tokio::test]
async fn nothing_is_left_of_a_deleted_rule() -> Result<()> {
    let client = client().await?;
    let rule = bootstrap("deleted").create(&client).await?;
    rule::eventually_observed(&client, "deleted").await?;
    node("deleted", "deleted-gated").create(&client).await?;
    node("deleted", "deleted-open").create(&client).await?;
    let adopted = node("deleted", "deleted-adopted").taint(&key("deleted"), "NoSchedule");
    adopted.create(&client).await?;
    let old = node("deleted", "deleted-old").annotation(&completion_by("deleted"), "true");
    old.annotation("example.com/other", "kept")
        .create(&client)
        .await?;
    eventually_gated(&client, "deleted-gated", "deleted").await?;
    eventually_gated(&client, "deleted-open", "deleted").await?;
    set_node_condition(&client, "deleted-open", READY, "True").await?;
    eventually_open(&client, "deleted-open", "deleted").await?;

    rule::delete(&client, "deleted").await?;
    // The rule goes last, so no further wait is needed.
    for name in [
        "deleted-gated",
        "deleted-open",
        "deleted-adopted",
        "deleted-old",
    ] {
        assert!(
            !is_gated(&client, name, "deleted").await?,
            "{name} is gated"
        );
        for key in [
            completion(&rule),
            completion_by("deleted"),
            ownership(&rule),
        ] {
            assert_eq!(annotation(&client, name, &key).await?, None, "{name}");
        }
    }
    let other = annotation(&client, "deleted-old", "example.com/other").await?;
    assert_eq!(other.as_deref(), Some("kept"));
    Ok(())
}

#[tokio::test]
async fn a_deleted_rule_that_did_nothing_leaves_the_taint() -> Result<()> {
    let client = client().await?;
    continuous("idle").create(&client).await?;
    let conflicted = continuous("idle-conflicted").beside("idle");
    conflicted.create(&client).await?;
    node("idle", "idle").create(&client).await?;
    eventually_gated(&client, "idle", "idle").await?;
    rule::eventually_says(&client, "idle-conflicted", "Conflicted", "True").await?;

    for (name, spec) in [
        ("idle-dry", json!({"dryRun": true})),
        ("idle-remove-only", json!({"taintPolicy": "remove-only"})),
    ] {
        continuous(name).with(&spec).create(&client).await?;
        let tainted = node(name, name).taint(&key(name), "NoSchedule");
        tainted.create(&client).await?;
        rule::eventually_counts(&client, name, [1, 1, 0]).await?;
    }
    for (node, rule, taint) in [
        ("idle", "idle-conflicted", "idle"),
        ("idle-dry", "idle-dry", "idle-dry"),
        ("idle-remove-only", "idle-remove-only", "idle-remove-only"),
    ] {
        let before = sights::node(&client, node).await?;
        rule::delete(&client, rule).await?;
        let after = sights::node(&client, node).await?;
        assert!(is_gated(&client, node, taint).await?, "{node}");
        assert_eq!(
            before.resource_version(),
            after.resource_version(),
            "{node}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_taint_that_a_deleted_rule_added_goes_whatever_the_rule_has_become() -> Result<()> {
    let client = client().await?;
    for (name, spec) in [
        ("turned-dry", json!({"dryRun": true})),
        ("turned-remove-only", json!({"taintPolicy": "remove-only"})),
    ] {
        let rule = continuous(name).create(&client).await?;
        node(name, name).create(&client).await?;
        eventually_gated(&client, name, name).await?;
        rule::change(&client, name, spec).await?;
        rule::eventually_observed(&client, name).await?;
        assert!(is_gated(&client, name, name).await?, "{name}");
        rule::delete(&client, name).await?;
        assert!(!is_gated(&client, name, name).await?, "{name}");
        assert_eq!(annotation(&client, name, &ownership(&rule)).await?, None);
    }
    Ok(())
}

#[tokio::test]
async fn a_rule_is_deleted_even_when_no_node_was_ever_there() -> Result<()> {
    let client = client().await?;
    continuous("empty").create(&client).await?;
    rule::eventually_counts(&client, "empty", [0, 0, 0]).await?;
    rule::delete(&client, "empty").await
}

#[tokio::test]
async fn another_finalizer_on_a_deleted_rule_is_respected() -> Result<()> {
    let client = client().await?;
    continuous("shared").create(&client).await?;
    node("shared", "shared").create(&client).await?;
    eventually_gated(&client, "shared", "shared").await?;
    let finalizers = |value| {
        let patch = json!({"metadata": {"finalizers": value}});
        kube::api::Patch::Merge(patch)
    };
    let rules = rule::rules(&client);
    let both = finalizers(json!(["example.com/audit", rule::FINALIZER]));
    rules
        .patch("shared", &kube::api::PatchParams::default(), &both)
        .await?;
    rule::start_deletion(&client, "shared").await?;
    eventually_open(&client, "shared", "shared").await?;
    nodegate_testbed::eventually_eq(
        "only the other finalizer is left",
        super::SOON,
        vec!["example.com/audit".to_owned()],
        async || Ok(rules.get("shared").await?.finalizers().to_vec()),
    )
    .await?;
    // A rule that is being deleted governs nothing.
    set_node_condition(&client, "shared", READY, "False").await?;
    super::stays_open(&client, "shared", "shared").await?;
    let none = finalizers(json!(null));
    rules
        .patch("shared", &kube::api::PatchParams::default(), &none)
        .await?;
    rule::eventually_gone(&client, "shared").await
}
