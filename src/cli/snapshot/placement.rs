//! Where a pod that is not bound yet could run: what it asks of nodes, in the engine's own terms for where pods of a
//! `DaemonSet` are meant to run.

use serde::Deserialize;
use serde_json::{Value, json};

use super::story::Story;
use crate::condition::is_meant_for;
use crate::object::{DaemonSet, DaemonSetObject, Node, Taint, Toleration};

/// A pod that was asked about.
#[derive(Debug, Clone)]
pub struct Specimen {
    /// What it has to say for itself.
    pub story: Story,
    /// What it asks of nodes, as a `DaemonSet` would.
    asks: DaemonSet,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    spec: Value,
}

impl Specimen {
    /// The pod in this JSON, if it can be understood.
    #[must_use]
    pub fn read(json: &str) -> Option<Self> {
        let story = Story::read(json)?;
        let Object { mut spec } = serde_json::from_str(json).ok()?;
        let tolerations = spec.get("tolerations").cloned();
        let tolerations: Option<Vec<Toleration>> =
            tolerations.and_then(|it| serde_json::from_value(it).ok());
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("nodeName");
        }
        let object = json!({
            "metadata": {"namespace": &*story.key.namespace, "name": &*story.key.name},
            "spec": {"template": {"spec": spec}},
        });
        let object: DaemonSetObject = serde_json::from_value(object).ok()?;
        let asks = DaemonSet {
            // A pod has only its own; those that a DaemonSet's pods have besides are not for it.
            tolerations: tolerations.unwrap_or_default(),
            ..object.read().ok()?
        };
        Some(Self { story, asks })
    }

    /// Whether its node selector and its required node affinity let it run on this node, taints aside.
    #[must_use]
    pub fn asks_for(&self, node: &Node) -> bool {
        is_meant_for(&self.asks, node, &[])
    }

    /// The taints of this node that keep it away.
    pub fn repelled_by<'a>(&self, node: &'a Node) -> impl Iterator<Item = &'a Taint> {
        let taints = node.taints.iter();
        taints.filter(|taint| !crate::condition::tolerates(&self.asks, taint))
    }
}
