//! Takes in live reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource;

use super::Cache;
use crate::engine::freshness::evidence::{ClusterEvidence, List, NodeEvidence, Unread};
use crate::engine::io::Now;
use crate::engine::kind::Watch;
use crate::object::{self, ObjectKey};

impl Cache {
    /// Takes in what a live read says of a node. Returns what must be read again and why: a Node that was read before a patch
    /// does not show the patch, and the response to the patch does not show the status.
    pub fn take_in_node(&mut self, name: &Arc<str>, evidence: NodeEvidence, now: Now) -> Unread {
        let mut unread = evidence.unread;
        let key = ObjectKey::unscoped(name.clone());
        if let Some(node) = evidence.node {
            let known = self.node(name);
            let version = object::resource_version(node.meta());
            unread.kinds.nodes |= known.is_some_and(|known| {
                node.meta().uid.as_deref() == Some(&*known.node.uid)
                    && self.is_outdated(Watch::Nodes, &key, version)
            });
            self.update_node(node, now);
        }
        if let Some(shown) = evidence.csi_node {
            self.take_in(Watch::CsiNodes, name, vec![key], shown, Self::see_csi_node);
        }
        for (group, shown) in evidence.slices {
            let watch = Watch::ResourceSlices(group);
            if !self.is_unwatched(watch) {
                let entry = self.entries.get(name);
                let slices = entry.and_then(|entry| entry.slices.get(group));
                let slices = slices.into_iter().flatten();
                let known = slices.map(|it| ObjectKey::unscoped(it.name.clone()));
                let see = |cache: &mut Self, slice| cache.see_slice(group, slice);
                self.take_in(watch, name, known.collect(), shown, see);
            }
        }
        for (group, shown) in evidence.pods {
            let watch = Watch::Pods(group);
            if !self.is_unwatched(watch) {
                let entry = self.entries.get(name);
                let pods = entry.and_then(|entry| entry.pods.get(group));
                let pods = pods.into_iter().flatten();
                let known = pods.map(|pod| pod.key.clone()).collect();
                let see = |cache: &mut Self, pod| cache.see_pod(group, pod);
                self.take_in(watch, name, known, shown, see);
            }
        }
        unread
    }

    /// Takes in what a live read says of the cluster. Returns what was not read.
    pub fn take_in_cluster(&mut self, evidence: ClusterEvidence, now: Timestamp) -> Unread {
        let cluster: Arc<str> = "".into();
        let known = self.index.keys(Watch::Rules).cloned().collect();
        let see = |cache: &mut Self, rule| cache.see_rule(rule, now);
        self.take_in(Watch::Rules, &cluster, known, evidence.rules, see);
        for (group, shown) in evidence.daemon_sets {
            let watch = Watch::DaemonSets(group);
            if !self.is_unwatched(watch) {
                let known = self.index.keys(watch).cloned().collect();
                let see = |cache: &mut Self, object| cache.see_daemon_set(group, object);
                self.take_in(watch, &cluster, known, shown, see);
                self.settle_named(watch);
            }
        }
        self.take_over_rules();
        evidence.unread
    }

    /// Takes in a list of a node's objects (of the cluster's, if `node` is empty). Those that it lacks are gone, if they are
    /// known. Objects that are older than what the watch has shown are ignored.
    fn take_in<K: Resource<DynamicType = ()>>(
        &mut self,
        watch: Watch,
        node: &Arc<str>,
        known: Vec<ObjectKey>,
        list: List<K>,
        see: impl Fn(&mut Self, K),
    ) {
        let items = list.items.iter();
        let there: BTreeSet<_> = items.map(|object| ObjectKey::of(object.meta())).collect();
        for key in known {
            let kept = self.index.get(watch, &key);
            if kept.is_some_and(|it| it.version <= list.version) && !there.contains(&key) {
                self.remove(watch, &key);
            }
        }
        for object in list.items {
            let meta = object.meta();
            let (key, version) = (ObjectKey::of(meta), object::resource_version(meta));
            if !self.shown.has_watched(watch, version) && !self.is_outdated(watch, &key, version) {
                see(self, object);
            }
        }
        self.shown.read_live(watch, node, list.version);
    }
}
