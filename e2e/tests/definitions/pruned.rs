//! The Node Readiness Controller's definition is applied over ours, and ours over that one. Without its fields a rule may mean the
//! opposite, so it is frozen until it is applied again.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use kube::api::ListParams;
use nodegate_tests::{A_WHILE, SOON, fixture};
use serde_json::json;
use testkit::nodegate::changes::patch_rule;
use testkit::nodegate::fixtures::{node, rule, rules};
use testkit::nodegate::install::config;
use testkit::nodegate::state::{has_taint, reasons_about, rule_condition};
use testkit::nodegate::{Cluster, Controller, Options, eventually, eventually_eq, never};

const KEY: &str = "readiness.k8s.io/network";
/// Applied by `kubectl apply`, and by `kubectl apply --server-side`.
const RULES: [&str; 2] = ["network", "on-server"];
const NODES: [&str; 3] = ["a", "b", "c"];

fn manifest(name: &str) -> String {
    let rule = rule(name, &format!("{KEY}-{name}")).waits_for("example.com/NetworkReady");
    let rule = rule
        .bootstrap_only()
        .nodegate("existingNodes", json!("Leave"));
    rule.build().to_string()
}

async fn apply_rules(cluster: &Cluster) -> Result<()> {
    cluster.apply(&manifest(RULES[0])).await?;
    let file = cluster.folder().join("on-server.json");
    std::fs::write(&file, manifest(RULES[1]))?;
    cluster.apply_path(&file).await?;
    Ok(())
}

async fn eventually_accepted(client: &Client, reason: &str) -> Result<()> {
    for rule in RULES {
        let what = format!("{rule} says {reason}");
        eventually_eq(&what, SOON, json!(reason), async || {
            Ok(rule_condition(client, rule, "Accepted").await?["reason"].take())
        })
        .await?;
    }
    Ok(())
}

async fn no_node_is_gated(client: &Client) -> Result<()> {
    never("a node is gated", A_WHILE, async || {
        for (node, rule) in NODES.iter().flat_map(|node| RULES.map(|rule| (node, rule))) {
            if has_taint(client, node, &format!("{KEY}-{rule}")).await? {
                return Ok(true);
            }
        }
        Ok(false)
    })
    .await
}

#[tokio::test]
async fn a_rule_whose_fields_are_pruned_is_frozen_until_it_is_applied_again() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    cluster.install().await?;
    for name in NODES {
        node(name).create(&client).await?;
    }
    let _controller = Controller::start(&cluster, &[]).await?;
    // Times of creation are whole seconds, and only nodes from before the rule are left alone.
    tokio::time::sleep(Duration::from_secs(1)).await;
    apply_rules(&cluster).await?;
    cluster.idles();
    eventually_accepted(&client, "Valid").await?;
    no_node_is_gated(&client).await?;

    cluster.apply_over(&fixture("upstream-crd.yaml")).await?;
    eventually("the fields are pruned", SOON, async || {
        let rules = rules(&client).list(&ListParams::default()).await?;
        Ok(rules
            .iter()
            .all(|rule| rule.data["spec"]["nodegate"].is_null()))
    })
    .await?;
    // From here on they are gone for good.
    for rule in RULES {
        let touched = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}});
        patch_rule(&client, rule, &touched).await?;
        eventually("an Event says so", SOON, async || {
            let reasons = reasons_about(&client, "NodeReadinessRule", rule).await?;
            Ok(reasons.contains(&"FieldsPruned".to_owned()))
        })
        .await?;
    }
    no_node_is_gated(&client).await?;

    cluster.apply_over(&config("crd")).await?;
    no_node_is_gated(&client).await?;
    eventually_accepted(&client, "FieldsPruned").await?;
    apply_rules(&cluster).await?;
    eventually_accepted(&client, "Valid").await?;
    no_node_is_gated(&client).await
}
