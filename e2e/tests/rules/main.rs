//! What a rule does to nodes and says about them, as the API server has it, with the controller under its own service account.
//! What follows from which conditions is tested beside the code, and over time in the simulation.
//!
//! The tests share one cluster, but for those of `critical_components` and `repair`. Each uses its own name for its rule, its
//! taint key, its nodes' prefix and its node label.

mod critical_components;
mod denied;
mod repair;

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use nodegate_tests::rules::{TIMES, eventually_observed, key, without};
use nodegate_tests::{SOON, gates, rules};
use serde_json::json;
use testkit::nodegate::changes::{patch_rule, set_node_condition};
use testkit::nodegate::fixtures::{self, NodeBuilder, RuleBuilder};
use testkit::nodegate::state::{self, count_taints, rule_condition, rule_status};
use testkit::nodegate::{NodeHistory, Options, SharedInstallation, eventually_eq};

static INSTALLATION: SharedInstallation = SharedInstallation::new(Options::api_only(), &[]);

/// The label that rules select by.
const TEST: &str = "test";
/// The default condition of rules, and another one.
const READY: &str = "example.com/Ready";
const OTHER: &str = "example.com/Other";

async fn client() -> Result<Client> {
    INSTALLATION.get().await?.client().await
}

/// A rule that gates the nodes of the test of this name whenever [`READY`] is not `True`.
fn continuous(name: &str) -> RuleBuilder {
    fixtures::rule(name, &key(name))
        .selects(TEST, name)
        .waits_for(READY)
}

fn node(test: &str, name: &str) -> NodeBuilder {
    fixtures::node(name).label(TEST, test)
}

async fn eventually_gated(client: &Client, node: &str, rule: &str) -> Result<()> {
    gates::eventually_gated(client, node, &key(rule)).await
}

async fn eventually_released(client: &Client, node: &str, rule: &str) -> Result<()> {
    gates::eventually_released(client, node, &key(rule)).await
}

/// Waits until the status counts this many matched, held and released nodes.
async fn eventually_counts(client: &Client, name: &str, counts: [u64; 3]) -> Result<()> {
    let what = format!("matched, held and released nodes of {name}");
    eventually_eq(&what, SOON, counts.map(Some), async || {
        let status = rule_status(client, name).await?;
        Ok(["matchedNodes", "heldNodes", "releasedNodes"]
            .map(|count| status["nodegate"][count].as_u64()))
    })
    .await
}

