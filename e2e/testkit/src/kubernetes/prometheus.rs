//! A real Prometheus beside a cluster, and promtool.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::fetch::Fetch;
use crate::kubernetes::go_module::{GoModule, PROMETHEUS};
use crate::kubernetes::process::Process;
use crate::kubernetes::wait::eventually;
use crate::kubernetes::{ports, tool};

const STARTUP: Duration = Duration::from_secs(60);

/// A running Prometheus. Killed when dropped.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    url: String,
}

impl Prometheus {
    /// Starts it with this configuration, in the cluster's folder, and waits until it is ready.
    pub async fn start(cluster: &Cluster, configuration: &str) -> Result<Self> {
        let port = ports::free()?;
        let folder = cluster.folder().join(format!("prometheus-{port}"));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let file = folder.join("prometheus.yaml");
        fs::write(&file, configuration).context("writing Prometheus's configuration")?;
        let mut command = Command::new(GoModule::binary(&PROMETHEUS, "prometheus")?);
        command
            .current_dir(&folder)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let log = folder.join("prometheus.log");
        let process = Process::start("prometheus", command, log, cluster.lifetime())?;
        let mut prometheus = Self {
            process,
            url: format!("http://127.0.0.1:{port}"),
        };
        let url = format!("{}/-/ready", prometheus.url);
        eventually("Prometheus is ready", STARTUP, async || {
            prometheus.process.ensure_running()?;
            Ok(Fetch::anonymous().get(&url).await?.status == 200)
        })
        .await?;
        Ok(prometheus)
    }

    /// The current value of an expression: one object for each series, with `metric` and `value`.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>> {
        let parameters = format!("?query={}", encoded(expression));
        let answer = self.get("query", &parameters).await;
        let result = answer.with_context(|| expression.to_owned())?;
        match result["result"].as_array() {
            Some(series) => Ok(series.clone()),
            None => Ok(Vec::new()),
        }
    }

    /// Its scrape targets: one object each, with `labels`, `health` and `lastError`.
    pub async fn targets(&self) -> Result<Vec<Value>> {
        let data = self.get("targets", "").await?;
        Ok(data["activeTargets"]
            .as_array()
            .cloned()
            .unwrap_or_default())
    }

    /// Its alerting rules: one object each, with `name`, `health`, `lastError` and `state`.
    pub async fn alerting_rules(&self) -> Result<Vec<Value>> {
        let data = self.get("rules", "?type=alert").await?;
        let groups = data["groups"].as_array().cloned().unwrap_or_default();
        Ok(groups
            .iter()
            .filter_map(|group| group["rules"].as_array())
            .flatten()
            .cloned()
            .collect())
    }

    async fn get(&self, what: &str, parameters: &str) -> Result<Value> {
        let url = format!("{}/api/v1/{what}{parameters}", self.url);
        let answer = Fetch::anonymous().get(&url).await?;
        let mut body: Value = serde_json::from_str(&answer.text)
            .with_context(|| format!("Prometheus answered {}", answer.text))?;
        ensure!(answer.status == 200, "{}", body["error"]);
        Ok(body["data"].take())
    }
}

/// Runs promtool and returns what it printed.
pub async fn promtool(arguments: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new(GoModule::binary(&PROMETHEUS, "promtool")?);
    command.args(arguments);
    tool::run(command, input).await
}

/// Percent-encodes a text for a URL.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
