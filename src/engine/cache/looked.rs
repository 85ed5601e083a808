//! Takes in what a last look has read, past all watches.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource;

use super::Cache;
use crate::condition::Cohort;
use crate::engine::evidence::{ClusterEvidence, List, NodeEvidence};
use crate::engine::io::Now;
use crate::engine::kind::Watch;
use crate::object::{self, CsiNodeObject, DaemonSetObject, ObjectKey, PodObject, RuleObject};
use crate::plan::Doubts;

impl Cache {
    /// Takes in what was read of a node. Answers what has to be read once more: a Node that was read before a patch tells
    /// nothing of it, and the answer to the patch nothing of the status.
    pub fn take_in_node(&mut self, name: &Arc<str>, evidence: NodeEvidence, now: Now) -> Doubts {
        let mut again = Doubts::default();
        if let Some(node) = evidence.node {
            let known = self.node(name);
            again.nodes = known.is_some_and(|known| {
                node.meta().uid.as_deref() == Some(&*known.node.uid)
                    && object::resource_version(node.meta()) < known.node.version
            });
            self.update_node(node, now);
        }
        if let Some(shown) = evidence.csi_node {
            self.take_in_csi_node(name, shown);
        }
        for (cohort, pods) in evidence.pods {
            if !self.is_unwatched(Watch::Pods(cohort)) {
                self.take_in_pods(name, cohort, pods);
            }
        }
        again
    }

    fn take_in_csi_node(&mut self, name: &Arc<str>, mut shown: List<CsiNodeObject>) {
        let Some(csi_node) = shown.items.pop() else {
            let known = self.entries.get(name);
            let known = known.and_then(|entry| entry.csi_node.as_ref());
            if known.is_some_and(|known| known.version <= shown.version) {
                self.remove_csi_node(name);
            }
            return;
        };
        if !self.is_outdated(Watch::CsiNodes, csi_node.meta()) {
            self.see_csi_node(csi_node);
        }
    }

    fn take_in_pods(&mut self, name: &Arc<str>, cohort: Cohort, shown: List<PodObject>) {
        let there = keys(&shown);
        let entry = self.entries.get(name);
        let known = entry.and_then(|entry| entry.pods.get(cohort));
        let gone: Vec<ObjectKey> = known
            .into_iter()
            .flatten()
            .filter(|pod| pod.version <= shown.version && !there.contains(&pod.key))
            .map(|pod| pod.key.clone())
            .collect();
        for key in gone {
            self.remove_pod(cohort, &key);
        }
        for pod in shown.items {
            if !self.is_outdated(Watch::Pods(cohort), pod.meta()) {
                self.see_pod(cohort, pod);
            }
        }
    }

    /// Takes in what was read of the cluster.
    pub fn take_in_cluster(&mut self, evidence: &ClusterEvidence, now: Timestamp) {
        self.take_in_rules(&evidence.rules, now);
        for (cohort, daemon_sets) in &evidence.daemon_sets {
            let watch = Watch::DaemonSets(*cohort);
            if !self.is_unwatched(watch) {
                self.take_in_daemon_sets(*cohort, daemon_sets);
                self.settle_named(watch);
            }
        }
        self.take_over_rules();
    }

    fn take_in_rules(&mut self, shown: &List<RuleObject>, now: Timestamp) {
        let there = keys(shown);
        let is_there = |name: &str| there.iter().any(|key| *key.name == *name);
        let known = self.rules.iter();
        let gone: Vec<Arc<str>> = known
            .filter(|(name, known)| known.version <= shown.version && !is_there(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.remove_rule(&name);
        }
        for rule in &shown.items {
            if !self.is_outdated(Watch::Rules, &rule.metadata) {
                self.see_rule(rule.clone(), now);
            }
        }
    }

    fn take_in_daemon_sets(&mut self, cohort: Cohort, shown: &List<DaemonSetObject>) {
        let there = keys(shown);
        let known = self.daemon_sets.get(cohort).into_iter().flatten();
        let gone: Vec<ObjectKey> = known
            .filter(|(key, known)| known.version <= shown.version && !there.contains(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.remove_daemon_set(cohort, &key);
        }
        for object in &shown.items {
            if !self.is_outdated(Watch::DaemonSets(cohort), object.meta()) {
                self.see_daemon_set(cohort, object.clone());
            }
        }
    }
}

/// What a list shows.
fn keys<K: Resource>(list: &List<K>) -> BTreeSet<ObjectKey> {
    let items = list.items.iter();
    items.map(|object| ObjectKey::of(object.meta())).collect()
}
