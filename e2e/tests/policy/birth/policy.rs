//! The taints that the policy adds to a node, and the rules that it skips.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use nodegate_tests::network::OWNER;
use nodegate_tests::rules::taint_texts;
use nodegate_tests::{SOON, fixture};
use serde_json::{Value, json};
use testkit::nodegate::changes::delete_rule;
use testkit::nodegate::fixtures::{self, rule};
use testkit::nodegate::install::CRD;
use testkit::nodegate::state::taints_of;
use testkit::nodegate::{Cluster, Options, eventually};

use super::{
    CONDITION, FINALIZER, all_are_known, client, in_force, install, key, keys, labelled, tried,
};

/// The recorded owners of the node's taints, by the rules' UIDs.
fn owners(node: &Node) -> Vec<(String, Value)> {
    let annotations = node.annotations().iter();
    annotations
        .filter_map(|(key, value)| {
            let value = serde_json::from_str(value).unwrap_or_default();
            Some((key.strip_prefix(OWNER)?.to_owned(), value))
        })
        .collect()
}

#[tokio::test]
async fn every_rule_puts_its_taint_on_beside_those_that_are_there() -> Result<()> {
    let Some(client) = client().await? else {
        return Ok(());
    };
    let one = in_force("several-one", "several").create(&client).await?;
    let taint = json!({"key": key("several-two"), "value": "pending", "effect": "NoExecute"});
    let two = in_force("several-two", "several")
        .bootstrap_only()
        .spec("taint", taint)
        .create(&client)
        .await?;
    all_are_known(&client, "several").await?;
    let mut node = labelled("several", "several")
        .taint("example.com/plain", "NoSchedule")
        .annotation("example.com/own", "stays")
        .build();
    let theirs = Taint {
        key: "example.com/dated".to_owned(),
        value: Some("theirs".to_owned()),
        effect: "PreferNoSchedule".to_owned(),
        time_added: serde_json::from_value(json!("2026-01-01T00:00:00Z"))?,
    };
    let spec = node.spec.get_or_insert_default();
    spec.taints.get_or_insert_default().push(theirs.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node).await?;
    let node = nodes.get("several").await?;
    assert_eq!(
        taint_texts(&node),
        [
            "example.com/dated=theirs:PreferNoSchedule",
            "example.com/plain=:NoSchedule",
            "node.kubernetes.io/not-ready=:NoSchedule",
            "readiness.k8s.io/several-last=:NoSchedule",
            "readiness.k8s.io/several-one=:NoSchedule",
            "readiness.k8s.io/several-two=pending:NoExecute",
        ]
    );
    let mut kept = taints_of(&node);
    assert!(kept.any(|taint| *taint == theirs), "{node:?}");
    assert_eq!(node.annotations()["example.com/own"], "stays");
    let owners = owners(&node);
    assert_eq!(owners.len(), 3, "{owners:?}");
    #[rustfmt::skip]
    let records = [
        (&one, json!({"rule-name": "several-one", "taint-key": key("several-one"), "taint-effect": "NoSchedule", "joining": true})),
        (&two, json!({"rule-name": "several-two", "taint-key": key("several-two"), "taint-effect": "NoExecute"})),
    ];
    for (rule, expected) in records {
        let uid = rule.uid().context("a rule without a UID")?;
        assert!(owners.contains(&(uid, expected)), "{owners:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_taint_that_is_there_already_is_not_put_on_again() -> Result<()> {
    let Some(client) = client().await? else {
        return Ok(());
    };
    for (name, effect) in [
        ("shared-one", "NoSchedule"),
        ("shared-two", "NoSchedule"),
        ("shared-three", "NoExecute"),
    ] {
        let shared = json!({"key": key("shared"), "effect": effect});
        let rule = in_force(name, "shared").spec("taint", shared);
        rule.create(&client).await?;
    }
    all_are_known(&client, "shared").await?;
    let ours = |node: &Node| {
        let mut ours = taint_texts(node);
        ours.retain(|taint| taint.starts_with(&key("shared=")));
        ours
    };
    let both = [
        "readiness.k8s.io/shared=:NoExecute",
        "readiness.k8s.io/shared=:NoSchedule",
    ];
    let node = tried(&client, labelled("shared", "shared")).await?;
    assert_eq!(ours(&node), both);
    assert_eq!(owners(&node).len(), 3, "one for each taint: {node:?}");

    // Like a taint from --register-with-taints: the controller finds out whose it is.
    let registered = labelled("shared", "shared").taint(&key("shared"), "NoSchedule");
    let node = tried(&client, registered).await?;
    assert_eq!(ours(&node), both);
    assert_eq!(owners(&node).len(), 2, "{node:?}");
    Ok(())
}

#[tokio::test]
async fn rules_that_put_no_taint_on_nodes_and_nodes_that_have_completed_are_passed_over()
-> Result<()> {
    let Some(client) = client().await? else {
        return Ok(());
    };
    let over = |name: &str| in_force(name, "over");
    for rule in [
        over("over-dry").dry_run(),
        over("over-suspended").nodegate("suspend", json!(true)),
        over("over-removing").nodegate("taintPolicy", json!("remove-only")),
        rule("over-new", &key("over-new"))
            .waits_for(CONDITION)
            .selects("test", "over"),
        over("over-going"),
    ] {
        rule.create(&client).await?;
    }
    delete_rule(&client, "over-going").await?;
    let rules: Api<DynamicObject> = fixtures::rules(&client);
    for (name, kind, status, reason) in [
        ("over-unaccepted", "Accepted", "False", "Circle"),
        ("over-braked", "Suspended", "True", "AllRulesSuspended"),
    ] {
        over(name).create(&client).await?;
        let condition = json!({"type": kind, "status": status, "reason": reason, "message": "why",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        rules
            .patch_status(name, &PatchParams::default(), &status)
            .await?;
    }
    in_force("over-elsewhere", "elsewhere")
        .create(&client)
        .await?;
    let bootstrap = over("over-bootstrap").bootstrap_only();
    let bootstrap = bootstrap.create(&client).await?;
    let reboots = over("over-reboots").bootstrap_only();
    let reboots = reboots.nodegate("regateOn", json!(["Reboot"]));
    reboots.create(&client).await?;
    all_are_known(&client, "over").await?;
    let completed = |id: &str| format!("readiness.k8s.io/bootstrap-completed-{id}");
    let uid = bootstrap.uid().context("a rule without a UID")?;
    #[rustfmt::skip]
    let cases = [
        ("none", vec![], &["over-bootstrap", "over-last", "over-reboots"][..]),
        ("by UID", vec![completed(&uid)], &["over-last", "over-reboots"]),
        ("by name", ["over-bootstrap", "over-reboots", "over-last"].map(completed).into(), &["over-last", "over-reboots"]),
        ("another's", vec![completed("another")], &["over-bootstrap", "over-last", "over-reboots"]),
    ];
    for (name, annotations, expected) in cases {
        let mut node = labelled("over", "over");
        for annotation in annotations {
            node = node.annotation(&annotation, "{}");
        }
        let node = tried(&client, node).await?;
        assert_eq!(Vec::from_iter(keys(&node)), expected, "{name}");
    }
    Ok(())
}

/// The Node Readiness Controller's definition accepts rules that Nodegate cannot use. Nobody would remove their taints, and some
/// taints would make the API server refuse the node.
#[tokio::test]
async fn a_rule_that_cannot_be_used_keeps_no_node_from_joining() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.apply_path(&fixture("upstream-crd.yaml")).await?;
    cluster.until_established(CRD).await?;
    cluster.install_without_crd().await?;
    if !install(&cluster).await? {
        return Ok(());
    }
    let client = cluster.client().await?;
    let labels = |labels: Value| json!({"matchLabels": labels});
    let expression = |requirement: Value| json!({"matchExpressions": [requirement]});
    let taint = |value: &str| json!({"key": key("value"), "value": value, "effect": "NoSchedule"});
    #[rustfmt::skip]
    let cases = [
        ("value", "taint", taint("not a label's value")),
        ("selector", "nodeSelector", json!({})),
        ("empty", "nodeSelector", labels(json!({}))),
        ("label-key", "nodeSelector", expression(json!({"key": "a b", "operator": "DoesNotExist"}))),
        ("operator", "nodeSelector", expression(json!({"key": "test", "operator": "Gt", "values": ["1"]}))),
        ("no-value", "nodeSelector", expression(json!({"key": "none", "operator": "NotIn"}))),
        ("a-value", "nodeSelector", expression(json!({"key": "test", "operator": "Exists", "values": ["lax"]}))),
        ("bad-value", "nodeSelector", expression(json!({"key": "test", "operator": "NotIn", "values": ["a b"]}))),
        ("any", "conditionPolicy", json!("anyOf")),
        ("default", "conditions", json!([{"type": CONDITION, "requiredStatus": "True", "defaultStatus": "False"}])),
    ];
    for (name, field, value) in cases {
        rule(&format!("lax-{name}"), &key(&format!("lax-{name}")))
            .waits_for(CONDITION)
            .bootstrap_only()
            .selects("test", "lax")
            .finalizer(FINALIZER)
            .spec(field, value)
            .create(&client)
            .await?;
    }
    all_are_known(&client, "lax").await?;
    let node = labelled("lax", "lax").create(&client).await?;
    let held: Vec<_> = keys(&node).into_iter().collect();
    assert_eq!(held, ["lax-last"]);

    // Without its definition there are no rules, and nodes join.
    let delete = format!("delete crd {CRD} --wait=false");
    cluster.types(&delete).await?;
    eventually("a node joins without rules", SOON, async || {
        let node = tried(&client, labelled("free", "free")).await?;
        Ok(keys(&node).is_empty())
    })
    .await
}
