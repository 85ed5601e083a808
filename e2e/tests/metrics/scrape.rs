//! A scrape's metrics: names and labels, values after the scene, and no series of deleted objects.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::json;
use testkit::nodegate::fetch::Fetch;
use testkit::nodegate::prometheus::promtool;
use testkit::nodegate::{Cluster, Controller, Options, changes, eventually, eventually_eq};

use super::exposition::Exposition;
use super::{Endpoint, SOON, scene};

/// The page about metrics, which is made from the code.
const PAGE: &str = include_str!("../../../docs/reference/metrics.md");

/// The metrics of the Node Readiness Controller with their types and labels: existing dashboards and alerts rely on them.
#[rustfmt::skip]
const UPSTREAM: &[(&str, &str, &[&str])] = &[
    ("node_readiness_rules_total", "gauge", &[]),
    ("node_readiness_taint_operations_total", "counter", &["rule", "operation"]),
    ("node_readiness_evaluation_duration_seconds", "histogram", &["rule"]),
    ("node_readiness_failures_total", "counter", &["rule", "reason"]),
    ("node_readiness_bootstrap_completed_total", "counter", &["rule"]),
    ("node_readiness_bootstrap_duration_seconds", "histogram", &["rule"]),
    ("node_readiness_reconciliation_latency_seconds", "histogram", &["rule", "operation"]),
    ("node_readiness_nodes_by_state", "gauge", &["rule", "state"]),
    ("node_readiness_condition_failures_total", "counter", &["rule", "condition"]),
    ("node_readiness_rule_last_reconciliation_timestamp_seconds", "gauge", &["rule"]),
    ("node_readiness_build_info", "gauge", &["version"]),
    ("node_readiness_rules", "gauge", &["enforcement_mode", "dry_run"]),
    ("node_readiness_rule_matched_nodes", "gauge", &["rule"]),
    ("node_readiness_blocked_nodes", "gauge", &["rule", "condition"]),
    ("node_readiness_enforcement_latency_seconds", "histogram", &["rule", "operation"]),
    ("node_readiness_bootstrap_hold_duration_seconds", "histogram", &["rule", "taint_origin"]),
    ("node_readiness_api_conflicts_total", "counter", &["rule", "operation"]),
    ("node_readiness_rule_nodes", "gauge", &["rule", "state"]),
];

