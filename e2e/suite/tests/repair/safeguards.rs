//! Nodes that are never repaired, however late they are.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use kube::api::DeleteParams;
use nodegate_testbed::changes::{delete_node, patch_node};
use nodegate_testbed::fixtures::{NodeBuilder, NodeClaimBuilder, node_claims};
use nodegate_testbed::{never, sights};
use serde_json::json;

use super::{
    A_WHILE, TERMINATION, are_left_alone, claim, client, deadline_key, eventually_deleted,
    eventually_open, in_seconds, key, node, rule,
};

const FORBIDDEN: &str = "karpenter.sh/do-not-repair";
const REBOOTING: &str = "Rebooting";

/// The reason why each node is spared, in the controller's words.
fn spared(
    test: &str,
    rule_uid: &str,
    late: impl Fn(&str) -> NodeBuilder,
) -> Vec<(NodeBuilder, NodeClaimBuilder)> {
    let name = |suffix: &str| format!("{test}-{suffix}");
    let both = |suffix: &str| (late(&name(suffix)), claim(test, &name(suffix)));
    let completed = format!("readiness.k8s.io/bootstrap-completed-{rule_uid}");
    let by_name = format!("readiness.k8s.io/bootstrap-completed-{test}");
    let another_boot = format!(r#"{{"rule-name":"{test}","boot-id":"another"}}"#);
    let on_node = |suffix: &str, change: &dyn Fn(NodeBuilder) -> NodeBuilder| {
        let (node, claim) = both(suffix);
        (change(node), claim)
    };
    let on_claim = |suffix: &str, change: &dyn Fn(NodeClaimBuilder) -> NodeClaimBuilder| {
        let (node, claim) = both(suffix);
        (node, change(claim))
    };
    vec![
        on_node("was-open", &|node| node.annotation(&completed, "{}")),
        on_node("was-open-by-name", &|node| node.annotation(&by_name, "{}")),
        on_node("was-open-in-another-boot", &|node| {
            node.annotation(&completed, &another_boot).boot_id("this")
        }),
        on_node("initialized", &|node| {
            node.label("karpenter.sh/initialized", "true")
        }),
        on_node("forbidden", &|node| node.annotation(FORBIDDEN, "true")),
        on_claim("claim-initialized", &|claim| {
            claim.condition("Initialized", "True")
        }),
        on_claim("claim-forbidden", &|claim| {
            claim.annotation(FORBIDDEN, "true")
        }),
        on_claim("claim-rebooting", &|claim| {
            claim.condition(REBOOTING, "True")
        }),
    ]
}

#[tokio::test]
async fn no_claim_is_deleted_of_a_node_that_may_work_or_is_to_be_left_alone() -> Result<()> {
    const TEST: &str = "spared";
    let client = client().await?;
    let reboots = rule(TEST, "DeleteNodeClaim").spec("regateOnReboot", json!(true));
    let rule = reboots.create(&client).await?;
    let late = |name: &str| {
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(-5))
    };
    let uid = rule.uid().unwrap_or_default();
    let mut names = Vec::new();
    for (node, claim) in spared(TEST, &uid, late) {
        let claim = claim.create(&client).await?;
        names.push(claim.name_any());
        node.create(&client).await?;
    }
    // These are being deleted already, and kept by a finalizer.
    claim(TEST, "spared-claim-deleting").create(&client).await?;
    let deleting = node_claims(&client);
    deleting
        .delete("spared-claim-deleting", &DeleteParams::default())
        .await?;
    late("spared-claim-deleting").create(&client).await?;
    claim(TEST, "spared-deleting").create(&client).await?;
    names.push("spared-deleting".into());
    late("spared-deleting-soon")
        .finalizer("example.com/keep")
        .create(&client)
        .await?;
    delete_node(&client, "spared-deleting-soon").await?;
    claim(TEST, "spared-deleting-soon").create(&client).await?;
    names.push("spared-deleting-soon".into());

    // One like them, without the reason.
    claim(TEST, "not-spared").create(&client).await?;
    late("not-spared").create(&client).await?;
    eventually_deleted(&client, "not-spared").await?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    never("another one is deleted", A_WHILE, async || {
        Ok(are_left_alone(&client, &names).await.is_err())
    })
    .await?;
    let claim = node_claims(&client).get("spared-claim-deleting").await?;
    ensure!(
        !claim.annotations().contains_key(TERMINATION),
        "{:?}",
        claim.annotations()
    );
    let keep = json!({"metadata": {"finalizers": null}});
    patch_node(&client, "spared-deleting-soon", &keep).await
}

pub(super) async fn no_node_is_opened_that_may_work_or_is_to_be_left_alone() -> Result<()> {
    const TEST: &str = "held";
    let client = client().await?;
    let reboots = rule(TEST, "Release").spec("regateOnReboot", json!(true));
    let rule = reboots.create(&client).await?;
    let late = |name: &str| {
        node(TEST, name)
            .taint(&key(TEST), "NoSchedule")
            .annotation(&deadline_key(&rule), &in_seconds(-5))
    };
    let uid = rule.uid().unwrap_or_default();
    let mut names = Vec::new();
    for (node, claim) in spared(TEST, &uid, late) {
        names.push(claim.create(&client).await?.name_any());
        node.create(&client).await?;
    }
    claim(TEST, "not-held").create(&client).await?;
    late("not-held").create(&client).await?;
    eventually_open(&client, TEST, "not-held").await?;
    never("another one is opened", A_WHILE, async || {
        for name in &names {
            if !sights::has_taint(&client, name, &key(TEST)).await? {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    })
    .await
}
