//! Checks at the end of a scenario that `kubectl nodegate` agrees with what the controller has done and reported: which nodes
//! are held, by which rules, and why.
//!
//! It runs when a test stops its controller, and when the last test leaves a shared installation. It waits until both agree, as
//! changes may still be under way. A scenario whose end does not allow that opts out, with the reason
//! ([`crate::Controller::unasked`]).

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube_testbed::binaries::{Binaries, Component};
use serde_json::Value;

use crate::ask::ask_json_now;

/// How long until everything settles: longer than a lease, a pause in a contention, and a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);
/// The approximate number of nodes to check; those with a rule's taint come first.
const NODES: usize = 6;
/// The keys of taints that rules may add start like this.
const OURS: &str = "readiness.k8s.io/";

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
    pub(crate) fn hold(&self, goes_on: impl Fn() -> bool) -> Result<()> {
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

/// The report about a node matches its taints and published conditions.
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
        let is_tainted = is_held_by(node, rule, rules);
        let state = it["state"].as_str().unwrap_or_default();
        let is_done = match state {
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
        conditions_agree(it, node, rule).with_context(|| format!("rule {}", name(rule)))?;
    }
    Ok(())
}

/// The reported conditions match the rule's status, and their reasons match those published on the node.
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
        // What a rule makes of a condition stands in no other place.
        let mut required = items(&rule["spec"]["conditions"]).iter();
        let required = required.find(of_type);
        let is_judged = required.is_some_and(|it| !it["nodegate"].is_null());
        let published = items(&node["status"]["conditions"]).iter().find(of_type);
        let is_same_source = condition["source"] != "reporter" && !is_judged;
        let Some(published) = published.filter(|_| is_same_source) else {
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

/// Whether the node has a taint that the rule removes: another project's whatever its effect, unless another rule names that.
fn is_held_by(node: &Value, rule: &Value, rules: &[&Value]) -> bool {
    let (key, _) = taint(rule);
    let is_foreign = !key.as_str().is_some_and(|it| it.starts_with(OURS));
    let mut taints = items(&node["spec"]["taints"]).iter();
    has_taint(node, &taint(rule))
        || taints.any(|it| {
            let of_another = rules.iter().any(|rule| taint(rule) == (key, &it["effect"]));
            is_foreign && it["key"] == *key && !of_another
        })
}

fn has_taint(node: &Value, (key, effect): &(&Value, &Value)) -> bool {
    let mut taints = items(&node["spec"]["taints"]).iter();
    taints.any(|it| it["key"] == **key && it["effect"] == **effect)
}
