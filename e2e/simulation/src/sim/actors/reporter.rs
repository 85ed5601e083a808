//! A reporter of a node condition, on every node: it reports on each new node, on changes and at intervals. Orders make it die,
//! lie or flap.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask::{boot, node_key, report, text};
use super::due::Due;
use super::kubelet::ZONE;
use crate::Kind;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, s};

const REPORTER: &str = "reporter";

#[derive(Debug)]
pub struct Reporter {
    condition: &'static str,
    /// The status that it reports for a healthy node.
    good: &'static str,
    /// The shortest and the longest time from a node's registration or boot to the first report.
    first: (Time, Time),
    /// How often it repeats its report.
    beat: Time,
    due: Due<Task>,
    orders: Vec<(Which, Order)>,
    nodes: BTreeMap<String, State>,
    /// Nodes that it does not report as healthy until ordered to.
    ailing: Vec<&'static str>,
    /// How often it has started, on any node.
    lives: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    Node(&'static str),
    Nodes(&'static [&'static str]),
    Zone(&'static str),
}

impl From<&'static str> for Which {
    fn from(node: &'static str) -> Self {
        Self::Node(node)
    }
}

impl<const N: usize> From<&'static [&'static str; N]> for Which {
    fn from(nodes: &'static [&'static str; N]) -> Self {
        Self::Nodes(nodes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Report this status from now on.
    Say(&'static str),
    /// Report the healthy status at once.
    SayGood,
    /// Die and fall silent.
    Die,
    /// Start again.
    Revive,
}

#[derive(Debug)]
struct State {
    /// The node's UID and last observed boot ID.
    boot: String,
    zone: String,
    says: &'static str,
    is_dead: bool,
    /// The number of its current start; tasks of an earlier start are void.
    life: u32,
    has_begun: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Reports on a node and schedules the next report, in this life.
    Beat(String, u32),
    /// Carries out the order with this number.
    Obey(usize),
}

impl Reporter {
    /// Reports `True` for each node 2 to 8 seconds after it appears, and again every minute.
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

    /// Reports a problem: `False` is healthy.
    pub fn of_problem(condition: &'static str) -> Self {
        Self {
            good: "False",
            ..Self::new(condition)
        }
    }

    /// Sets the shortest and the longest time to the first report.
    pub fn first(mut self, least: Time, most: Time) -> Self {
        self.first = (least, most);
        self
    }

    pub fn beat(mut self, beat: Time) -> Self {
        self.beat = beat;
        self
    }

    /// Reports once, and never renews that.
    pub fn once(self) -> Self {
        self.beat(s(1_000_000))
    }

    /// Does not report this node as healthy until ordered to.
    pub fn ails(mut self, node: &'static str) -> Self {
        self.ailing.push(node);
        self
    }

    pub fn then(mut self, at: Time, which: impl Into<Which>, order: Order) -> Self {
        self.due.at(at, Task::Obey(self.orders.len()));
        self.orders.push((which.into(), order));
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
                Which::Nodes(nodes) => nodes.contains(&name.as_str()),
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
        if let Some(state) = self.nodes.get(name) {
            let condition = (self.condition, state.says);
            report(cluster, REPORTER, &node_key(name), condition, json!({}));
        }
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
        let boot = boot(node);
        if self.nodes.get(name).is_none_or(|state| state.boot != boot) {
            self.begin(name, node, boot, change.at, rng);
        }
    }
}
