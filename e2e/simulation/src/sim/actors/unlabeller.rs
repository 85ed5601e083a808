//! An actor that takes a label off each node with a taint that keeps pods away, and puts it on once the node has none, as Kernel Module
//! Management does.

use serde_json::{Value, json};

use super::ask::{merge, node_key, taints};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, s};
use crate::{Kind, Part};

const UNLABELLER: &str = "unlabeller";

#[derive(Debug)]
pub struct Unlabeller {
    label: &'static str,
    value: &'static str,
    due: Due<String>,
}

impl Unlabeller {
    /// Puts on this label, with this value.
    pub fn of(label: &'static str, value: &'static str) -> Self {
        Self {
            label,
            value,
            due: Due::default(),
        }
    }

    /// What the label is to become; `None` if it is as it should be.
    fn wants(&self, node: &Value) -> Option<Value> {
        let is_tainted = taints(node).iter().any(|it| it["effect"] == "NoSchedule");
        let is_labelled = !node["metadata"]["labels"][self.label].is_null();
        let value = (!is_tainted).then_some(self.value);
        (is_tainted == is_labelled).then(|| json!(value))
    }
}

impl Actor for Unlabeller {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some(name) = self.due.take(cluster.now()) {
            let key = node_key(&name);
            if let Some(value) = cluster.get(&key).and_then(|node| self.wants(node)) {
                let patch = json!({"metadata": {"labels": {self.label: value}}});
                // The node is there.
                let _ = merge(cluster, UNLABELLER, &key, Part::Main, patch);
            }
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        let (Kind::Node, Some(node)) = (change.key.kind, &change.after) else {
            return;
        };
        if self.wants(node).is_some() {
            let at = change.at + rng.between(s(2), s(4));
            self.due.at(at, change.key.name.clone());
        }
    }
}
