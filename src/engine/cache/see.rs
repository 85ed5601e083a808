//! Takes in watch events: single objects, and what a complete list says of objects that it lacks.

use super::Cache;
use super::karpenter::Extent;
use crate::condition::Watch;
use crate::engine::io::{Now, Object, Seen};
use crate::object::{self, ObjectKey, Version};

impl Cache {
    pub fn see(&mut self, seen: Seen, now: Now) {
        let watch = seen.watch();
        if !self.views.has(watch) {
            return;
        }
        if seen.is_sign_of_life() {
            self.views.saw(watch, now.monotonic);
        }
        match seen {
            Seen::Init(watch, asked) => self.views.begin_list(watch, asked),
            Seen::Apply(object) => self.apply(object, now),
            Seen::Delete(object) => self.delete(&object, now),
            Seen::InitDone(watch) => {
                self.end_list(watch, now);
                self.served(watch, true);
                self.know_karpenter(watch, Extent::Everything);
            }
            Seen::Progress(watch, version) => {
                self.has_shown(watch, version, now);
                self.views.read_later(watch, now.monotonic);
            }
            Seen::NotInstalled(watch) if self.may_lack(watch) => {
                self.end_list(watch, now);
                self.know_karpenter(watch, Extent::NotInstalled);
                self.served(watch, false);
            }
            Seen::NotInstalled(_) => {}
        }
        self.settle_named(watch);
        self.take_over_rules();
    }

    /// Keeps an object. A list shows the present state even if its version is lower: the cluster may have been restored from a
    /// backup.
    fn apply(&mut self, object: Object, now: Now) {
        let (watch, meta) = (object.watch(), object.meta());
        let (key, version) = (ObjectKey::of(meta), object::resource_version(meta));
        let is_listed = self.views.lists(watch, &key);
        if is_listed || !self.is_outdated(watch, &key, version) {
            self.keep(object, now);
        }
        if !is_listed {
            self.has_shown(watch, version, now);
        }
    }

    fn keep(&mut self, object: Object, now: Now) {
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
    fn delete(&mut self, object: &Object, now: Now) {
        let (watch, meta) = (object.watch(), object.meta());
        let (key, version) = (ObjectKey::of(meta), object::resource_version(meta));
        if !self.is_outdated(watch, &key, version) {
            self.remove(watch, &key);
        }
        self.has_shown(watch, version, now);
    }

    /// Notes that a watch has shown everything up to this version.
    fn has_shown(&mut self, watch: Watch, version: Version, now: Now) {
        if let Some(as_of) = self.views.shown(watch, version) {
            self.current(watch, as_of, now);
        }
    }

    pub(super) fn remove(&mut self, watch: Watch, key: &ObjectKey) {
        let left_alone = self.unreadables.clear(watch, key);
        self.mark_each(left_alone.as_slice());
        let Some(kept) = self.index.remove(watch, key) else {
            return;
        };
        match watch {
            Watch::Nodes => self.remove_node(&key.name),
            Watch::CsiNodes => self.remove_csi_node(&key.name),
            Watch::Pods(group) => self.remove_pod(group, key, kept.node),
            Watch::DaemonSets(group) => self.remove_daemon_set(group, key),
            Watch::ResourceSlices(group) => self.remove_slice(group, key, kept.node),
            Watch::Rules => self.remove_rule(&key.name),
            Watch::NodeClaims => self.remove_claim(&key.name),
            Watch::NodePools => self.remove_pool(&key.name),
        }
    }

    /// Ends a list: objects that it has not shown are gone.
    fn end_list(&mut self, watch: Watch, now: Now) {
        let (asked, listed) = self.views.end_list(watch, now.monotonic);
        let mut gone = self.known(watch);
        gone.retain(|key| !listed.contains(key));
        for key in gone {
            self.remove(watch, &key);
        }
        self.current(watch, asked, now);
    }

    /// Whether the cluster may lack the resource of this watch. A resource of Kubernetes' own that was there does not go: an
    /// API server that does not have it is an older one, which is being replaced.
    fn may_lack(&self, watch: Watch) -> bool {
        let is_there = matches!(watch, Watch::ResourceSlices(_)) && self.views.has_listed(watch);
        watch.is_optional() && (!is_there || self.named.lacks(watch))
    }

    fn served(&mut self, watch: Watch, is_served: bool) {
        if self.named.serve(watch, is_served) {
            self.rule_news.are_untold = true;
            self.mark_all();
        }
    }

    /// The known objects of a watch, unreadable ones included.
    pub(super) fn known(&self, watch: Watch) -> Vec<ObjectKey> {
        let kept = self.index.keys(watch);
        kept.chain(self.unreadables.of_watch(watch))
            .cloned()
            .collect()
    }

    /// Whether a write response has shown a newer state of the object than this version.
    pub(super) fn is_outdated(&self, watch: Watch, key: &ObjectKey, shown: Version) -> bool {
        let known = self.index.get(watch, key);
        shown != 0 && known.is_some_and(|known| shown < known.version)
    }
}