/// The values after the scene.
#[rustfmt::skip]
const VALUES: &[(&str, f64)] = &[
    ("node_readiness_rules_total", 3.0),
    (r#"node_readiness_taint_operations_total{operation="add",rule="gate"}"#, 1.0),
    (r#"node_readiness_taint_operations_total{operation="remove",rule="gate"}"#, 1.0),
    (r#"node_readiness_taint_operations_total{operation="add",rule="boot"}"#, 0.0),
    (r#"node_readiness_taint_operations_total{operation="remove",rule="boot"}"#, 1.0),
    (r#"node_readiness_taint_operations_total{operation="add",rule="parts"}"#, 1.0),
    (r#"node_readiness_failures_total{reason="AddTaintError",rule="gate"}"#, 0.0),
    (r#"node_readiness_failures_total{reason="RemoveTaintError",rule="boot"}"#, 0.0),
    (r#"node_readiness_failures_total{reason="EvaluationError",rule="boot"}"#, 0.0),
    (r#"node_readiness_bootstrap_completed_total{rule="boot"}"#, 1.0),
    (r#"node_readiness_bootstrap_duration_seconds_count{rule="boot"}"#, 1.0),
    (r#"node_readiness_reconciliation_latency_seconds_count{operation="remove_taint",rule="gate"}"#, 1.0),
    (r#"node_readiness_reconciliation_latency_seconds_count{operation="add_taint",rule="gate"}"#, 1.0),
    (r#"node_readiness_enforcement_latency_seconds_count{operation="remove",rule="gate"}"#, 1.0),
    (r#"node_readiness_bootstrap_hold_duration_seconds_count{rule="boot",taint_origin="adopted"}"#, 1.0),
    (r#"nodegate_startup_stage_seconds_count{condition="example.com/Ready",rule="boot"}"#, 1.0),
    (r#"nodegate_startup_last_total{condition="example.com/Ready",rule="boot"}"#, 1.0),
    (r#"node_readiness_api_conflicts_total{operation="add",rule="gate"}"#, 0.0),
    (r#"node_readiness_rule_matched_nodes{rule="gate"}"#, 2.0),
    (r#"node_readiness_nodes_by_state{rule="gate",state="ready"}"#, 2.0),
    (r#"node_readiness_nodes_by_state{rule="gate",state="not_ready"}"#, 0.0),
    (r#"node_readiness_nodes_by_state{rule="boot",state="bootstrapping"}"#, 0.0),
    (r#"node_readiness_nodes_by_state{rule="boot",state="ready"}"#, 1.0),
    (r#"node_readiness_nodes_by_state{rule="parts",state="not_ready"}"#, 1.0),
    (r#"nodegate_condition_turned_unmet_total{condition="example.com/Ready",rule="gate"}"#, 1.0),
    (r#"node_readiness_rule_nodes{rule="gate",state="released"}"#, 2.0),
    (r#"node_readiness_rule_nodes{rule="parts",state="held"}"#, 1.0),
    (r#"nodegate_rule_longest_held_seconds{rule="gate"}"#, 0.0),
    (r#"nodegate_synthesized_conditions{class="gardener",status="False",type="node.gardener.cloud/CriticalComponentsReady"}"#, 1.0),
    (r#"nodegate_rule_daemon_sets_shut_out{rule="parts"}"#, 1.0),
    (r#"nodegate_rule_daemon_sets_shut_out{rule="gate"}"#, 0.0),
    (r#"nodegate_rule_daemon_sets_outside_namespaces{rule="parts"}"#, 0.0),
    (r#"nodegate_rule_not_accepted{rule="gate"}"#, 0.0),
    (r#"nodegate_rule_conditions_not_made{rule="gate"}"#, 0.0),
    (r#"nodegate_disruption_waiting{rule="gate",zone="region-a/zone-a"}"#, 0.0),
    (r#"nodegate_disruption_zone_state{rule="gate",state="Normal",zone="region-a/zone-a"}"#, 1.0),
    ("nodegate_queue_depth", 0.0),
    ("nodegate_writes_in_flight", 0.0),
    ("nodegate_events_dropped_total", 0.0),
    (r#"nodegate_watch_failures_total{resource="nodes"}"#, 0.0),
    (r#"nodegate_watch_restarts_total{resource="pods"}"#, 0.0),
    (r#"nodegate_cache_objects{kind="nodes"}"#, 4.0),
    (r#"nodegate_cache_objects{kind="daemonsets"}"#, 2.0),
    (r#"nodegate_cache_objects{kind="rules"}"#, 3.0),
    (r#"nodegate_unreadable_objects{kind="Node"}"#, 0.0),
    ("nodegate_leader", 1.0),
    ("nodegate_suspended", 0.0),
];

#[tokio::test]
async fn a_scrape_shows_what_has_been_done_and_nothing_of_what_is_gone() -> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    let client = cluster.client().await?;
    let endpoint = Endpoint::new("http")?;
    let _controller = Controller::start(&cluster, &[&endpoint.flag]).await?;
    let scrape = async || Exposition::scrape(&Fetch::anonymous(), &endpoint.url).await;
    scene::play(&client).await?;

    for (series, expected) in VALUES {
        eventually_eq(series, SOON, Some(*expected), async || {
            Ok(scrape().await?.values.get(*series).copied())
        })
        .await?;
    }
    eventually("node-of-parts has been held a while", SOON, async || {
        let held = r#"nodegate_rule_longest_held_seconds{rule="parts"}"#;
        let values = scrape().await?.values;
        Ok(values.get(held).is_some_and(|held| *held > 1.0))
    })
    .await?;

    let exposition = scrape().await?;
    shows_every_metric(&exposition)?;
    names_no_node(&exposition);
    let starts = [1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0];
    let latencies = [
        0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
    ];
    let evaluations = [
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ];
    for (metric, expected) in [
        ("evaluation_duration", &evaluations[..]),
        ("bootstrap_duration", &starts),
        ("bootstrap_hold_duration", &starts),
        ("enforcement_latency", &latencies),
        ("reconciliation_latency", &latencies),
    ] {
        let metric = format!("node_readiness_{metric}_seconds");
        assert_eq!(exposition.buckets(&metric), expected, "{metric}");
    }
    promtool_finds_no_more_than_is_known(&exposition.text).await?;

    // A dry run gates and releases nothing.
    let dry_run = json!({"spec": {"dryRun": true}});
    changes::patch_rule(&client, "parts", &dry_run).await?;
    eventually("a dry run is left out", SOON, async || {
        let values = scrape().await?.values;
        let mut series = values.keys();
        Ok(!series.any(|series| series.starts_with("node_readiness_rule_nodes{rule=\"parts\"")))
    })
    .await?;

    changes::delete_rule(&client, "gate").await?;
    changes::delete_rule(&client, "parts").await?;
    eventually_eq("rules by name", SOON, vec!["boot".to_owned()], async || {
        Ok(scrape().await?.values_of("rule"))
    })
    .await?;
    let exposition = scrape().await?;
    let rules = exposition.values.get("node_readiness_rules_total");
    assert_eq!(rules, Some(&1.0));
    names_no_node(&exposition);
    Ok(())
}

/// It shows what the page has, which is made from the code, and nothing else.
fn shows_every_metric(exposition: &Exposition) -> Result<()> {
    let (_, page) = PAGE.split_once("## The controller").context("a section")?;
    let page = page.split("## ").next().unwrap_or_default();
    for (metric, kind, labels) in UPSTREAM {
        let labels = labels.iter().map(|label| format!("`{label}`"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let row = format!("| `{metric}` | {kind} | {labels} |");
        assert!(page.contains(&row), "{row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let known = rows.map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|"));
    let shown = exposition.kinds.iter();
    let shown = shown.map(|(metric, kind)| format!("| `{metric}` | {kind} "));
    assert_eq!(
        shown.collect::<BTreeSet<_>>(),
        known.collect::<BTreeSet<_>>(),
        "a scrape, and docs/reference/metrics.md"
    );
    Ok(())
}

fn names_no_node(exposition: &Exposition) {
    for node in scene::NODES {
        assert!(!exposition.text.contains(node), "{node}");
    }
}

/// promtool accepts it, and only objects to one name that the Node Readiness Controller has chosen.
async fn promtool_finds_no_more_than_is_known(text: &str) -> Result<()> {
    let Err(error) = promtool(&["check", "metrics"], text).await else {
        bail!("promtool has got used to the name of a gauge that ends in _total");
    };
    let error = error.to_string();
    let lines: Vec<&str> = error.lines().collect();
    let known = "node_readiness_rules_total non-counter metrics should not have \"_total\" suffix";
    assert!(lines.len() == 1 && lines[0].ends_with(known), "{error}");
    Ok(())
}
