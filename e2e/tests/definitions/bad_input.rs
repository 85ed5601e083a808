//! Rules under other definitions than ours: the Node Readiness Controller's, which drops unknown fields, and one that accepts
//! everything. The controller reports unusable rules, and everything else continues.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::{Client, ResourceExt};
use nodegate_tests::network::{CONDITION, TAINT, create_node};
use nodegate_tests::rules::{delete, eventually_gone, eventually_says, key};
use nodegate_tests::{SOON, fixture};
use serde_json::{Value, json};
use testkit::nodegate::changes::{delete_rule, patch_rule, set_node_condition};
use testkit::nodegate::fixtures::{RuleBuilder, node, rule, rules};
use testkit::nodegate::install::CRD;
use testkit::nodegate::state::{events_about, has_taint, rule_status};
use testkit::nodegate::{Cluster, Controller, Options, eventually, eventually_eq, never};

#[tokio::test]
async fn rules_work_under_the_upstream_projects_definition() -> Result<()> {
    let cluster = cluster_with_crd("upstream-crd.yaml").await?;
    let client = cluster.client().await?;
    node("held").create(&client).await?;
    create_node(&client, "released", "True").await?;
    let controller = Controller::start(&cluster, &[]).await?;

    let waits = |name: &str| rule(name, &key(name)).waits_for(CONDITION);
    for rule in [
        network_rule("continuous"),
        waits("bootstrap").bootstrap_only(),
        waits("dry").dry_run(),
    ] {
        rule.create(&client).await?;
    }
    has(&client, "held", [true, true]).await?;
    has(&client, "released", [false, false]).await?;
    let found = async |rule: &str| {
        let status = rule_status(&client, rule).await?;
        let nodes = status["nodeEvaluations"].as_array();
        let nodes = nodes.into_iter().flatten();
        let nodes: Vec<Value> = nodes
            .map(|node| {
                let result = &node["conditionResults"][0]["currentStatus"];
                json!([node["nodeName"], result, node["taintStatus"]])
            })
            .collect();
        anyhow::Ok(json!([status["appliedNodes"], nodes]))
    };
    let expected = json!([
        ["held", "released"],
        [
            ["held", "Unknown", "Present"],
            ["released", "True", "Absent"]
        ],
    ]);
    for rule in ["continuous", "bootstrap"] {
        eventually_eq(rule, SOON, expected.clone(), async || found(rule).await).await?;
    }
    let counts = json!([2, 1, 0, 1]);
    eventually_eq("the dry run counts", SOON, counts, async || {
        let results = rule_status(&client, "dry").await?["dryRunResults"].take();
        let counts = [
            "affectedNodes",
            "taintsToAdd",
            "taintsToRemove",
            "riskyOperations",
        ];
        Ok(counts.map(|count| results[count].clone()).into())
    })
    .await?;
    let status = rule_status(&client, "continuous").await?;
    assert_eq!(status["nodegate"], Value::Null, "{status}");

    let names = ["continuous", "bootstrap", "dry"];
    unchanged(&client, &names, Duration::from_secs(5)).await?;
    let ended = controller.stop().await?;
    ensure!(ended.success(), "it ended with {ended}");
    let controller = Controller::start(&cluster, &[]).await?;
    unchanged(&client, &names, Duration::from_secs(3)).await?;

    set_node_condition(&client, "held", CONDITION, "True").await?;
    has(&client, "held", [false, false]).await?;
    set_node_condition(&client, "held", CONDITION, "False").await?;
    has(&client, "held", [true, false]).await?;
    for name in names {
        delete(&client, name).await?;
    }
    has(&client, "held", [false, false]).await?;
    drop(controller);
    Ok(())
}

