//! The scheduler: it binds each pod to the matching node with the fewest pods whose taints the pod tolerates.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ask::{is_going, items, name, text};
use super::due::Soon;
use super::placement::{admits, selects};
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster, Who};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};
use crate::{Key, Kind, Request};

const SCHEDULER: &str = "scheduler";

#[derive(Debug, Default)]
pub struct Scheduler {
    soon: Soon,
    waiting: BTreeSet<Key>,
}

impl Actor for Scheduler {
    fn wake(&self) -> Option<Time> {
        self.soon.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        if !self.soon.take(cluster.now()) || self.waiting.is_empty() {
            return;
        }
        let nodes: Vec<_> = cluster
            .objects(Kind::Node)
            .filter(|(_, node)| !is_going(node) && node["spec"]["unschedulable"] != true)
            .map(|(_, node)| node.clone())
            .collect();
        let mut loads: BTreeMap<String, usize> = BTreeMap::new();
        for (_, pod) in cluster.objects(Kind::Pod) {
            *loads
                .entry(text(&pod["spec"]["nodeName"]).to_owned())
                .or_default() += 1;
        }
        for key in self.waiting.clone() {
            let pod = cluster.get(&key).filter(|pod| is_waiting(pod)).cloned();
            let Some(pod) = pod else {
                self.waiting.remove(&key);
                continue;
            };
            let tolerations = items(&pod["spec"]["tolerations"]);
            let feasible = nodes
                .iter()
                .filter(|node| admits(node, tolerations) && selects(&pod["spec"], node));
            let names = feasible.map(|node| name(node));
            let load = |name: &&str| loads.get(*name).copied().unwrap_or_default();
            let Some(node) = names.min_by_key(load).map(str::to_owned) else {
                continue;
            };
            *loads.entry(node.clone()).or_default() += 1;
            self.waiting.remove(&key);
            // On a refusal the pod stays unbound, or is gone.
            let _ = cluster.request(Who::Actor(SCHEDULER), &Request::Bind { key, node });
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        match (change.key.kind, &change.after) {
            (Kind::Pod, Some(pod)) if change.before.is_none() && is_waiting(pod) => {
                self.waiting.insert(change.key.clone());
            }
            (Kind::Node, Some(node)) if !self.waiting.is_empty() => {
                let before = change.before.as_ref();
                let is_same = |field: &str| before.is_some_and(|it| it[field] == node[field]);
                if is_same("spec") && before.is_some_and(|it| labels(it) == labels(node)) {
                    return;
                }
            }
            _ => return,
        }
        self.soon.at(change.at + rng.between(ms(5), ms(150)));
    }
}

fn is_waiting(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_null() && !is_going(pod)
}

fn labels(node: &Value) -> &Value {
    &node["metadata"]["labels"]
}
