//! Checks at the end of a scenario that `kubectl nodegate` agrees with what the controller has done: how many nodes each rule
//! holds, and which. The simulation's law of agreement goes further, into reasons and published conditions.
//!
//! It runs when a test stops its controller, and when the last test leaves a shared installation. It waits until both agree, as
//! changes may still be under way. A scenario whose end does not allow that opts out, with the reason
//! ([`crate::nodegate::Controller::unasked`]).

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kubernetes::binaries::{Binaries, Component};
use crate::nodegate::ask::ask_json_now;

/// How long until everything settles: longer than a lease, a pause in a contention, and a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);
/// How many nodes are explained; those with a rule's taint come first.
const NODES: usize = 2;

/// How to run `kubectl nodegate`.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// A kubeconfig with all permissions.
    pub kubeconfig: PathBuf,
    /// The controller's configuration file, if it has one.
    pub config: Option<String>,
}

impl Question {
    /// Retries until both agree, while `goes_on` returns true.
    pub(crate) fn agrees(&self, goes_on: impl Fn() -> bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Err(error) = self.compare() else {
                return Ok(());
            };
            if !goes_on() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(error.context("kubectl nodegate does not agree with the controller"));
            }
            thread::sleep(POLL);
        }
    }

    fn compare(&self) -> Result<()> {
        let Some(objects) = self.objects()? else {
            return Ok(());
        };
        let all = objects["items"].as_array().context("no list")?;
        let of =
            |kind: &str| -> Vec<&Value> { all.iter().filter(|it| it["kind"] == kind).collect() };
        let (rules, mut nodes) = (of("NodeReadinessRule"), of("Node"));
        if rules.is_empty() || nodes.is_empty() {
            return Ok(());
        }
        let status = self.ask(&["status"])?;
        for said in items(&status["rules"]) {
            let rule = rules.iter().find(|it| said["rule"] == name(it));
            counts_agree(said, rule.context("a rule that is not there")?)?;
        }
        let is_tainted = |node: &Value| rules.iter().any(|rule| has_taint(node, rule));
        nodes.sort_by_key(|node| !is_tainted(node));
        for node in nodes.into_iter().take(NODES) {
            let said = self.ask(&["explain", &format!("node/{}", name(node))])?;
            node_agrees(&said, node, &rules).with_context(|| format!("node {}", name(node)))?;
        }
        Ok(())
    }

    /// Nodes and rules, as kubectl reads them; `None` without a server or a definition of rules.
    fn objects(&self) -> Result<Option<Value>> {
        let output = Command::new(Binaries::locate()?.path(Component::Kubectl)?)
            .args(["get", "nodes,nodereadinessrules", "-o", "json"])
            .env("KUBECONFIG", &self.kubeconfig)
            .env(
                "KUBECACHEDIR",
                self.kubeconfig.with_file_name("kubectl-cache"),
            )
            .output()
            .context("running kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        let cannot = [
            "have a resource type",
            "refused",
            "could not find the requested",
        ];
        if cannot.iter().any(|it| complaint.contains(it)) {
            return Ok(None);
        }
        ensure!(output.status.success(), "kubectl: {complaint}");
        Ok(Some(serde_json::from_slice(&output.stdout)?))
    }

    fn ask(&self, arguments: &[&str]) -> Result<Value> {
        let mut arguments = arguments.to_vec();
        let config = self.config.as_ref();
        arguments.extend(config.into_iter().flat_map(|it| ["--config", it.as_str()]));
        ask_json_now(&self.kubeconfig, &arguments)
    }
}

/// The reported counts match the rule's status, unless the rule changes nothing.
fn counts_agree(said: &Value, rule: &Value) -> Result<()> {
    let status = &rule["status"]["nodegate"];
    if said["state"] != "inForce" {
        return Ok(());
    }
    for (ours, theirs) in [("matched", "matchedNodes"), ("held", "heldNodes")] {
        // Another project's definition of rules may drop the field.
        if status[theirs].is_null() {
            continue;
        }
        ensure!(
            said[ours] == status[theirs],
            "rule {}: {ours} is {}, and in its status {}",
            name(rule),
            said[ours],
            status[theirs]
        );
    }
    Ok(())
}

/// The report about a node matches its taints.
fn node_agrees(said: &Value, node: &Value, rules: &[&Value]) -> Result<()> {
    let is_left = ["leftAlone", "deleting"].map(|it| said["verdict"] == it);
    if is_left.contains(&true) {
        return Ok(());
    }
    for it in items(&said["rules"]) {
        let rule = rules.iter().find(|rule| it["rule"] == name(rule));
        let rule = rule.context("a rule that is not there")?;
        // Of another project's key, taints of all effects may count: the law knows which.
        if !is_ours(rule) {
            continue;
        }
        let is_tainted = has_taint(node, rule);
        let state = it["state"].as_str().unwrap_or_default();
        let why = it["why"].as_str().unwrap_or_default();
        let is_done = match state {
            // It says itself that the controller has not done what it should have.
            _ if why.starts_with("the controller has known this since") => false,
            "held" => is_tainted,
            "notHeld" | "waiting" => !is_tainted,
            "gating" | "releasing" => false,
            "suspended" => continue,
            _ => true,
        };
        ensure!(
            is_done && it["tainted"] == is_tainted,
            "is {state} by rule {}, and its taint is there: {is_tainted}: {it:#}",
            name(rule)
        );
    }
    Ok(())
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_ours(rule: &Value) -> bool {
    let key = rule["spec"]["taint"]["key"].as_str();
    key.is_some_and(|it| it.starts_with("readiness.k8s.io/"))
}

fn has_taint(node: &Value, rule: &Value) -> bool {
    let taint = &rule["spec"]["taint"];
    let mut taints = items(&node["spec"]["taints"]).iter();
    taints.any(|it| it["key"] == taint["key"] && it["effect"] == taint["effect"])
}
