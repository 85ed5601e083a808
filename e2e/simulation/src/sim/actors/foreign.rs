//! Another controller that adds and removes a taint of its own, as autoscalers, remediators and other projects do. It always writes
//! the whole list, as it read it some time before.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ask::{merge, name, node_key, set_taints, taint, taints};
use super::due::Due;
use crate::Part;
use crate::sim::actor::Actor;
use crate::sim::cluster::Cluster;
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};

const FOREIGN: &str = "foreign-taint-writer";

/// The key of its taint, unless [`Foreign::of`] says otherwise.
pub const THEIRS: &str = "example.com/maintenance";

#[derive(Debug)]
pub struct Foreign {
    manner: Manner,
    taint: Value,
    /// The time from reading a node to writing it.
    lag: Time,
    due: Due<Task>,
    /// The nodes as read.
    reads: Vec<Arc<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// With the revision that it read; on a conflict it reads again.
    Careful,
    /// Without a revision: changes made in the meantime are lost.
    Careless,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Read {
        node: String,
        adds: bool,
    },
    /// Writes the result of one of its reads.
    Write {
        read: usize,
        adds: bool,
    },
}

impl Foreign {
    /// Writes in this manner, this long after it has read.
    pub fn new(manner: Manner, lag: Time) -> Self {
        Self {
            manner,
            taint: taint(THEIRS),
            lag,
            due: Due::default(),
            reads: Vec::new(),
        }
    }

    /// A careful one with a taint of this key and effect.
    pub fn of(key: &str, effect: &str) -> Self {
        let taint = json!({"key": key, "effect": effect});
        Self {
            taint,
            ..Self::new(Manner::Careful, ms(50))
        }
    }

    /// Adds its taint to a node at this time.
    pub fn adds(self, at: Time, node: &str) -> Self {
        self.task(at, node, true)
    }

    /// Removes its taint from a node at this time.
    pub fn removes(self, at: Time, node: &str) -> Self {
        self.task(at, node, false)
    }

    fn task(mut self, at: Time, node: &str, adds: bool) -> Self {
        let node = node.to_owned();
        self.due.at(at, Task::Read { node, adds });
        self
    }

    fn write(&self, cluster: &mut Cluster, read: &Value, adds: bool) -> bool {
        let key = &self.taint["key"];
        let others = taints(read).iter().filter(|it| it["key"] != *key);
        let ours = adds.then(|| self.taint.clone());
        let list: Vec<Value> = others.cloned().chain(ours).collect();
        let answer = match self.manner {
            Manner::Careful => set_taints(cluster, FOREIGN, read, &list),
            Manner::Careless => {
                let key = node_key(name(read));
                let patch = json!({"spec": {"taints": list}});
                merge(cluster, FOREIGN, &key, Part::Main, patch)
            }
        };
        answer.is_ok()
    }
}

impl Actor for Foreign {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        let now = cluster.now();
        while let Some(task) = self.due.take(now) {
            match task {
                Task::Read { node, adds } => {
                    let Some(node) = cluster.get(&node_key(&node)) else {
                        continue;
                    };
                    let read = self.reads.len();
                    self.reads.push(node.clone());
                    self.due.at(now + self.lag, Task::Write { read, adds });
                }
                Task::Write { read, adds } => {
                    let read = self.reads[read].clone();
                    if !self.write(cluster, &read, adds) {
                        let node = name(&read).to_owned();
                        self.due.at(now + ms(50), Task::Read { node, adds });
                    }
                }
            }
        }
    }
}
