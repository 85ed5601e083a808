//! The `DaemonSet` controller: it creates a pod of each `DaemonSet` on each node that matches and whose taints the pod
//! tolerates, replaces pods that are gone or failed, and rolls out new versions node by node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::ask::{create, delete, is_going, items, merge, name, node_key, taints, text, uid};
use super::due::Soon;
use super::placement::{admits, adopts, controller, daemon_tolerations, keeps, selects};
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};
use crate::{Key, Kind, Part};

const CONTROLLER: &str = "daemon-set-controller";

/// How long it takes to adopt one pod.
const ADOPTION: Time = ms(50);

/// The pod label that names the version of the template.
pub(crate) const REVISION: &str = "controller-revision-hash";
/// The pod label with the generation of the template.
const GENERATION: &str = "pod-template-generation";

#[derive(Debug, Default)]
pub struct DaemonSets {
    soon: Soon,
    /// The nodes to reconcile.
    nodes: BTreeSet<String>,
    /// Whether to reconcile all of them.
    all: bool,
    /// The pods of each `DaemonSet`, by its UID and then by node.
    pods: BTreeMap<String, BTreeMap<String, BTreeSet<Key>>>,
    /// How many pods it has created.
    made: u64,
}

impl DaemonSets {
    fn look(&mut self, change: &Change, rng: &mut Rng) {
        self.soon.at(change.at + rng.between(ms(20), ms(300)));
    }

    fn pod_changed(&mut self, change: &Change, rng: &mut Rng) {
        let states = [&change.before, &change.after];
        let Some(pod) = states.into_iter().flatten().last() else {
            return;
        };
        let Some(owner) = owner(pod) else {
            return;
        };
        let node = text(&pod["spec"]["nodeName"]);
        let of_node = self.pods.entry(owner.to_owned()).or_default();
        let pods = of_node.entry(node.to_owned()).or_default();
        if change.after.is_some() {
            pods.insert(change.key.clone());
        } else {
            pods.remove(&change.key);
        }
        self.nodes.insert(node.to_owned());
        self.look(change, rng);
    }

    fn sync(&mut self, cluster: &mut Cluster) {
        let nodes: Vec<_> = cluster
            .objects(Kind::Node)
            .filter(|(key, node)| (self.all || self.nodes.contains(&key.name)) && !is_going(node))
            .map(|(_, node)| node.clone())
            .collect();
        self.all = false;
        self.nodes.clear();
        let sets: Vec<_> = cluster
            .objects(Kind::DaemonSet)
            .map(|(_, set)| set.clone())
            .filter(|set| !is_going(set))
            .collect();
        for set in sets {
            if Self::adopt(cluster, &set) {
                self.all = true;
                self.soon.at(cluster.now() + ADOPTION);
                continue;
            }
            for node in &nodes {
                self.manage(cluster, &set, node);
            }
            self.roll(cluster, &set);
        }
    }

    /// Adopts a pod that nobody controls and that the `DaemonSet` selects. Returns whether there was one: until there is none, the
    /// `DaemonSet`'s pods are not known.
    fn adopt(cluster: &mut Cluster, set: &Value) -> bool {
        let namespace = text(&set["metadata"]["namespace"]);
        let is_orphan = |(key, pod): &(&Key, &Arc<Value>)| {
            let is_free = key.namespace == namespace && !is_going(pod) && controller(pod).is_none();
            is_free && adopts(set, pod)
        };
        let key = cluster.objects(Kind::Pod).find(is_orphan);
        let Some(key) = key.map(|(key, _)| key.clone()) else {
            return false;
        };
        let patch = json!({"metadata": {"ownerReferences": [reference(set)]}});
        merge(cluster, CONTROLLER, &key, Part::Main, patch).is_ok()
    }

    /// Reconciles the pods of a `DaemonSet` on a node.
    fn manage(&mut self, cluster: &mut Cluster, set: &Value, node: &Value) {
        let template = &set["spec"]["template"];
        let tolerations = daemon_tolerations(template);
        let is_meant = selects(&template["spec"], node);
        let pods = self.pods_on(cluster, set, name(node));
        if !is_meant || !keeps(node, &tolerations) {
            for (key, pod) in pods {
                if !is_going(&pod) {
                    let _ = delete(cluster, CONTROLLER, &key, None);
                }
            }
            return;
        }
        // Pods that have ended are deleted; terminating pods block their replacement.
        for (key, pod) in &pods {
            if pod["status"]["phase"] == "Failed" && !is_going(pod) {
                let _ = delete(cluster, CONTROLLER, key, None);
            }
        }
        if pods.is_empty() && admits(node, &tolerations) {
            self.make(cluster, set, name(node), &tolerations);
        }
    }

    fn make(&mut self, cluster: &mut Cluster, set: &Value, node: &str, tolerations: &[Value]) {
        self.made += 1;
        let metadata = &set["metadata"];
        let pod_name = format!("{}-{}", name(set), self.made);
        let key = Key::namespaced(Kind::Pod, text(&metadata["namespace"]), &pod_name);
        let template = &set["spec"]["template"];
        let mut labels = template["metadata"]["labels"].clone();
        labels[REVISION] = json!(revision(set));
        labels[GENERATION] = json!(revision(set));
        let pod = json!({
            "metadata": {
                "labels": labels,
                "annotations": template["metadata"]["annotations"],
                "ownerReferences": [reference(set)],
            },
            "spec": {"nodeName": node, "tolerations": tolerations},
        });
        // The real controller, too, counts on pods that it has created before it observes them.
        let of_node = self.pods.entry(uid(set).to_owned()).or_default();
        let pods = of_node.entry(node.to_owned()).or_default();
        pods.insert(key.clone());
        // Pod names are unique.
        let _ = create(cluster, CONTROLLER, key, pod);
    }

