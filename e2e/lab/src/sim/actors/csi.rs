//! CSI registration: the kubelet makes a `CSINode` for its node, and drivers appear in it as they register.
//!
//! A driver that registers by itself is in the `CSINode` some time after each boot, as it was before. One that a plugin's pods
//! register is as on a real node: whenever such a pod turns Ready, the kubelet finds the driver's socket replaced, takes the driver
//! out if it was there, and puts it in.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask::{condition, create, items, merge, node_key, text, uid};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind, Part};

const CSI: &str = "csi";

/// CSI drivers on all nodes.
#[derive(Debug)]
pub struct Csi {
    due: Due<Task>,
    drivers: Vec<Driver>,
    plugins: Vec<Plugin>,
    /// The boot of each node for which drivers register, as its UID and boot ID say it.
    boots: BTreeMap<String, String>,
}

/// A driver that registers on each node.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// Its name.
    pub name: &'static str,
    /// How long after the node has registered or booted it does, at the least and at the most.
    pub after: (Time, Time),
}

/// A driver that pods register.
#[derive(Debug)]
struct Plugin {
    driver: &'static str,
    /// The pods' label `app`.
    app: &'static str,
}

impl Plugin {
    /// The node on which it is found with another socket by this change.
    fn has_started<'a>(&self, change: &'a Change) -> Option<&'a str> {
        let pod = change.after.as_deref()?;
        let was_ready = change
            .before
            .as_deref()
            .is_some_and(|before| condition(before, "Ready") == "True");
        let is_its = pod["metadata"]["labels"]["app"] == self.app;
        let starts = is_its && !was_ready && condition(pod, "Ready") == "True";
        starts.then(|| text(&pod["spec"]["nodeName"]))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Makes the node's `CSINode`.
    Begin(String),
    /// Has a driver register.
    Register(String, &'static str),
    /// Has a driver vanish on this node, or on all.
    Vanish(String, &'static str),
}

impl Csi {
    /// With these drivers.
    #[must_use]
    pub fn new(drivers: Vec<Driver>) -> Self {
        Self {
            due: Due::default(),
            drivers,
            plugins: Vec::new(),
            boots: BTreeMap::new(),
        }
    }

    /// With a driver that the pods with this label `app` register.
    #[must_use]
    pub fn by_pods(mut self, driver: &'static str, app: &'static str) -> Self {
        self.plugins.push(Plugin { driver, app });
        self
    }

    /// Has a driver vanish on a node then, and return after a while, if at all.
    #[must_use]
    pub fn vanishes(
        mut self,
        at: Time,
        node: &str,
        driver: &'static str,
        returns: Option<Time>,
    ) -> Self {
        self.due.at(at, Task::Vanish(node.to_owned(), driver));
        if let Some(after) = returns {
            self.due
                .at(at + after, Task::Register(node.to_owned(), driver));
        }
        self
    }
}

impl Actor for Csi {
    fn name(&self) -> &'static str {
        CSI
    }

    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some(task) = self.due.take(cluster.now()) {
            let is_done = match &task {
                Task::Begin(node) => begin(cluster, node),
                Task::Register(node, driver) => set(cluster, node, driver, true),
                Task::Vanish(node, driver) => set(cluster, node, driver, false),
            };
            if !is_done {
                self.due.at(cluster.now() + s(1), task);
            }
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        if change.key.kind == Kind::Pod {
            self.pod_changed(change, rng);
        }
        let (Kind::Node, name) = (change.key.kind, &change.key.name) else {
            return;
        };
        let Some(node) = &change.after else {
            self.boots.remove(name);
            return;
        };
        let boot = text(&node["status"]["nodeInfo"]["bootID"]);
        let boot = format!("{} {boot}", uid(node));
        if self.boots.get(name) == Some(&boot) {
            return;
        }
        self.boots.insert(name.clone(), boot);
        let begin = change.at + rng.between(ms(200), ms(900));
        self.due.at(begin, Task::Begin(name.clone()));
        for driver in &self.drivers {
            let at = change.at + rng.between(driver.after.0, driver.after.1);
            self.due
                .at(at.max(begin), Task::Register(name.clone(), driver.name));
        }
    }
}

impl Csi {
    fn pod_changed(&mut self, change: &Change, rng: &mut Rng) {
        for plugin in &self.plugins {
            let Some(node) = plugin.has_started(change) else {
                continue;
            };
            let out = change.at + rng.between(ms(50), ms(1500));
            let back = out + rng.between(ms(200), s(2));
            let (node, driver) = (node.to_owned(), plugin.driver);
            self.due.at(out, Task::Vanish(node.clone(), driver));
            self.due.at(back, Task::Register(node, driver));
        }
    }
}

fn csi_key(node: &str) -> Key {
    Key::cluster(Kind::CsiNode, node)
}

/// Whether the `CSINode` is there, or need not be any more.
fn begin(cluster: &mut Cluster, node: &str) -> bool {
    let Some(owner) = cluster
        .get(&node_key(node))
        .map(|node| uid(node).to_owned())
    else {
        return true;
    };
    if let Some(csi_node) = cluster.get(&csi_key(node)) {
        return is_of(csi_node, &owner);
    }
    let reference = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": owner});
    let object = json!({"metadata": {"ownerReferences": [reference]}, "spec": {"drivers": []}});
    create(cluster, CSI, csi_key(node), object).is_ok()
}

/// Whether the driver is registered as it should be, or need not be any more.
fn set(cluster: &mut Cluster, node: &str, driver: &str, is_there: bool) -> bool {
    let Some(owner) = cluster
        .get(&node_key(node))
        .map(|node| uid(node).to_owned())
    else {
        return true;
    };
    let Some(csi_node) = cluster.get(&csi_key(node)).cloned() else {
        return false;
    };
    if !is_of(&csi_node, &owner) {
        return false;
    }
    let drivers = items(&csi_node["spec"]["drivers"]);
    let others = drivers.iter().filter(|it| it["name"] != driver).cloned();
    let this = json!({"name": driver, "nodeID": node, "allocatable": {"count": 8}});
    let drivers: Vec<Value> = others.chain(is_there.then_some(this)).collect();
    let patch = json!({"spec": {"drivers": drivers}});
    merge(cluster, CSI, &csi_key(node), Part::Main, patch).is_ok()
}

fn is_of(csi_node: &Value, owner: &str) -> bool {
    let owners = items(&csi_node["metadata"]["ownerReferences"]);
    owners.iter().all(|it| it["uid"] == owner)
}
