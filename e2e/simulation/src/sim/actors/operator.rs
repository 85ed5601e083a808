//! People who follow a script: each step is one request at its time, or another definition of rules.

use serde_json::{Value, json};

use crate::sim::actor::Actor;
use crate::sim::cluster::{Cluster, Who};
use crate::sim::rng::Rng;
use crate::sim::time::Time;
use crate::{Definition, Key, Part, Patch, Preconditions, Request};

use super::ask::{node_key, taint};

const OPERATOR: &str = "operator";

#[derive(Debug, Default)]
pub struct Operator {
    /// The steps left, the first at the end.
    script: Vec<(Time, Step)>,
}

#[derive(Debug)]
enum Step {
    Ask(Request),
    Define(Definition),
}

impl Operator {
    pub fn creates(self, at: Time, object: impl Into<(Key, Value)>) -> Self {
        let (key, object) = object.into();
        self.asks(at, Request::Create { key, object })
    }

    /// Applies a merge patch to an object at this time.
    pub fn edits(self, at: Time, key: Key, patch: Value) -> Self {
        let patch = Patch::Merge(patch);
        let part = Part::Main;
        self.asks(at, Request::Patch { key, part, patch })
    }

    /// Applies a merge patch to an object's status at this time.
    pub fn edits_status(self, at: Time, key: Key, status: &Value) -> Self {
        let patch = Patch::Merge(json!({ "status": status }));
        let part = Part::Status;
        self.asks(at, Request::Patch { key, part, patch })
    }

    /// Sets labels of a node at this time.
    pub fn labels(self, at: Time, node: &str, labels: &Value) -> Self {
        let patch = json!({"metadata": {"labels": labels}});
        self.edits(at, node_key(node), patch)
    }

    /// Gives a node these taints, and no others, at this time.
    pub fn taints(self, at: Time, node: &str, keys: &[&str]) -> Self {
        let taints: Vec<Value> = keys.iter().map(|key| taint(key)).collect();
        self.edits(at, node_key(node), json!({"spec": {"taints": taints}}))
    }

    pub fn deletes(self, at: Time, key: Key) -> Self {
        let request = Request::Delete {
            key,
            preconditions: Preconditions::default(),
            grace: None,
        };
        self.asks(at, request)
    }

    /// Applies this definition of rules at this time.
    pub fn defines(self, at: Time, definition: Definition) -> Self {
        self.step(at, Step::Define(definition))
    }

    fn asks(self, at: Time, request: Request) -> Self {
        self.step(at, Step::Ask(request))
    }

    fn step(mut self, at: Time, step: Step) -> Self {
        let place = self.script.partition_point(|(time, _)| *time > at);
        // Steps of the same time keep their order.
        self.script.insert(place, (at, step));
        self
    }
}

impl Actor for Operator {
    fn wake(&self) -> Option<Time> {
        self.script.last().map(|(at, _)| *at)
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while self.wake().is_some_and(|at| at <= cluster.now()) {
            match self.script.pop() {
                Some((_, Step::Ask(request))) => {
                    // The script continues after a refusal.
                    let _ = cluster.request(Who::Actor(OPERATOR), &request);
                }
                Some((_, Step::Define(definition))) => {
                    cluster.server_mut().define_rules(definition);
                }
                None => {}
            }
        }
    }
}
