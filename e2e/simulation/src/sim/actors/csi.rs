//! CSI registration: the kubelet creates the `CSINode` of its node, and drivers appear in it as they register.
//!
//! A driver that registers by itself appears in the `CSINode` some time after each boot. A driver that a plugin's pods register
//! behaves as on a real node: whenever such a pod becomes Ready, the kubelet finds a new socket, removes the driver if it is
//! listed, and adds it again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask::{boot, condition, create, items, merge, node_key, text, uid};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind, Part};

const CSI: &str = "csi";

/// CSI drivers on all nodes.
#[derive(Debug, Default)]
pub struct Csi {
    due: Due<Task>,
    /// A driver that registers on each node, and the shortest and the longest time to that from the node's registration or boot.
    driver: Option<(&'static str, Time, Time)>,
    plugin: Option<Plugin>,
    /// The boots for which drivers register: each node's UID and boot ID.
    boots: BTreeMap<String, String>,
}

/// A driver that a plugin's pods register.
#[derive(Debug)]
struct Plugin {
    driver: &'static str,
    /// The pods' label `app`.
    app: &'static str,
}

impl Plugin {
    /// The node on which this change replaces the driver's socket.
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
    Begin(String),
    Register(String, &'static str),
    Vanish(String, &'static str),
}

impl Csi {
    /// Registers this driver, at the earliest and at the latest this long after a node's registration or boot.
    pub fn of(driver: &'static str, least: Time, most: Time) -> Self {
        Self {
            driver: Some((driver, least, most)),
            ..Self::default()
        }
    }

    /// Has the pods with this label `app` register this driver.
    pub fn by_pods(driver: &'static str, app: &'static str) -> Self {
        Self {
            plugin: Some(Plugin { driver, app }),
            ..Self::default()
        }
    }

    /// Removes a driver from a node at this time; it returns after a while, if at all.
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
        let boot = boot(node);
        if self.boots.get(name) == Some(&boot) {
            return;
        }
        self.boots.insert(name.clone(), boot);
        let begin = change.at + rng.between(ms(200), ms(900));
        self.due.at(begin, Task::Begin(name.clone()));
        if let Some((driver, least, most)) = self.driver {
            let at = change.at + rng.between(least, most);
            let register = Task::Register(name.clone(), driver);
            self.due.at(at.max(begin), register);
        }
    }
}

impl Csi {
    fn pod_changed(&mut self, change: &Change, rng: &mut Rng) {
        let plugin = self.plugin.as_ref();
        let started = plugin.and_then(|it| Some((it.driver, it.has_started(change)?)));
        if let Some((driver, node)) = started {
            let out = change.at + rng.between(ms(50), ms(1500));
            let back = out + rng.between(ms(200), s(2));
            self.due.at(out, Task::Vanish(node.to_owned(), driver));
            self.due.at(back, Task::Register(node.to_owned(), driver));
        }
    }
}

fn csi_key(node: &str) -> Key {
    Key::cluster(Kind::CsiNode, node)
}

/// Creates the `CSINode`. Returns false if that must be retried.
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

/// Adds or removes the driver. Returns false if that must be retried.
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