    /// Takes the next step of a rolling update, if one is under way.
    fn roll(&mut self, cluster: &mut Cluster, set: &Value) {
        let limits = &set["spec"]["updateStrategy"]["rollingUpdate"];
        let surge = limits["maxSurge"].as_u64().unwrap_or(0);
        let at_once = limits["maxUnavailable"].as_u64().unwrap_or(1).max(surge);
        let nodes: Vec<String> = self
            .pods
            .get(uid(set))
            .into_iter()
            .flat_map(|nodes| nodes.keys().cloned())
            .collect();
        let now = cluster.wall();
        let available_at = |pod: &Value| available_at(set, pod).filter(|_| !is_going(pod));
        let is_available = |pod: &Value| available_at(pod).is_some_and(|at| at <= now);
        let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == revision(set);
        let mut busy = 0;
        let mut old = Vec::new();
        for node in nodes {
            let pods = self.pods_on(cluster, set, &node);
            let has_old = pods.iter().any(|(_, pod)| !is_new(pod));
            let new_is_available = pods.iter().any(|(_, pod)| is_new(pod) && is_available(pod));
            let is_under_way = if surge > 0 {
                pods.iter().any(|(_, pod)| is_new(pod)) && !new_is_available
            } else {
                !pods.is_empty() && !pods.iter().any(|(_, pod)| is_available(pod))
            };
            let times = pods.iter().filter_map(|(_, pod)| available_at(pod));
            if let Some(next) = times.filter(|at| *at > now).min() {
                let wait = Time::try_from(next.duration_since(now)).unwrap_or_default();
                self.soon.at(cluster.now() + wait);
            }
            busy += u64::from(is_under_way);
            if has_old {
                old.push((node, pods, new_is_available, is_under_way));
            }
        }
        for (node, pods, new_is_available, is_under_way) in old {
            let may_begin = busy < at_once && !is_under_way;
            if surge > 0 && !new_is_available {
                let tolerations = daemon_tolerations(&set["spec"]["template"]);
                // The real controller creates the pod, and the scheduler does not bind it.
                let is_admitted = cluster
                    .get(&node_key(&node))
                    .is_some_and(|node| admits(node, &tolerations));
                if may_begin && is_admitted {
                    busy += 1;
                    self.make(cluster, set, &node, &tolerations);
                }
                continue;
            }
            // Replacing an old pod that is not available costs no availability.
            if surge == 0 && !may_begin && !is_under_way {
                continue;
            }
            busy += u64::from(surge == 0 && !is_under_way);
            for (key, pod) in pods {
                if !is_new(&pod) && !is_going(&pod) {
                    let _ = delete(cluster, CONTROLLER, &key, None);
                }
            }
        }
    }

    fn pods_on(&self, cluster: &Cluster, set: &Value, node: &str) -> Vec<(Key, Value)> {
        let of_node = self.pods.get(uid(set)).and_then(|nodes| nodes.get(node));
        let keys = of_node.into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), (**cluster.get(key)?).clone())))
            .collect()
    }
}

impl Actor for DaemonSets {
    fn wake(&self) -> Option<Time> {
        self.soon.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        if self.soon.take(cluster.now()) {
            self.sync(cluster);
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        match change.key.kind {
            Kind::DaemonSet => {
                self.all = true;
                self.look(change, rng);
            }
            Kind::Node => {
                let of = |node: &Option<Arc<Value>>| {
                    let node = node.as_ref()?;
                    Some((node["metadata"]["labels"].clone(), taints(node).to_vec()))
                };
                if of(&change.before) != of(&change.after) {
                    self.nodes.insert(change.key.name.clone());
                    self.look(change, rng);
                }
            }
            Kind::Pod => self.pod_changed(change, rng),
            _ => {}
        }
    }
}

/// When the pod has been Ready for the `minReadySeconds` of its `DaemonSet`, if it is Ready.
fn available_at(set: &Value, pod: &Value) -> Option<Timestamp> {
    let mut conditions = items(&pod["status"]["conditions"]).iter();
    let ready = conditions.find(|it| it["type"] == "Ready" && it["status"] == "True")?;
    let seconds = set["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    if seconds == 0 {
        return Some(Timestamp::MIN);
    }
    let since: Timestamp = text(&ready["lastTransitionTime"]).parse().ok()?;
    since.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// The reference to a `DaemonSet` on its pods.
fn reference(set: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": name(set),
        "uid": uid(set),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn owner(pod: &Value) -> Option<&str> {
    let owners = items(&pod["metadata"]["ownerReferences"]);
    let owner = owners.iter().find(|owner| owner["kind"] == "DaemonSet")?;
    Some(text(&owner["uid"]))
}

fn revision(set: &Value) -> &str {
    text(&set["metadata"]["annotations"]["deprecated.daemonset.template.generation"])
}
