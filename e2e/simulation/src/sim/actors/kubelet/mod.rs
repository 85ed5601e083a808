//! The kubelets of all nodes: each registers its machine, reports Ready, sends heartbeats, runs the pods on its node, and may
//! reboot, freeze, die and return.

mod machine;
mod pods;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use machine::{Machine, ZONE, machines};
pub use pods::READY_AFTER;

use super::ask::{condition_now, create, delete, items, node_key, report, text, write_status};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind};

const KUBELET: &str = "kubelet";

/// The time from boot to Ready.
const READY: Time = s(3);
/// The kubelet's own heartbeat (`nodeStatusReportFrequency`).
const BEAT: Time = s(300);

/// An incident on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It is off for this long, then boots. The node keeps its old status until the kubelet writes it again.
    Reboot(Time),
    /// It dies for good.
    Die,
    /// Its kubelet is silent for this long, then continues as if nothing had happened.
    Freeze(Time),
    /// Its node is deleted, and registers again under the same name this much later.
    Replace(Time),
    /// Its node is deleted and never returns.
    Leave,
    /// It offers this amount of a resource from now on; after a reboot none, until the device plugin has registered again.
    Offer(&'static str, &'static str),
    /// The pods with this label `app` are not Ready on it for this long.
    Fail(&'static str, Time),
}

#[derive(Debug, Default)]
pub struct Kubelets {
    machines: BTreeMap<String, State>,
    due: Due<Task>,
    deeds: Vec<(String, Deed)>,
    failures: Vec<Failure>,
}

#[derive(Debug)]
struct State {
    machine: Machine,
    boot: u32,
    runs: bool,
    /// The resources that device plugins offer on it.
    offered: BTreeMap<&'static str, &'static str>,
}

/// An application whose pods are not Ready: on this node, or on all if none is named.
#[derive(Debug)]
struct Failure {
    app: &'static str,
    node: String,
    until: Time,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Register(String),
    Boot(String),
    Ready(String, u32),
    Beat(String, u32),
    Pods(String, u32),
    Offer(String, u32),
    Thaw(String, u32),
    Deed(usize),
    Start(Key),
    End(Key),
}

impl Kubelets {
    /// Runs the kubelets of these machines.
    pub fn new(machines: Vec<Machine>) -> Self {
        let mut kubelets = Self::default();
        for machine in machines {
            kubelets.add(machine);
        }
        kubelets
    }

    /// Schedules an incident on a machine; an empty name means all machines.
    pub fn then(mut self, at: Time, machine: &str, deed: Deed) -> Self {
        self.due.at(at, Task::Deed(self.deeds.len()));
        self.deeds.push((machine.to_owned(), deed));
        self
    }

    fn add(&mut self, machine: Machine) {
        let name = machine.name.clone();
        self.due.at(machine.boots, Task::Register(name.clone()));
        let state = State {
            machine,
            boot: 0,
            runs: false,
            offered: BTreeMap::new(),
        };
        self.machines.insert(name, state);
    }

    fn runs(&self, name: &str) -> bool {
        self.machines.get(name).is_some_and(|state| state.runs)
    }

    /// Boots a machine, and schedules its next task.
    fn booted(&mut self, name: &str, now: Time, rng: &mut Rng) -> Option<&State> {
        let state = self.machines.get_mut(name)?;
        state.boot += 1;
        state.runs = true;
        let ready = now + READY;
        let beat = now + rng.between(BEAT / 2, BEAT);
        self.due.at(ready, Task::Ready(name.to_owned(), state.boot));
        self.due.at(beat, Task::Beat(name.to_owned(), state.boot));
        self.machines.get(name)
    }

    fn register(&mut self, cluster: &mut Cluster, name: String, rng: &mut Rng) {
        let now = cluster.now();
        if cluster.get(&node_key(&name)).is_some() {
            // The old node must be deleted first.
            self.due.at(now + s(1), Task::Register(name));
            return;
        }
        let Some(state) = self.booted(&name, now, rng) else {
            return;
        };
        let not_ready = condition_now(cluster, &Value::Null, "Ready", "False");
        let node = state.machine.node(state.boot, &not_ready);
        // No node has this name, so the server cannot refuse.
        let _ = create(cluster, KUBELET, node_key(&name), node);
        // Pods of an earlier node of this name now belong to this one.
        self.look_at_pods(cluster, &name, rng);
    }

    fn boot(&mut self, cluster: &mut Cluster, name: &str, rng: &mut Rng) {
        let Some(state) = self.booted(name, cluster.now(), rng) else {
            return;
        };
        let info = json!({"bootID": state.machine.boot_id(state.boot)});
        let mut status = json!({"nodeInfo": info});
        let boot = state.boot;
        if !state.offered.is_empty() {
            let none = state
                .offered
                .keys()
                .map(|it| ((*it).to_owned(), json!("0")));
            status["allocatable"] = none.collect();
            let again = cluster.now() + rng.between(s(1), s(8));
            self.due.at(again, Task::Offer(name.to_owned(), boot));
        }
        write_node(cluster, name, "False", status);
        self.look_at_pods(cluster, name, rng);
    }

    /// Updates the pods of a kubelet that has just booted, now or after a delay.
    fn look_at_pods(&mut self, cluster: &mut Cluster, name: &str, rng: &mut Rng) {
        match self.machines.get(name) {
            Some(state) if state.machine.pods_after > Time::ZERO => {
                let at = cluster.now() + state.machine.pods_after;
                self.due.at(at, Task::Pods(name.to_owned(), state.boot));
            }
            _ => self.restart_pods(cluster, name, rng),
        }
    }

