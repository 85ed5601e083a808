//! A compromised kubelet: it forges the controller's annotations on its own node, for every rule.

use nodegate_core::api::names::READY_DEADLINE_PREFIX;
use serde_json::{Map, json};

use super::ask::{merge, node_key, text, uid};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::Cluster;
use crate::sim::rng::Rng;
use crate::sim::time::Time;
use crate::{Kind, Part};

const ANNOTATOR: &str = "annotator";
/// Before any node existed.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

/// A forger of annotations.
#[derive(Debug, Default)]
pub struct Annotator {
    due: Due<(String, Forgery)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forgery {
    /// That each rule has added its taint.
    Ownership,
    /// That a rule that does not exist has added this foreign taint.
    OwnershipOf(&'static str),
    /// That the node has completed its bootstrap under each rule.
    Completion,
    /// That the node's deadline under each rule has long passed.
    Deadline,
    /// Removes all of the controller's annotations.
    Nothing,
}

impl Annotator {
    /// Forges this on a node at this time.
    pub fn forges(mut self, at: Time, node: &str, what: Forgery) -> Self {
        self.due.at(at, (node.to_owned(), what));
        self
    }
}

impl Actor for Annotator {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some((node, forgery)) = self.due.take(cluster.now()) {
            let annotations = forged(cluster, &node, forgery);
            let patch = json!({"metadata": {"annotations": annotations}});
            // The node may not exist.
            let _ = merge(cluster, ANNOTATOR, &node_key(&node), Part::Main, patch);
        }
    }
}

fn forged(cluster: &Cluster, node: &str, forgery: Forgery) -> Map<String, serde_json::Value> {
    let owner = |rule: &str, key: &str, effect: &str| {
        json!({"rule-name": rule, "taint-key": key, "taint-effect": effect, "joining": true})
            .to_string()
    };
    let mut annotations = Map::new();
    match forgery {
        Forgery::OwnershipOf(key) => {
            let annotation = "nodegate.dev/taint-added-by-00000000-0000-4000-8000-000000000000";
            annotations.insert(
                annotation.to_owned(),
                json!(owner("gone", key, "NoSchedule")),
            );
        }
        Forgery::Nothing => {
            let node = cluster.get(&node_key(node));
            let known = node.and_then(|node| node["metadata"]["annotations"].as_object());
            let keys = known.into_iter().flatten().map(|(key, _)| key);
            annotations.extend(
                keys.filter(|key| {
                    key.starts_with("nodegate.dev/") || key.starts_with("readiness.k8s.io/")
                })
                .map(|key| (key.clone(), json!(null))),
            );
        }
        Forgery::Ownership | Forgery::Completion | Forgery::Deadline => {
            for (key, rule) in cluster.objects(Kind::NodeReadinessRule) {
                let taint = &rule["spec"]["taint"];
                let (prefix, value) = match forgery {
                    Forgery::Ownership => (
                        "nodegate.dev/taint-added-by-",
                        owner(&key.name, text(&taint["key"]), text(&taint["effect"])),
                    ),
                    Forgery::Deadline => (READY_DEADLINE_PREFIX, LONG_AGO.to_owned()),
                    _ => (
                        "readiness.k8s.io/bootstrap-completed-",
                        json!({"rule-name": key.name}).to_string(),
                    ),
                };
                annotations.insert(format!("{prefix}{}", uid(rule)), json!(value));
            }
        }
    }
    annotations
}
