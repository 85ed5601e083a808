//! Takes in what a last look has read, past all watches.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kube::Resource;

use super::Cache;
use crate::object::{
    self, CsiNodeObject, DaemonSetObject, NodeObject, ObjectKey, PodObject, RuleObject, Version,
};

/// What there is of one node.
#[derive(Debug, Default)]
pub struct NodeEvidence {
    /// The node, where it was read.
    pub node: Option<NodeObject>,
    /// Its `CSINode`, where it was read: one or none.
    pub csi_node: Option<List<CsiNodeObject>>,
    /// Its pods, for each class whose pods were read.
    pub pods: Vec<(usize, List<PodObject>)>,
}

/// What is the same for all nodes.
#[derive(Debug)]
pub struct ClusterEvidence {
    /// When it was asked for.
    pub asked: Instant,
    /// All rules.
    pub rules: List<RuleObject>,
    /// The labelled `DaemonSet`s of each class.
    pub daemon_sets: Vec<List<DaemonSetObject>>,
}

/// A complete list.
#[derive(Debug)]
pub struct List<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The version of the cluster that it shows.
    pub version: Version,
}

impl Cache {
    /// Takes in what was read of a node.
    pub fn take_in_node(&mut self, name: &Arc<str>, evidence: NodeEvidence, now: Timestamp) {
        if let Some(node) = evidence.node {
            self.update_node(node, now);
        }
        if let Some(mut shown) = evidence.csi_node {
            let known = self.entries.get(name);
            let known = known.and_then(|entry| entry.csi_node.as_ref());
            match shown.items.pop() {
                Some(csi_node) => self.see_csi_node(csi_node),
                None if known.is_some_and(|known| known.version <= shown.version) => {
                    self.remove_csi_node(name);
                }
                None => {}
            }
        }
        for (class, pods) in evidence.pods {
            let shown: Vec<ObjectKey> = pods
                .items
                .iter()
                .map(|pod| ObjectKey::of(pod.meta()))
                .collect();
            let known = self.entries.get(name).map(|entry| &entry.pods[class]);
            let gone: Vec<ObjectKey> = known
                .into_iter()
                .flatten()
                .filter(|pod| pod.version <= pods.version)
                .filter(|pod| !shown.contains(&pod.key))
                .map(|pod| pod.key.clone())
                .collect();
            for key in gone {
                self.remove_pod(class, &key);
            }
            for pod in pods.items {
                self.see_pod(class, pod);
            }
        }
    }

    /// Takes in what was read of the cluster, unless that was done before.
    pub fn take_in_cluster(&mut self, evidence: &ClusterEvidence, now: Timestamp) {
        if self.looked_at.is_some_and(|at| at >= evidence.asked) {
            return;
        }
        self.looked_at = Some(evidence.asked);
        self.take_in_rules(&evidence.rules, now);
        for (class, daemon_sets) in evidence.daemon_sets.iter().enumerate() {
            self.take_in_daemon_sets(class, daemon_sets);
        }
    }

    fn take_in_rules(&mut self, shown: &List<RuleObject>, now: Timestamp) {
        let mut changed = false;
        let is_shown = |name: &str| {
            let mut names = shown.items.iter().map(|rule| rule.metadata.name.as_deref());
            names.any(|shown| shown == Some(name))
        };
        let before = self.rules.len();
        self.rules
            .retain(|name, known| known.version > shown.version || is_shown(name));
        changed |= self.rules.len() != before;
        for rule in &shown.items {
            let known = self.rules.get(&object::name(&rule.metadata));
            let version = object::resource_version(&rule.metadata);
            if known.is_none_or(|known| known.version < version) {
                changed |= self.put_rule(rule.clone(), now);
            }
        }
        if changed {
            self.rebuild_rules();
        }
    }

    fn take_in_daemon_sets(&mut self, class: usize, shown: &List<DaemonSetObject>) {
        let is_shown = |key: &ObjectKey| {
            let mut keys = shown
                .items
                .iter()
                .map(|object| ObjectKey::of(object.meta()));
            keys.any(|shown| shown == *key)
        };
        let known = self.daemon_sets[class].iter();
        let gone: Vec<ObjectKey> = known
            .filter(|(key, known)| known.version <= shown.version && !is_shown(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.remove_daemon_set(class, &key);
        }
        for object in &shown.items {
            self.see_daemon_set(class, object.clone());
        }
    }
}
