//! Takes in watch events: single objects, and what a complete list says of objects that it lacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::ObjectMeta;

use super::Cache;
use super::karpenter::Extent;
use crate::engine::io::{Now, Object, Seen};
use crate::engine::kind::Watch;
use crate::engine::map::Map;
use crate::object::{self, ObjectKey, Version};

impl Cache {
    pub fn see(&mut self, seen: Seen, now: Now) {
        let watch = seen.watch();
        if self.is_unwatched(watch) {
            return;
        }
        if let Some(watch) = seen.shows() {
            self.certainty.saw(watch, now.monotonic);
        }
        match seen {
            Seen::Init(watch) => self.relists.begin(watch),
            Seen::Apply(object) => self.apply(object, now),
            Seen::Delete(object) => self.delete(&object),
            Seen::InitDone(watch, version) => {
                self.drop_unlisted(watch);
                self.shown.listed(watch, version);
                self.synced(watch);
            }
            Seen::NotInstalled(watch) if self.may_lack(watch) => {
                if self.named.confirmed(watch) {
                    self.certainty.begin(watch, now.monotonic, now.monotonic);
                }
                self.certain(watch, now.monotonic, now.monotonic);
                self.relists.begin(watch);
                self.drop_unlisted(watch);
                self.know_karpenter(watch, Extent::NotInstalled);
                self.served(watch, false);
            }
            Seen::NotInstalled(watch) | Seen::Interrupted(watch) => {
                self.certainty.interrupted(watch);
            }
            Seen::Current(watch, as_of, version) => {
                self.shown.reached(watch, version);
                self.current(watch, as_of, now);
            }
        }
        self.settle_named(watch);
        self.take_over_rules();
    }

    /// Keeps an object. A list shows the present state even if its version is lower: the cluster may have been restored from a
    /// backup.
    fn apply(&mut self, object: Object, now: Now) {
        let (watch, meta) = (object.watch(), object.meta());
        let is_listed = self.relists.saw(watch, &ObjectKey::of(meta));
        if !is_listed && (self.is_outdated(watch, meta) || self.has_been_seen_gone(&object)) {
            return;
        }
        if !is_listed {
            let version = object::resource_version(meta);
            self.shown.watched(watch, version);
        }
        match object {
            Object::Node(node) => {
                let came = self.came(now);
                self.see_node(node, came, now);
            }
            Object::CsiNode(csi_node) => self.see_csi_node(csi_node),
            Object::Pod(group, pod) => self.see_pod(group, pod),
            Object::DaemonSet(group, daemon_set) => self.see_daemon_set(group, daemon_set),
            Object::ResourceSlice(group, slice) => self.see_slice(group, slice),
            Object::Rule(rule) => self.see_rule(rule, now.wall),
            Object::NodeClaim(claim) => self.see_claim(claim),
            Object::NodePool(pool) => self.see_pool(pool),
        }
    }

    /// Removes an object, unless a newer state is known.
    fn delete(&mut self, object: &Object) {
        let (watch, meta) = (object.watch(), object.meta());
        if !self.is_outdated(watch, meta) {
            self.remove(watch, &ObjectKey::of(meta));
        }
        let version = object::resource_version(meta);
        self.shown.watched(watch, version);
    }

    /// Whether a live read has shown that an unknown object was already gone.
    fn has_been_seen_gone(&self, object: &Object) -> bool {
        let (watch, meta) = (object.watch(), object.meta());
        let node = match object {
            Object::Pod(_, pod) => pod.node_name().unwrap_or_default(),
            Object::ResourceSlice(_, slice) => slice.node_name().unwrap_or_default(),
            Object::CsiNode(_) => meta.name.as_deref().unwrap_or_default(),
            _ => "",
        };
        let version = object::resource_version(meta);
        self.shown.has_read_live(watch, node, version)
            && self.version(watch, &ObjectKey::of(meta)).is_none()
    }

    pub(super) fn remove(&mut self, watch: Watch, key: &ObjectKey) {
        let left_alone = self.unreadables.clear(watch, key);
        self.mark_each(left_alone.as_slice());
        match watch {
            Watch::Nodes => self.remove_node(&key.name),
            Watch::CsiNodes => self.remove_csi_node(&key.name),
            Watch::Pods(group) => self.remove_pod(group, key),
            Watch::DaemonSets(group) => self.remove_daemon_set(group, key),
            Watch::ResourceSlices(group) => self.remove_slice(group, key),
            Watch::Rules => self.remove_rule(&key.name),
            Watch::NodeClaims => self.remove_claim(&key.name),
            Watch::NodePools => self.remove_pool(&key.name),
        }
    }