#[tokio::test]
async fn the_taint_goes_and_the_completion_comes_in_one_write() -> Result<()> {
    let client = client().await?;
    let rule = continuous("one-write").bootstrap_only();
    let rule: DynamicObject = rule.create(&client).await?;
    let uid = rule.uid().context("a rule without a UID")?;
    let history = NodeHistory::of_nodes(&client).await?;
    node("one-write", "one-write").create(&client).await?;
    eventually_gated(&client, "one-write", "one-write").await?;
    set_node_condition(&client, "one-write", READY, "True").await?;
    eventually_released(&client, "one-write", "one-write").await?;

    let seen = history.up_to(&client, "one-write").await?;
    let states = &seen["one-write"];
    let is_gated = |node: &Node| count_taints(node, &key("one-write")) > 0;
    let from = states.iter().position(is_gated);
    for node in &states[from.context("it was gated")?..] {
        let is_gated = is_gated(node);
        let record = |key: &str| node.annotations().get(&format!("{key}-{uid}"));
        let completed = record("readiness.k8s.io/bootstrap-completed").map(String::as_str);
        let expected = (!is_gated).then_some(r#"{"rule-name":"one-write"}"#);
        assert_eq!(completed, expected, "{node:?}");
        let is_owned = record("nodegate.dev/taint-added-by").is_some();
        assert_eq!(is_owned, is_gated, "{node:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_taint_is_put_on_as_the_rule_has_it() -> Result<()> {
    let client = client().await?;
    for (name, effect, value) in [
        ("effect-schedule", "NoSchedule", None),
        ("effect-prefer", "PreferNoSchedule", Some("starting")),
        ("effect-execute", "NoExecute", Some("starting")),
    ] {
        let mut taint = json!({"key": key(name), "effect": effect});
        if let Some(value) = value {
            taint["value"] = json!(value);
        }
        let rule = continuous(name).spec("taint", taint);
        rule.create(&client).await?;
        node(name, name).create(&client).await?;
        eventually_gated(&client, name, name).await?;
        let mut taints = state::taints(&client, name).await?;
        taints.retain(|taint| taint.key == key(name));
        assert_eq!(taints.len(), 1, "{taints:?}");
        let seen = (&*taints[0].effect, taints[0].value.as_deref());
        assert_eq!(seen, (effect, value));
        set_node_condition(&client, name, READY, "True").await?;
        eventually_released(&client, name, name).await?;
    }
    Ok(())
}

#[tokio::test]
async fn each_taint_added_or_removed_is_an_event_on_the_node() -> Result<()> {
    let client = client().await?;
    continuous("told").create(&client).await?;
    let created = node("told", "told").create(&client).await?;
    eventually_gated(&client, "told", "told").await?;
    set_node_condition(&client, "told", READY, "True").await?;
    eventually_released(&client, "told", "told").await?;
    set_node_condition(&client, "told", READY, "False").await?;
    let event = |reason: &str, action: &str, what: &str| {
        let note = format!("Taint '{}:NoSchedule' {what} by rule 'told'", key("told"));
        [reason.to_owned(), action.to_owned(), note]
    };
    let added = event("TaintAdded", "AddTaint", "added");
    let removed = event("TaintRemoved", "RemoveTaint", "removed");
    let expected = vec![added.clone(), removed, added];
    eventually_eq("what is said", SOON, expected, async || {
        let events = state::events_on(&client, "told").await?.into_iter();
        let said =
            events.map(|it| [it.reason, it.action, it.message].map(Option::unwrap_or_default));
        Ok(said.collect())
    })
    .await?;
    for event in state::events_on(&client, "told").await? {
        let Event {
            involved_object,
            reporting_component,
            type_,
            ..
        } = event;
        let reporter = reporting_component.as_deref();
        assert_eq!(reporter, Some("node-readiness-controller"));
        assert_eq!(type_.as_deref(), Some("Normal"));
        assert_eq!(involved_object.uid, created.uid());
        assert_eq!(involved_object.kind.as_deref(), Some("Node"));
    }
    Ok(())
}

/// The steps of `docs/change-a-rule.md`.
#[tokio::test]
async fn a_rule_is_replaced_and_no_node_is_gated_or_released_meanwhile() -> Result<()> {
    let client = client().await?;
    let earlier = continuous("replaced").bootstrap_only();
    earlier.create(&client).await?;
    eventually_observed(&client, "replaced").await?;
    let released = node("replaced", "replaced-released").condition(READY, "True");
    released.create(&client).await?;
    node("replaced", "replaced-held").create(&client).await?;
    eventually_gated(&client, "replaced-held", "replaced").await?;
    eventually_counts(&client, "replaced", [2, 1, 1]).await?;
    // It has been ready once, and would not be let in by the successor.
    set_node_condition(&client, "replaced-released", READY, "False").await?;
    // Creation times are whole seconds, and both nodes have to be older than the successor.
    tokio::time::sleep(Duration::from_millis(1100)).await;

    let history = NodeHistory::of_nodes(&client).await?;
    let successor = fixtures::rule("replaced-later", &key("replaced"))
        .selects(TEST, "replaced")
        .waits_for(READY)
        .waits_for(OTHER)
        .bootstrap_only()
        .nodegate("existingNodes", json!("Leave"))
        .dry_run();
    successor.create(&client).await?;
    eventually_observed(&client, "replaced-later").await?;
    for (rule, dry_run) in [("replaced", true), ("replaced-later", false)] {
        patch_rule(&client, rule, &json!({"spec": {"dryRun": dry_run}})).await?;
        eventually_observed(&client, rule).await?;
    }
    rules::delete(&client, "replaced").await?;
    gates::stays_held(&client, "replaced-held", &key("replaced")).await?;
    for (name, held) in [("replaced-released", 0), ("replaced-held", 1)] {
        let states = history.up_to(&client, name).await?;
        for state in &states[name] {
            assert_eq!(count_taints(state, &key("replaced")), held, "{name}");
        }
    }
    set_node_condition(&client, "replaced-held", READY, "True").await?;
    gates::stays_held(&client, "replaced-held", &key("replaced")).await?;
    set_node_condition(&client, "replaced-held", OTHER, "True").await?;
    eventually_released(&client, "replaced-held", "replaced").await
}

#[tokio::test]
async fn a_successor_gates_no_node_in_use_once_it_governs_until_it_is_allowed_to() -> Result<()> {
    let client = client().await?;
    let names = ["succeeds-a", "succeeds-b", "succeeds-c", "succeeds-d"];
    let earlier = continuous("succeeds");
    earlier.create(&client).await?;
    for name in names {
        let released = node("succeeds", name).condition(READY, "True");
        released.create(&client).await?;
    }
    eventually_counts(&client, "succeeds", [4, 0, 4]).await?;
    let history = NodeHistory::of_nodes(&client).await?;
    // Times have whole seconds: nodes of the same one would count as if they had joined under the successor.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let successor = fixtures::rule("succeeds-later", &key("succeeds"))
        .selects(TEST, "succeeds")
        .waits_for(OTHER)
        .nodegate("disruption", json!({"maxFirstGated": "10%"}));
    successor.create(&client).await?;
    eventually_eq("who is conflicted", SOON, json!("True"), async || {
        let conflicted = rule_condition(&client, "succeeds-later", "Conflicted").await?;
        Ok(conflicted["status"].clone())
    })
    .await?;
    rules::delete(&client, "succeeds").await?;
    eventually_eq("who is held back", SOON, json!("True"), async || {
        let held_back = rule_condition(&client, "succeeds-later", "HeldBack").await?;
        Ok(held_back["status"].clone())
    })
    .await?;
    for name in names {
        for state in &history.up_to(&client, name).await?[name] {
            assert_eq!(count_taints(state, &key("succeeds")), 0, "{name}");
        }
    }
    let allowed = json!({"spec": {"nodegate": {"disruption": {"maxFirstGated": "100%"}}}});
    patch_rule(&client, "succeeds-later", &allowed).await?;
    for name in names {
        eventually_gated(&client, name, "succeeds").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_status_says_what_was_found_on_each_node_and_what_follows() -> Result<()> {
    let client = client().await?;
    let conditions = json!([
        {"type": READY, "requiredStatus": "True", "defaultStatus": "False"},
        {"type": OTHER, "requiredStatus": "False"},
    ]);
    let rule = continuous("says").spec("conditions", conditions);
    rule.create(&client).await?;
    node("says", "says-held").create(&client).await?;
    node("says", "says-released")
        .condition(READY, "True")
        .condition(OTHER, "False")
        .create(&client)
        .await?;
    let results = |ready: &str, other: &str| {
        json!([
            {"type": READY, "currentStatus": ready, "requiredStatus": "True", "defaultStatus": "False"},
            {"type": OTHER, "currentStatus": other, "requiredStatus": "False", "defaultStatus": "Unknown"},
        ])
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "observedGeneration": 1,
        })
    };
    let expected = json!({
        "observedGeneration": 1,
        "nodegate": {
            "state": "in force",
            "matchedNodes": 2,
            "heldNodes": 1,
            "releasedNodes": 1,
            "failedNodeCount": 0,
            "permission": {"generation": 1, "nodes": 1},
        },
        "appliedNodes": ["says-held", "says-released"],
        "nodeEvaluations": [
            {"nodeName": "says-held", "taintStatus": "Present", "conditionResults": results("Unknown", "Unknown")},
            {"nodeName": "says-released", "taintStatus": "Absent", "conditionResults": results("True", "False")},
        ],
        "conditions": [
            condition("Accepted", "True", "Valid", "the rule is in force"),
            condition("Conflicted", "False", "NoConflict", "no other rule governs the same taint"),
        ],
    });
    eventually_eq("the status", SOON, expected, async || {
        Ok(without(&rule_status(&client, "says").await?, &TIMES))
    })
    .await
}
