//! The node lifecycle controller: it taints nodes that are not Ready, evicts pods that do not tolerate a `NoExecute` taint, and
//! marks the pods on a lost node not Ready.

use serde_json::{Value, json};

use super::ask::{
    condition, delete, is_going, items, node_key, pods_on, report, set_taints, taints, text,
};
use super::due::Due;
use super::placement::keeps;
use crate::Kind;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};

const LIFECYCLE: &str = "node-lifecycle-controller";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

#[derive(Debug, Default)]
pub struct Lifecycle {
    due: Due<Task>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Sets a node's taints to match its Ready condition.
    Taint(String),
    /// Evicts the pods that may not stay on a node.
    Evict(String),
    /// Marks a node lost, since its kubelet is silent.
    Lose(String),
    /// Marks the pods on a lost node not Ready.
    Silence(String),
}

impl Lifecycle {
    /// Marks this node lost at this time, when its kubelet has been dead for long enough.
    pub fn loses(mut self, at: Time, node: &str) -> Self {
        self.due.at(at, Task::Lose(node.to_owned()));
        self
    }
}

impl Actor for Lifecycle {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, rng: &mut Rng) {
        while let Some(task) = self.due.take(cluster.now()) {
            match task {
                Task::Taint(name) => taint(cluster, &name),
                Task::Evict(name) => evict(cluster, &name),
                Task::Lose(name) => {
                    let unknown = ("Ready", "Unknown");
                    report(cluster, LIFECYCLE, &node_key(&name), unknown, json!({}));
                    let at = cluster.now() + rng.between(ms(100), s(2));
                    self.due.at(at, Task::Silence(name));
                }
                Task::Silence(name) => silence(cluster, &name),
            }
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        let (Kind::Node, Some(node)) = (change.key.kind, &change.after) else {
            return;
        };
        if wanted(node).as_slice() != passing(node) {
            let at = change.at + rng.between(ms(50), ms(1000));
            self.due.at(at, Task::Taint(change.key.name.clone()));
        }
        let before = change.before.as_deref();
        let executes = |taint: &&Value| taint["effect"] == "NoExecute";
        let old = |taint: &&Value| before.is_some_and(|before| taints(before).contains(taint));
        if taints(node).iter().filter(executes).any(|it| !old(&it)) {
            let at = change.at + rng.between(ms(20), ms(200));
            self.due.at(at, Task::Evict(change.key.name.clone()));
        }
    }
}

/// The taints that match a node's Ready condition, as key and effect.
fn wanted(node: &Value) -> Vec<(&'static str, &'static str)> {
    match condition(node, "Ready") {
        "True" => Vec::new(),
        "Unknown" => vec![(UNREACHABLE, "NoExecute"), (UNREACHABLE, "NoSchedule")],
        // Pods are not evicted from a node that has never been Ready.
        _ => vec![(NOT_READY, "NoSchedule")],
    }
}

fn is_ours(taint: &Value) -> bool {
    [NOT_READY, UNREACHABLE].contains(&text(&taint["key"]))
}

fn passing(node: &Value) -> Vec<(&str, &str)> {
    let ours = taints(node).iter().filter(|taint| is_ours(taint));
    let mut ours: Vec<_> = ours
        .map(|taint| (text(&taint["key"]), text(&taint["effect"])))
        .collect();
    ours.sort_unstable();
    ours
}

fn taint(cluster: &mut Cluster, name: &str) {
    let Some(node) = cluster.get(&node_key(name)).cloned() else {
        return;
    };
    let wanted = wanted(&node);
    if wanted.as_slice() == passing(&node) {
        return;
    }
    let theirs = taints(&node)
        .iter()
        .filter(|taint| !is_ours(taint))
        .cloned();
    let now = cluster.wall().strftime("%FT%TZ").to_string();
    let ours = wanted
        .iter()
        .map(|(key, effect)| json!({"key": key, "effect": effect, "timeAdded": now}));
    let taints: Vec<Value> = theirs.chain(ours).collect();
    // Nobody has written the node since it was read.
    let _ = set_taints(cluster, LIFECYCLE, &node, &taints);
}

fn evict(cluster: &mut Cluster, name: &str) {
    let Some(node) = cluster.get(&node_key(name)).cloned() else {
        return;
    };
    for (key, pod) in pods_on(cluster, name) {
        if !is_going(&pod) && !keeps(&node, items(&pod["spec"]["tolerations"])) {
            let _ = delete(cluster, LIFECYCLE, &key, None);
        }
    }
}

fn silence(cluster: &mut Cluster, name: &str) {
    let is_lost = cluster
        .get(&node_key(name))
        .is_some_and(|node| condition(node, "Ready") == "Unknown");
    if !is_lost {
        return;
    }
    for (key, pod) in pods_on(cluster, name) {
        if condition(&pod, "Ready") == "True" {
            report(cluster, LIFECYCLE, &key, ("Ready", "False"), json!({}));
        }
    }
}