    /// Ends a list: objects that it has not shown are gone.
    fn drop_unlisted(&mut self, watch: Watch) {
        let listed = self.relists.end(watch);
        let mut gone = self.known(watch);
        gone.retain(|key| !listed.contains(key));
        for key in gone {
            self.remove(watch, &key);
        }
    }

    /// Whether the cluster may lack the resource of this watch. A resource of Kubernetes' own that was there does not go: an
    /// API server that does not have it is an older one, which is being replaced.
    fn may_lack(&self, watch: Watch) -> bool {
        let is_there = matches!(watch, Watch::ResourceSlices(_)) && self.certainty.is_known(watch);
        watch.is_optional() && (!is_there || self.named.lacks(watch))
    }

    fn served(&mut self, watch: Watch, is_served: bool) {
        if self.named.serve(watch, is_served) {
            self.rule_news.are_untold = true;
            self.mark_all();
        }
    }

    fn synced(&mut self, watch: Watch) {
        self.unsynced.remove(&watch);
        self.served(watch, true);
        self.know_karpenter(watch, Extent::Everything);
    }

    /// The known objects of a watch, unreadable ones included.
    pub(super) fn known(&self, watch: Watch) -> Vec<ObjectKey> {
        let nowhere: Arc<str> = "".into();
        let unscoped = |name: &Arc<str>| ObjectKey::new(nowhere.clone(), name.clone());
        let unreadable = self.unreadables.of_watch(watch).cloned();
        let mut keys: Vec<ObjectKey> = match watch {
            Watch::Nodes => self.node_names().map(unscoped).collect(),
            Watch::CsiNodes => {
                let with_one = self.entries.iter().filter(|it| it.1.csi_node.is_some());
                with_one.map(|(name, _)| unscoped(name)).collect()
            }
            Watch::Pods(group) => {
                let pods = self.pod_nodes.get(group).into_iter();
                pods.flat_map(Map::keys).cloned().collect()
            }
            Watch::DaemonSets(group) => {
                let daemon_sets = self.daemon_sets.get(group).into_iter();
                daemon_sets.flat_map(BTreeMap::keys).cloned().collect()
            }
            Watch::ResourceSlices(group) => {
                let slices = self.slice_nodes.get(group).into_iter();
                slices.flat_map(Map::keys).cloned().collect()
            }
            Watch::Rules => self.rules.keys().map(unscoped).collect(),
            Watch::NodeClaims => self.karpenter.claim_names().map(unscoped).collect(),
            Watch::NodePools => self.karpenter.pool_names().map(unscoped).collect(),
        };
        keys.extend(unreadable);
        keys
    }

    /// Whether a write response or a live read has shown a newer state of the object.
    pub(super) fn is_outdated(&self, watch: Watch, meta: &ObjectMeta) -> bool {
        let shown = object::resource_version(meta);
        let known = self.version(watch, &ObjectKey::of(meta));
        shown != 0 && known.is_some_and(|known| shown < known)
    }

    /// The version of the known state of an object.
    fn version(&self, watch: Watch, key: &ObjectKey) -> Option<Version> {
        match watch {
            Watch::Nodes => {
                let node = self.entries.get(&key.name)?.node.as_ref()?;
                Some(node.version)
            }
            Watch::CsiNodes => {
                let csi_node = self.entries.get(&key.name)?.csi_node.as_ref()?;
                Some(csi_node.version)
            }
            Watch::Pods(group) => self.pod(group, key).map(|pod| pod.version),
            Watch::DaemonSets(group) => {
                let daemon_set = self.daemon_sets.get(group)?.get(key)?;
                Some(daemon_set.version)
            }
            Watch::ResourceSlices(group) => self.slice(group, key).map(|slice| slice.version),
            Watch::Rules => self.rules.get(&key.name).map(|rule| rule.version),
            Watch::NodeClaims => self.karpenter.claim(&key.name).map(|claim| claim.version),
            // Pools are neither written nor read live, so only their watch shows them.
            Watch::NodePools => None,
        }
    }
}
