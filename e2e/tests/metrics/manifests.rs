//! What `config/prometheus` applies: the alerts fire when they should, and both forms of them agree. `documentation` applies it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use testkit::nodegate::install::{config, manifests};
use testkit::nodegate::prometheus::promtool;

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

fn alerts() -> Result<Value> {
    read(&config("prometheus").join("alerts.yaml"))
}

#[tokio::test]
async fn the_alerts_fire_when_they_should_and_only_then() -> Result<()> {
    for (what, file) in [("check", "alerts.yaml"), ("test", "alerts_test.yaml")] {
        let path = config("prometheus").join(file);
        promtool(&[what, "rules", &path.to_string_lossy()], "").await?;
    }
    Ok(())
}

#[test]
fn every_alert_is_tested_and_says_what_to_do() -> Result<()> {
    let tests = fs::read_to_string(config("prometheus").join("alerts_test.yaml"))?;
    let alerts = alerts()?;
    let rules = alerts["groups"][0]["rules"].as_array();
    for rule in rules.context("no rules")? {
        let name = rule["alert"].as_str().context("a rule without a name")?;
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name}");
        for annotation in ["summary", "description"] {
            let text = rule["annotations"][annotation].as_str();
            assert!(text.is_some_and(|text| text.len() > 20), "{name}");
        }
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn the_operators_rule_is_the_rule_file() -> Result<()> {
    let rule = read(&manifests("prometheus").join("prometheus_rule.yaml"))?;
    assert_eq!(rule["spec"], alerts()?, "type: make generate");
    Ok(())
}

#[test]
fn the_monitor_finds_the_service_and_its_port() -> Result<()> {
    let service = read(&manifests("manager").join("metrics_service.yaml"))?;
    let monitor = read(&manifests("prometheus").join("monitor.yaml"))?;
    let wanted = &monitor["spec"]["selector"]["matchLabels"];
    assert_eq!(*wanted, service["metadata"]["labels"]);
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(endpoint["port"], service["spec"]["ports"][0]["name"]);
    assert_eq!(endpoint["path"], "/metrics");
    assert_eq!(endpoint["scheme"], "https");
    // An operator that keeps monitors from reading Prometheus' files refuses the whole monitor.
    assert_eq!(endpoint["bearerTokenFile"], Value::Null);
    Ok(())
}