    fn do_to_all(&mut self, cluster: &mut Cluster, name: &str, deed: &Deed) {
        let now = cluster.now();
        if let Deed::Fail(app, lasts) = deed {
            let until = now.checked_add(*lasts).unwrap_or(Time::MAX);
            self.failures.push(Failure {
                app,
                node: name.to_owned(),
                until,
            });
            self.fail_pods(cluster, app, until);
            return;
        }
        let is_meant = |it: &&String| name.is_empty() || **it == name;
        let names: Vec<String> = self.machines.keys().filter(is_meant).cloned().collect();
        for name in names {
            self.do_to(cluster, name, deed);
        }
    }

    fn do_to(&mut self, cluster: &mut Cluster, name: String, deed: &Deed) {
        let now = cluster.now();
        let Some(state) = self.machines.get_mut(&name) else {
            return;
        };
        if let Deed::Offer(resource, quantity) = deed {
            state.offered.insert(resource, quantity);
            return self.offer(cluster, &name);
        }
        state.runs = false;
        let boot = state.boot;
        if matches!(deed, Deed::Replace(_) | Deed::Leave) {
            // The node may be deleted already.
            let _ = delete(cluster, "cloud", &node_key(&name), None);
        }
        match deed {
            Deed::Reboot(down) => self.due.at(now + *down, Task::Boot(name)),
            Deed::Replace(down) => self.due.at(now + *down, Task::Register(name)),
            Deed::Leave => {
                self.machines.remove(&name);
            }
            Deed::Freeze(lasts) => self.due.at(now + *lasts, Task::Thaw(name, boot)),
            Deed::Die | Deed::Offer(..) | Deed::Fail(..) => {}
        }
    }

    /// Reports the resources of device plugins.
    fn offer(&self, cluster: &mut Cluster, name: &str) {
        let Some(state) = self.machines.get(name) else {
            return;
        };
        let allocatable = json!({"allocatable": state.offered});
        // The node may be gone.
        let _ = write_status(cluster, KUBELET, &node_key(name), &allocatable);
    }

    fn thaw(&mut self, cluster: &mut Cluster, name: &str, boot: u32, rng: &mut Rng) {
        let state = self.machines.get_mut(name);
        // The machine has rebooted since, so its kubelet runs already.
        let Some(state) = state.filter(|state| !state.runs && state.boot == boot) else {
            return;
        };
        state.runs = true;
        let now = cluster.now();
        let ready = now + rng.between(ms(200), s(1));
        self.due.at(ready, Task::Ready(name.to_owned(), boot));
        self.due.at(now + BEAT, Task::Beat(name.to_owned(), boot));
        self.catch_up_with_pods(cluster, name, rng);
    }

    /// Turns an instance that Karpenter has launched into a machine.
    fn launch(&mut self, claim: &Value, now: Time, rng: &mut Rng) {
        let name = text(&claim["metadata"]["name"]);
        if claim["status"]["providerID"].is_null() || self.machines.contains_key(name) {
            return;
        }
        let mut machine = Machine::new(name).boots(now + rng.between(s(1), s(4)));
        let spec = &claim["spec"];
        machine.taints = [&spec["taints"], &spec["startupTaints"]]
            .into_iter()
            .flat_map(items)
            .cloned()
            .collect();
        machine = machine.taint("karpenter.sh/unregistered", "NoExecute");
        self.add(machine);
    }

    fn is_current(&self, name: &str, boot: u32) -> bool {
        let state = self.machines.get(name);
        state.is_some_and(|state| state.runs && state.boot == boot)
    }
}

impl Actor for Kubelets {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, rng: &mut Rng) {
        while let Some(task) = self.due.take(cluster.now()) {
            match task {
                Task::Register(name) => self.register(cluster, name, rng),
                Task::Boot(name) => self.boot(cluster, &name, rng),
                Task::Ready(name, boot) if self.is_current(&name, boot) => {
                    write_node(cluster, &name, "True", json!({}));
                }
                Task::Beat(name, boot) if self.is_current(&name, boot) => {
                    write_node(cluster, &name, "True", json!({}));
                    self.due.at(cluster.now() + BEAT, Task::Beat(name, boot));
                }
                Task::Pods(name, boot) if self.is_current(&name, boot) => {
                    self.restart_pods(cluster, &name, rng);
                }
                Task::Offer(name, boot) if self.is_current(&name, boot) => {
                    self.offer(cluster, &name);
                }
                Task::Ready(..) | Task::Beat(..) | Task::Pods(..) | Task::Offer(..) => {}
                Task::Thaw(name, boot) => self.thaw(cluster, &name, boot, rng),
                Task::Deed(number) => {
                    let (name, deed) = self.deeds[number].clone();
                    self.do_to_all(cluster, &name, &deed);
                }
                Task::Start(key) => self.pod_is_ready(cluster, key),
                Task::End(key) => self.end_pod(cluster, &key),
            }
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        match (change.key.kind, &change.after) {
            (Kind::Pod, Some(pod)) => self.pod_changed(change, pod, rng),
            (Kind::NodeClaim, Some(claim)) => self.launch(claim, change.at, rng),
            (Kind::NodeClaim, None) => {
                self.machines.remove(&change.key.name);
            }
            _ => {}
        }
    }
}

fn write_node(cluster: &mut Cluster, name: &str, ready: &str, status: Value) {
    report(cluster, KUBELET, &node_key(name), ("Ready", ready), status);
}
