//! A reporter of a node condition, on every node: it writes at first sight, at each change and at each beat; it dies, lies
//! and flaps as it is told.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask::{condition_now, node_key, text, uid, write_status};
use super::due::Due;
use super::kubelet::ZONE;
use crate::Kind;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, s};

const REPORTER: &str = "reporter";

/// A reporter.
#[derive(Debug)]
pub struct Reporter {
    /// The type of the condition.
    condition: &'static str,
    /// What it says of a node where all is well.
    good: &'static str,
    /// How long after a node has registered or booted it first says so, at the least and at the most.
    first: (Time, Time),
    /// How often it says the same again.
    beat: Time,
    due: Due<Task>,
    orders: Vec<(Which, Order)>,
    nodes: BTreeMap<String, State>,
    /// Nodes of which it has nothing good to say until it is told.
    ailing: Vec<&'static str>,
    /// How often it has begun, on any node.
    lives: u32,
}

/// Nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// The one of this name.
    Node(&'static str),
    /// Those in this zone.
    Zone(&'static str),
}

/// What a reporter is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To say this from now on.
    Say(&'static str),
    /// To say the same as always, at once.
    SayGood,
    /// To be silent: it is dead.
    Die,
    /// To begin anew.
    Revive,
}

#[derive(Debug)]
struct State {
    /// The node's UID and the boot ID that it has seen.
    boot: String,
    zone: String,
    says: &'static str,
    is_dead: bool,
    /// Which of its beginnings this is; what was planned in another one is void.
    life: u32,
    has_begun: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Speaks of a node and goes on with it, in this life.
    Beat(String, u32),
    /// Does what it was told, by the number of the order.
    Obey(usize),
}

impl Reporter {
    /// One that says `True` of each node 2 to 8 seconds after it has come, and again every minute.
    #[must_use]
    pub fn new(condition: &'static str) -> Self {
        Self {
            condition,
            good: "True",
            first: (s(2), s(8)),
            beat: s(60),
            due: Due::default(),
            orders: Vec::new(),
            nodes: BTreeMap::new(),
            ailing: Vec::new(),
            lives: 0,
        }
    }

    /// One that names a problem: `False` is good.
    #[must_use]
    pub fn of_problem(condition: &'static str) -> Self {
        Self {
            good: "False",
            ..Self::new(condition)
        }
    }

    /// It first speaks of a node so long after it has come, at the least and at the most.
    #[must_use]
    pub fn first(mut self, least: Time, most: Time) -> Self {
        self.first = (least, most);
        self
    }

    /// It beats this often.
    #[must_use]
    pub fn beat(mut self, beat: Time) -> Self {
        self.beat = beat;
        self
    }

    /// It has nothing good to say of this node, until it is told to.
    #[must_use]
    pub fn ails(mut self, node: &'static str) -> Self {
        self.ailing.push(node);
        self
    }

    /// Has it do this then.
    #[must_use]
    pub fn then(mut self, at: Time, which: Which, order: Order) -> Self {
        self.due.at(at, Task::Obey(self.orders.len()));
        self.orders.push((which, order));
        self
    }

    fn bad(&self) -> &'static str {
        if self.good == "True" { "False" } else { "True" }
    }

    fn obey(&mut self, cluster: &mut Cluster, which: Which, order: Order) {
        let good = self.good;
        let now = cluster.now();
        let mut speaking = Vec::new();
        for (name, state) in &mut self.nodes {
            let is_meant = match which {
                Which::All => true,
                Which::Node(node) => node == name,
                Which::Zone(zone) => zone == state.zone,
            };
            if !is_meant {
                continue;
            }
            match order {
                Order::Say(status) => state.says = status,
                Order::SayGood => state.says = good,
                Order::Die => state.is_dead = true,
                Order::Revive => {
                    state.is_dead = false;
                    self.lives += 1;
                    state.life = self.lives;
                    self.due
                        .at(now + self.beat, Task::Beat(name.clone(), state.life));
                }
            }
            if !state.is_dead && state.has_begun {
                speaking.push(name.clone());
            }
        }
        for name in speaking {
            self.speak(cluster, &name);
        }
    }

    fn speak(&self, cluster: &mut Cluster, name: &str) {
        let key = node_key(name);
        let Some(node) = cluster.get(&key).cloned() else {
            return;
        };
        let Some(state) = self.nodes.get(name) else {
            return;
        };
        let condition = condition_now(cluster, &node, self.condition, state.says);
        // It has just been there.
        let _ = write_status(cluster, REPORTER, &key, &json!({"conditions": [condition]}));
    }

    fn begin(&mut self, name: &str, node: &Value, boot: String, now: Time, rng: &mut Rng) {
        let is_ailing = self.ailing.contains(&name);
        let says = if is_ailing { self.bad() } else { self.good };
        self.lives += 1;
        let life = self.lives;
        let at = now + rng.between(self.first.0, self.first.1);
        self.due.at(at, Task::Beat(name.to_owned(), life));
        let state = State {
            boot,
            zone: text(&node["metadata"]["labels"][ZONE]).to_owned(),
            says,
            is_dead: false,
            life,
            has_begun: false,
        };
        self.nodes.insert(name.to_owned(), state);
    }
}

impl Actor for Reporter {
    fn name(&self) -> &'static str {
        REPORTER
    }

    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some(task) = self.due.take(cluster.now()) {
            match task {
                Task::Beat(name, life) => {
                    let Some(state) = self.nodes.get_mut(&name) else {
                        continue;
                    };
                    if state.is_dead || state.life != life {
                        continue;
                    }
                    state.has_begun = true;
                    self.speak(cluster, &name);
                    let next = cluster.now() + self.beat;
                    self.due.at(next, Task::Beat(name, life));
                }
                Task::Obey(number) => {
                    let (which, order) = self.orders[number];
                    self.obey(cluster, which, order);
                }
            }
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        let (Kind::Node, name) = (change.key.kind, &change.key.name) else {
            return;
        };
        let Some(node) = &change.after else {
            self.nodes.remove(name);
            return;
        };
        let boot = text(&node["status"]["nodeInfo"]["bootID"]);
        let boot = format!("{} {boot}", uid(node));
        if self.nodes.get(name).is_none_or(|state| state.boot != boot) {
            self.begin(name, node, boot, change.at, rng);
        }
    }
}
