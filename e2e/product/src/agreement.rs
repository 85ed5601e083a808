//! At the end of a scenario `kubectl nodegate` is asked, and has to say what the controller has done and said: which nodes are
//! held, by which rules, and why.
//!
//! It is asked where a controller comes to its end with its test, and where the last test leaves a shared installation. It waits
//! until both agree: what is under way then comes to rest. A scenario at whose end they cannot agree says so, with the reason
//! ([`crate::Controller::unasked`]).

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube_testbed::binaries::{Binaries, Component};
use serde_json::Value;

use crate::ask::ask_json_now;

/// How long it may take until all is at rest: longer than a lease, a pause in a contention, and a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);
/// About how many nodes it is asked at most: those with a taint of a rule's come first.
const NODES: usize = 6;

/// What is asked, and where.
#[derive(Debug, Clone)]
pub struct Question {
    /// Of somebody who may do everything.
    pub kubeconfig: PathBuf,
    /// How the controller is configured, where it has a file for that.
    pub config: Option<String>,
}

impl Question {
    /// Asks until what is said is what has been done, for as long as `goes_on` says so.
    pub fn hold(&self, goes_on: impl Fn() -> bool) -> Result<()> {
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
        let is_tainted = |node: &Value| rules.iter().any(|rule| has_taint(node, &taint(rule)));
        nodes.sort_by_key(|node| !is_tainted(node));
        for node in nodes.into_iter().take(NODES) {
            let said = self.ask(&["explain", &format!("node/{}", name(node))])?;
            node_agrees(&said, node, &rules).with_context(|| format!("node {}", name(node)))?;
        }
        Ok(())
    }

    /// Nodes and rules, as kubectl reads them; none where there are no rules to be had: no resource of that kind, or nobody who
    /// answers.
    fn objects(&self) -> Result<Option<Value>> {
        let output = Command::new(Binaries::locate()?.path(Component::Kubectl)?)
            .args(["get", "nodes,nodereadinessrules", "-o", "json"])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.kubeconfig.with_extension("cache"))
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

/// What is counted for a rule is what its status counts, where the controller is to change something for it.
fn counts_agree(said: &Value, rule: &Value) -> Result<()> {
    let status = &rule["status"];
    let conditions = items(&status["conditions"]);
    let mut conditions = conditions.iter();
    let has_conflict = conditions.any(|it| it["type"] == "Conflicted" && it["status"] == "True");
    if said["state"] != "inForce" || has_conflict {
        return Ok(());
    }
    for (ours, theirs) in [("matched", "matchedNodes"), ("held", "heldNodes")] {
        // A definition of rules that is not ours may not keep it.
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

/// What is said of a node is what has been done there, and published.
fn node_agrees(said: &Value, node: &Value, rules: &[&Value]) -> Result<()> {
    if ["leftAlone", "deleting"]
        .iter()
        .any(|it| said["verdict"] == *it)
    {
        return Ok(());
    }
    for it in items(&said["rules"]) {
        let rule = rules.iter().find(|rule| it["rule"] == name(rule));
        let rule = rule.context("a rule that is not there")?;
        let is_tainted = has_taint(node, &taint(rule));
        let state = it["state"].as_str().unwrap_or_default();
        let is_done = match state {
            "held" => is_tainted,
            "open" | "spared" => !is_tainted,
            "closing" | "opening" => false,
            "suspended" => continue,
            _ => true,
        };
        ensure!(
            is_done && it["tainted"] == is_tainted,
            "is {state} by rule {}, and its taint is there: {is_tainted}: {it:#}",
            name(rule)
        );
        conditions_agree(it, node, rule).with_context(|| format!("rule {}", name(rule)))?;
    }
    Ok(())
}

/// What conditions are said to be is what they are in the rule's status, and why is what is published on the node.
fn conditions_agree(said: &Value, node: &Value, rule: &Value) -> Result<()> {
    let listed = items(&rule["status"]["nodeEvaluations"]);
    let listed = listed.iter().find(|it| it["nodeName"] == name(node));
    let results = listed.map_or(&[][..], |it| items(&it["conditionResults"]));
    for condition in items(&said["conditions"]) {
        let of_type = |it: &&Value| it["type"] == condition["type"];
        if let Some(result) = results.iter().find(of_type) {
            let is_same = result["currentStatus"] == condition["status"]
                || result["currentStatus"] == "Unknown"
                    && result["defaultStatus"] == condition["status"];
            ensure!(is_same, "{condition:#}, and in its status {result}");
        }
        let published = items(&node["status"]["conditions"]).iter().find(of_type);
        let Some(published) = published.filter(|_| condition["source"] != "reporter") else {
            continue;
        };
        let told = published["message"].as_str().unwrap_or_default();
        let message = condition["message"].as_str().unwrap_or_default();
        let is_same = published["status"] == condition["status"]
            && published["reason"] == condition["reason"]
            && message.ends_with(told);
        if !is_same {
            bail!("{condition:#}, and published {published:#}");
        }
    }
    Ok(())
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn taint(rule: &Value) -> (&Value, &Value) {
    let taint = &rule["spec"]["taint"];
    (&taint["key"], &taint["effect"])
}

fn has_taint(node: &Value, (key, effect): &(&Value, &Value)) -> bool {
    let mut taints = items(&node["spec"]["taints"]).iter();
    taints.any(|it| it["key"] == **key && it["effect"] == **effect)
}
