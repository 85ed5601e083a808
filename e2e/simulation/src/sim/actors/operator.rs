//! People who follow a script: each step is one request at its time, or another definition of rules.

use serde_json::{Value, json};

use crate::sim::actor::Actor;
use crate::sim::cluster::{Cluster, Who};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};
use crate::{Definition, Key, Kind, Part, Patch, Preconditions, Request};

use super::ask::{merge, node_key, taint, uid};
use super::placement::controller;

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
    /// Takes this owner off its pods.
    Abandon(Key),
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

    /// Takes a label with this value off nodes at this time, and puts it back this much later.
    pub fn takes_off(
        mut self,
        at: Time,
        lasts: Time,
        (label, value): (&str, &str),
        nodes: &[&str],
    ) -> Self {
        for node in nodes {
            self = self.labels(at, node, &json!({label: null})).labels(
                at + lasts,
                node,
                &json!({label: value}),
            );
        }
        self
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

    /// Deletes a `DaemonSet` at this time and leaves its pods to themselves, as `--cascade=orphan` does: until the garbage collector
    /// has taken it off them, it stays.
    pub fn orphans(self, at: Time, daemon_set: &Key) -> Self {
        let finalizers = |it: Value| json!({"metadata": {"finalizers": it}});
        self.edits(at, daemon_set.clone(), finalizers(json!(["orphan"])))
            .deletes(at, daemon_set.clone())
            .step(at + ms(300), Step::Abandon(daemon_set.clone()))
            .edits(at + ms(600), daemon_set.clone(), finalizers(json!(null)))
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
                Some((_, Step::Abandon(owner))) => abandon(cluster, &owner),
                None => {}
            }
        }
    }
}

fn abandon(cluster: &mut Cluster, owner: &Key) {
    let Some(owner) = cluster.get(owner).cloned() else {
        return;
    };
    let is_its = |pod: &Value| controller(pod).is_some_and(|it| it["uid"] == *uid(&owner));
    let pods = cluster.objects(Kind::Pod).filter(|(_, pod)| is_its(pod));
    let pods: Vec<Key> = pods.map(|(key, _)| key.clone()).collect();
    for key in pods {
        let patch = json!({"metadata": {"ownerReferences": null}});
        // The pod may be gone.
        let _ = merge(cluster, OPERATOR, &key, Part::Main, patch);
    }
}
