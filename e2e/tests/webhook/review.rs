//! What the webhook refuses and warns about, and what continues without it.

use anyhow::Result;
use nodegate_tests::rules::key;
use nodegate_tests::{SOON, fixture, has_words, refused};
use serde_json::json;
use testkit::nodegate::fixtures::{daemon_set, node};
use testkit::nodegate::{eventually, ports};

use super::{create, install, own_cluster, reviewed, rule, start, until_reviewed};

#[tokio::test]
async fn rules_that_conflict_are_turned_down_as_long_as_both_are_in_force() -> Result<()> {
    let cluster = &reviewed().await?.cluster;
    create(cluster, rule("first", "conflict", "a")).await?;

    let new = rule("second", "conflict", "a");
    let error = refused(create(cluster, new.clone()).await)?;
    has_words(&error, "(Forbidden): error when creating")?;
    has_words(
        &error,
        "admission webhook \"vnodereadinessrule.readiness.node.x-k8s.io\" denied the request: validation failed: [spec.taint.key: Invalid value: \"readiness.k8s.io/conflict\": conflicts with existing rule 'first' - same taint key 'readiness.k8s.io/conflict' and effect 'NoSchedule' with overlapping node selectors; to rename or replace a rule, see docs/gitops.md#rename-a-rule]",
    )?;
    // A deleted rule does not conflict with its successor.
    cluster.kubectl(&["delete", "nrr", "first"]).await?;
    create(cluster, new).await?;

    // A dry run conflicts with nothing, but its end may.
    let turn = async |patch| {
        let arguments = ["patch", "nrr", "second", "--type=merge", "-p", patch];
        cluster.kubectl(&arguments).await
    };
    turn(r#"{"spec":{"dryRun":true}}"#).await?;
    create(cluster, rule("beside", "conflict", "a")).await?;
    let error = refused(turn(r#"{"spec":{"dryRun":false}}"#).await)?;
    has_words(&error, "existing rule 'beside'")?;
    Ok(())
}

#[tokio::test]
async fn under_a_definition_without_our_fields_no_warning_advises_them() -> Result<()> {
    let cluster = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let _controller = start(&cluster, port).await?;
    until_reviewed(&cluster).await?;
    cluster.apply_over(&fixture("upstream-crd.yaml")).await?;
    let mut number = 0;
    eventually("the warning has no advice", SOON, async || {
        number += 1;
        let name = format!("risky-{number}");
        let taint = json!({"key": key(&name), "effect": "NoExecute"});
        let warnings = create(&cluster, rule(&name, &name, "a").spec("taint", taint)).await?;
        has_words(
            &warnings,
            "CAUTION: NoExecute with continuous mode evicts pods",
        )?;
        Ok(!warnings.contains("nodegate"))
    })
    .await
}

#[tokio::test]
async fn a_risky_rule_is_accepted_with_a_warning() -> Result<()> {
    let cluster = &reviewed().await?.cluster;
    let client = cluster.client().await?;
    node("risky").label("zone", "risky").create(&client).await?;
    daemon_set("kube-system/cni")
        .critical()
        .node_selector("zone", "risky")
        .create(&client)
        .await?;
    let taint = json!({"key": key("risky"), "effect": "NoExecute"});
    let misspelt = json!([{"type": "example.com/Misspelt", "requiredStatus": "True"}]);
    let risky = rule("risky", "risky", "risky").spec("taint", taint);
    let warnings = create(cluster, risky.spec("conditions", misspelt)).await?;
    for expected in [
        "Warning: CAUTION: NoExecute with continuous mode evicts pods when conditions fail",
        "Warning: DaemonSet kube-system/cni does not tolerate the taint readiness.k8s.io/risky:NoExecute",
        "Warning: no node that the rule selects has a condition of type 'example.com/Misspelt' today",
    ] {
        has_words(&warnings, expected)?;
    }
    cluster.kubectl(&["get", "nrr", "risky"]).await?;
    Ok(())
}

#[tokio::test]
async fn without_its_webhook_no_rule_is_created_and_all_else_goes_on() -> Result<()> {
    let cluster = own_cluster().await?;
    let port = ports::free()?;
    install(&cluster, port).await?;
    let controller = start(&cluster, port).await?;
    until_reviewed(&cluster).await?;
    create(&cluster, rule("old", "down", "a")).await?;
    let finalizer = "-o=jsonpath={.metadata.finalizers}";
    eventually("the controller has seen the rule", SOON, async || {
        let finalizers = cluster.kubectl(&["get", "nrr", "old", finalizer]).await?;
        Ok(finalizers.contains("cleanup-taints"))
    })
    .await?;
    controller.stop().await?;

    let new = rule("new", "down", "b");
    let error = refused(create(&cluster, new).await)?;
    has_words(&error, "failed calling webhook")?;
    let patch = async |arguments: &[&str], patch: &str| {
        let mut all = vec!["patch", "nrr", "old", "--type=merge", "-p", patch];
        all.extend(arguments);
        cluster.kubectl(&all).await
    };
    let error = refused(patch(&[], r#"{"spec":{"dryRun":true}}"#).await)?;
    has_words(&error, "failed calling webhook")?;

    patch(&[], r#"{"metadata":{"labels":{"a":"b"}}}"#).await?;
    let status = r#"{"status":{"observedGeneration":1}}"#;
    patch(&["--subresource=status"], status).await?;
    cluster.types("delete nrr old --wait=false").await?;
    patch(&[], r#"{"metadata":{"finalizers":null}}"#).await?;
    let left = cluster.types("get nrr old --ignore-not-found").await?;
    assert_eq!(left, "");
    Ok(())
}
