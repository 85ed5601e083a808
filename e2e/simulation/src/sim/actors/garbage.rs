//! The garbage collector and the pod collector: they delete objects whose owner is gone, and pods whose node is gone.

use serde_json::Value;

use super::ask::{delete, is_going, items, node_key, pods_on, text, uid};
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms, s};
use crate::{Key, Kind};

const COLLECTOR: &str = "garbage-collector";

/// The kinds that own objects, and so may leave orphans.
const OWNERS: [Kind; 2] = [Kind::DaemonSet, Kind::Node];
const DEPENDENTS: [Kind; 2] = [Kind::Pod, Kind::CsiNode];

#[derive(Debug, Default)]
pub struct Garbage(Due<Task>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Collects the objects that this UID owned.
    Owned(String),
    /// Collects an object that was created after its owner was gone.
    Orphan(Key),
    /// Collects the pods on a node of this name, unless such a node exists again.
    Pods(String),
}

impl Actor for Garbage {
    fn wake(&self) -> Option<Time> {
        self.0.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some(task) = self.0.take(cluster.now()) {
            match task {
                Task::Owned(owner) => {
                    let is_owned = |object: &Value| owners(object).any(|it| it == owner);
                    let owned: Vec<Key> = DEPENDENTS
                        .into_iter()
                        .flat_map(|kind| cluster.objects(kind))
                        .filter(|(_, object)| is_owned(object) && !is_going(object))
                        .map(|(key, _)| key.clone())
                        .collect();
                    for key in owned {
                        let _ = delete(cluster, COLLECTOR, &key, None);
                    }
                }
                Task::Orphan(key) => {
                    let object = cluster.get(&key);
                    if object.is_some_and(|object| !is_going(object) && is_orphan(cluster, object))
                    {
                        let _ = delete(cluster, COLLECTOR, &key, None);
                    }
                }
                Task::Pods(node) => collect_pods(cluster, &node),
            }
        }
    }

    fn changed(&mut self, change: &Change, cluster: &Cluster, rng: &mut Rng) {
        let kind = change.key.kind;
        match (&change.before, &change.after) {
            (Some(before), None) if OWNERS.contains(&kind) => {
                let at = change.at + rng.between(ms(100), s(3));
                self.0.at(at, Task::Owned(uid(before).to_owned()));
                if kind == Kind::Node {
                    let at = change.at + rng.between(s(20), s(60));
                    self.0.at(at, Task::Pods(change.key.name.clone()));
                }
            }
            (None, Some(after)) if DEPENDENTS.contains(&kind) && is_orphan(cluster, after) => {
                let at = change.at + rng.between(ms(100), s(3));
                self.0.at(at, Task::Orphan(change.key.clone()));
            }
            _ => {}
        }
    }
}

/// Ends the pods that no kubelet will end.
fn collect_pods(cluster: &mut Cluster, node: &str) {
    if cluster.get(&node_key(node)).is_some() {
        return;
    }
    for (key, _) in pods_on(cluster, node) {
        let _ = delete(cluster, "pod-collector", &key, Some(0));
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = items(&object["metadata"]["ownerReferences"]);
    owners.iter().map(|owner| text(&owner["uid"]))
}

fn is_orphan(cluster: &Cluster, object: &Value) -> bool {
    let is_there = |owner: &str| {
        let mut all = OWNERS.into_iter().flat_map(|kind| cluster.objects(kind));
        all.any(|(_, it)| uid(it) == owner)
    };
    let mut known = owners(object).peekable();
    known.peek().is_some() && !known.any(is_there)
}
