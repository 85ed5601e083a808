//! Alerts and dashboard in a real Prometheus, which scrapes the leader without TLS and a follower with a token over TLS.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;
use testkit::nodegate::install::{config, manifests};
use testkit::nodegate::prometheus::Prometheus;
use testkit::nodegate::{Cluster, Controller, Options, certificate, eventually, eventually_eq};

use super::{Endpoint, SOON, scene};

/// Prometheus's configuration: scrape targets and alerts.
fn configuration(cluster: &Cluster, leader: &Endpoint, follower: &Endpoint) -> String {
    let target = |endpoint: &Endpoint| {
        let address = endpoint.url.trim_end_matches("/metrics");
        address.rsplit('/').next().unwrap_or_default().to_owned()
    };
    format!(
        "
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{alerts}']
scrape_configs:
- job_name: leader
  static_configs: [{{targets: ['{leader}']}}]
- job_name: follower
  scheme: https
  authorization: {{credentials_file: '{folder}/reader.token'}}
  tls_config: {{ca_file: '{folder}/metrics-ca.pem'}}
  static_configs: [{{targets: ['{follower}']}}]
",
        alerts = config("prometheus").join("alerts.yaml").display(),
        folder = cluster.folder().display(),
        leader = target(leader),
        follower = target(follower),
    )
}

/// A cluster with two instances of the controller, and Prometheus.
struct Observatory {
    prometheus: Prometheus,
    _instances: [Controller; 2],
    _cluster: Cluster,
}

impl Observatory {
    async fn open() -> Result<Self> {
        let cluster = Cluster::start(Options::api_only()).await?;
        cluster.install().await?;
        let token = cluster.account("reader", "nrr-metrics-reader").await?;
        fs::write(cluster.folder().join("reader.token"), token)?;
        let certificates = cluster.folder().join("metrics-certs");
        let ca = certificate::write(&certificates)?;
        fs::write(cluster.folder().join("metrics-ca.pem"), ca)?;

        let (open, secure) = (Endpoint::new("http")?, Endpoint::new("https")?);
        let leader = Controller::start(&cluster, &["--leader-elect", &open.flag]).await?;
        scene::play(&cluster.client().await?).await?;
        let certificates = format!("--metrics-cert-dir={}", certificates.display());
        let arguments = [
            "--leader-elect",
            &secure.flag,
            "--metrics-secure",
            &certificates,
        ];
        let follower = Controller::start(&cluster, &arguments).await?;
        let configuration = configuration(&cluster, &open, &secure);
        Ok(Self {
            prometheus: Prometheus::start(&cluster, &configuration).await?,
            _instances: [leader, follower],
            _cluster: cluster,
        })
    }
}

#[tokio::test]
async fn alerts_and_dashboard_work_in_a_prometheus_that_scrapes_every_instance() -> Result<()> {
    let observatory = Observatory::open().await?;
    let prometheus = &observatory.prometheus;
    let health = async || {
        let targets = prometheus.targets().await?;
        let health = |target: &Value| format!("{} {}", target["health"], target["lastError"]);
        anyhow::Ok(targets.iter().map(health).collect::<Vec<_>>())
    };
    let up = vec!["\"up\" \"\"".to_owned(); 2];
    eventually_eq("both instances are scraped", SOON, up, health).await?;
    eventually_eq("one instance leads", SOON, 1, async || {
        let leading = prometheus.query("nodegate_leader == 1").await?;
        Ok(leading.len())
    })
    .await?;

    the_dashboard_shows_something_everywhere(prometheus).await?;
    the_alerts_are_about_metrics_that_there_are(prometheus).await
}

async fn the_dashboard_shows_something_everywhere(prometheus: &Prometheus) -> Result<()> {
    let expressions = dashboard_expressions()?;
    assert!(expressions.len() > 30, "{}", expressions.len());
    for (panel, expression) in expressions {
        // This one belongs to kube-state-metrics: it only needs to parse.
        if expression.contains("kube_node_spec_taint") {
            prometheus.query(&expression).await?;
            continue;
        }
        let what = format!("panel {panel:?} shows something: {expression}");
        // A rate needs two scrapes.
        eventually(&what, SOON, async || {
            Ok(!prometheus.query(&expression).await?.is_empty())
        })
        .await?;
    }
    let held = r#"max by (rule) (node_readiness_rule_nodes{state="held"}) > 0"#;
    let held = prometheus.query(held).await?;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0]["metric"]["rule"], "parts");
    Ok(())
}

/// Every query of the dashboard with its panel's title, as Grafana sends it.
fn dashboard_expressions() -> Result<Vec<(String, String)>> {
    let path = manifests("prometheus").join("dashboard.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let mut expressions = Vec::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().context("a panel without a title")?;
        let targets = panel["targets"]
            .as_array()
            .context("a panel without queries")?;
        for target in targets {
            let expression = target["expr"].as_str().context("a query without one")?;
            let expression = expression
                .replace("$__rate_interval", "30s")
                .replace("$rule", ".*");
            assert!(!expression.contains('$'), "{expression}");
            expressions.push((title.to_owned(), expression));
        }
    }
    Ok(expressions)
}

async fn the_alerts_are_about_metrics_that_there_are(prometheus: &Prometheus) -> Result<()> {
    let rules = eventually("the alerts are evaluated", SOON, async || {
        let rules = prometheus.alerting_rules().await?;
        let all = rules.iter().all(|rule| rule["health"] == "ok");
        Ok((all && !rules.is_empty()).then_some(rules))
    })
    .await?;
    for rule in &rules {
        let expression = rule["query"].as_str().context("an alert without a query")?;
        prometheus.query(expression).await?;
        for metric in metrics_of(expression) {
            let series = prometheus.query(&metric).await?;
            assert!(!series.is_empty(), "{}: {metric}", rule["name"]);
        }
    }
    // One alert is pending: a rule of the scene shuts a DaemonSet out, though not for long enough yet.
    let active = vec!["NodegateDaemonSetsShutOut".to_owned()];
    eventually_eq("alerts that are about to fire", SOON, active, async || {
        let rules = prometheus.alerting_rules().await?;
        let active = rules.iter().filter(|rule| rule["state"] != "inactive");
        Ok(active
            .filter_map(|rule| rule["name"].as_str())
            .map(ToOwned::to_owned)
            .collect())
    })
    .await
}

/// The metrics in an expression.
fn metrics_of(expression: &str) -> BTreeSet<String> {
    expression
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("nodegate_") || word.starts_with("node_readiness_"))
        .map(ToOwned::to_owned)
        .collect()
}