#[tokio::test]
async fn rules_that_cannot_be_used_are_turned_down_and_others_go_on() -> Result<()> {
    let cluster = cluster_with_crd("permissive-crd.yaml").await?;
    let client = cluster.client().await?;
    node("held").create(&client).await?;
    create_node(&client, "released", "True").await?;
    let bad = bad_rules();
    // Some exist when the controller starts, others come later.
    let (early, late) = bad.split_at(3);
    for (rule, ..) in early {
        rule.clone().create(&client).await?;
    }
    let mut controller = Controller::start(&cluster, &[]).await?;
    for (rule, ..) in late {
        rule.clone().create(&client).await?;
    }
    network_rule("good").create(&client).await?;
    has(&client, "held", [true, false]).await?;
    for (_, name, words) in &bad {
        is_turned_down(&client, name, words)
            .await
            .with_context(|| (*name).to_owned())?;
        ensure!(
            controller.log().contains(&format!("rule={name}")),
            "{name} is not in the log"
        );
    }
    let names: Vec<&str> = bad.iter().map(|(_, name, _)| *name).collect();
    unchanged(&client, &names, Duration::from_secs(3)).await?;
    for name in ["held", "released"] {
        for key in ["readiness.k8s.io/bad", "example.com/x"] {
            ensure!(!has_taint(&client, name, key).await?, "{name}: {key}");
        }
    }

    // Other rules continue.
    set_node_condition(&client, "held", CONDITION, "True").await?;
    has(&client, "held", [false, false]).await?;
    set_node_condition(&client, "held", CONDITION, "False").await?;
    has(&client, "held", [true, false]).await?;

    // A working rule becomes invalid: it keeps its taints until it is fixed or deleted.
    let patch = async |conditions: Value| {
        let patch = json!({"spec": {"conditions": conditions}});
        patch_rule(&client, "good", &patch).await
    };
    patch(json!("no")).await?;
    eventually_says(&client, "good", "Accepted", "False").await?;
    ensure!(has_taint(&client, "held", TAINT).await?);
    patch(json!([{"type": CONDITION, "requiredStatus": "True"}])).await?;
    eventually_says(&client, "good", "Accepted", "True").await?;
    patch(json!("no")).await?;

    let bad = names.into_iter().filter(|name| *name != "kept");
    for name in bad.chain(["good"]) {
        delete(&client, name).await?;
    }
    has(&client, "held", [false, false]).await?;
    // Others must remove their own finalizers.
    delete_rule(&client, "kept").await?;
    never("it goes", Duration::from_secs(1), async || {
        Ok(rules(&client).get_opt("kept").await?.is_none())
    })
    .await?;
    patch_rule(&client, "kept", &json!({"metadata": {"finalizers": null}})).await?;
    eventually_gone(&client, "kept").await?;
    ensure!(controller.exited()?.is_none() && controller.is_ready().await);
    Ok(())
}

fn network_rule(name: &str) -> RuleBuilder {
    rule(name, TAINT).waits_for(CONDITION)
}

/// Rules that only a lax definition accepts, one of each sort of fault, with their names and a part of the error message.
fn bad_rules() -> Vec<(RuleBuilder, &'static str, &'static str)> {
    let bad = |name, field, value, words| {
        let taint = json!({"key": "readiness.k8s.io/bad", "effect": "NoSchedule"});
        let rule = network_rule(name).spec("taint", taint).bootstrap_only();
        (rule.spec(field, value), name, words)
    };
    let foreign = json!({"key": "example.com/x", "effect": "NoSchedule"});
    let operator = json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]});
    let unreadable = "spec cannot be read: conditions: invalid type";
    let prefix = "must start with 'readiness.k8s.io/'";
    let (kept, name, words) = bad("kept", "conditions", json!({}), "spec cannot be read");
    vec![
        bad("number", "conditions", json!(1), unreadable),
        bad("mode", "enforcementMode", json!("sometimes"), "sometimes"),
        bad("empty", "nodeSelector", json!({}), "must not be empty"),
        bad("operator", "nodeSelector", operator, "Near"),
        bad("foreign", "taint", foreign, prefix),
        bad("any", "conditionPolicy", json!("anyOf"), "anyOf"),
        (kept.finalizer("example.com/kept"), name, words),
    ]
}

async fn cluster_with_crd(crd: &str) -> Result<Cluster> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_without_crd().await?;
    cluster.apply_path(&fixture(crd)).await?;
    cluster.until_established(CRD).await?;
    Ok(cluster)
}

/// Waits until the taints of the continuous and of the bootstrap rule on a node are as expected.
async fn has(client: &Client, name: &str, expected: [bool; 2]) -> Result<()> {
    eventually_eq(name, SOON, expected, async || {
        let continuous = has_taint(client, name, TAINT).await?;
        let bootstrap = has_taint(client, name, &key("bootstrap")).await?;
        Ok([continuous, bootstrap])
    })
    .await
}

/// Waits until the rule's status and an event report why the rule is unusable.
async fn is_turned_down(client: &Client, name: &str, words: &str) -> Result<()> {
    let accepted = eventually_says(client, name, "Accepted", "False").await?;
    let message = accepted["message"].as_str().unwrap_or_default();
    assert_eq!(accepted["reason"], "Invalid", "{name}");
    ensure!(message.contains(words), "{name}: {message}");
    eventually("there is a warning", SOON, async || {
        let events = events_about(client, "NodeReadinessRule", name).await?;
        let mut warnings = events
            .iter()
            .filter(|event| event.type_.as_deref() == Some("Warning"));
        Ok(warnings.any(|event| event.message.as_deref() == Some(message)))
    })
    .await
}

/// Checks that the rules stay unchanged, once pending writes are done.
async fn unchanged(client: &Client, names: &[&str], duration: Duration) -> Result<()> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let versions = async || {
        let mut versions = Vec::new();
        for name in names {
            versions.push(rules(client).get(name).await?.resource_version());
        }
        anyhow::Ok(versions)
    };
    let before = versions().await?;
    never("a rule is written again", duration, async || {
        Ok(versions().await? != before)
    })
    .await
}
