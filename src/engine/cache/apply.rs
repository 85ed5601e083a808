//! The entrance of the cache: takes in what watches and answers show, unless something newer is known.

use std::sync::Arc;

use kube::Resource;

use super::Cache;
use crate::condition::Watch;
use crate::engine::freshness::Phase;
use crate::engine::io::{Now, Object, Seen};
use crate::engine::unreadable::Broken;
use crate::object::{self, Kind, ObjectKey, Version, Watched};

impl Cache {
    pub fn apply(&mut self, seen: Seen, now: Now) {
        let watch = seen.watch();
        if !self.views.has(watch) {
            return;
        }
        if seen.is_sign_of_life() {
            self.views.saw(watch, now.monotonic);
        }
        match seen {
            Seen::Init(watch, asked) => self.views.begin_list(watch, asked),
            Seen::Apply(object) => {
                let key = ObjectKey::of(object.meta());
                let version = object::resource_version(object.meta());
                // A list shows the present state even if its version is lower: the cluster may have been restored from a backup.
                let is_listed = self.views.lists(watch, &key);
                if is_listed || !self.is_outdated(watch, &key, version) {
                    self.keep(key, object, now);
                }
                if !is_listed {
                    self.has_shown(watch, version, now);
                }
            }
            Seen::Delete(object) => {
                let key = ObjectKey::of(object.meta());
                let version = object::resource_version(object.meta());
                if !self.is_outdated(watch, &key, version) {
                    self.remove(watch, &key);
                }
                self.has_shown(watch, version, now);
            }
            Seen::InitDone(watch) => self.end_list(watch, false, now),
            Seen::Progress(watch, version) => {
                self.has_shown(watch, version, now);
                self.views.read_later(watch, now.monotonic);
            }
            Seen::NotInstalled(watch) if self.may_lack(watch) => self.end_list(watch, true, now),
            Seen::NotInstalled(_) => {}
        }
        self.update_named(watch);
        self.take_over_rules();
    }

    /// Takes in an object from the answer to a request, unless the cache has a newer state or no such object. An equal version may
    /// show more: the answer to a patch has metadata only. If a newer one has another UID, the known object is gone; the watch
    /// will show the new one.
    pub fn apply_answer(&mut self, object: Object, now: Now) {
        let (watch, meta) = (object.watch(), object.meta());
        let key = ObjectKey::of(meta);
        let Some(known) = self.uid(watch, &key.name) else {
            return;
        };
        let version = object::resource_version(meta);
        if self.is_outdated(watch, &key, version) {
            return;
        }
        if meta.uid.as_deref() == Some(known) {
            self.keep(key, object, now);
        } else if version != 0 {
            self.remove(watch, &key);
        }
        self.take_over_rules();
    }

    /// The UID of a known object of a kind that requests are about.
    fn uid(&self, watch: Watch, name: &str) -> Option<&str> {
        Some(match watch {
            Watch::Nodes => &self.entries.get(name)?.node.as_ref()?.uid,
            Watch::Rules => &self.rules.get(name)?.rule.uid,
            Watch::NodeClaims => &self.claims.get(name)?.uid,
            _ => return None,
        })
    }

    fn keep(&mut self, key: ObjectKey, object: Object, now: Now) {
        let watch = object.watch();
        match object {
            Object::Node(node) => {
                if let Some((key, node)) = self.read(watch, key, node) {
                    self.put_node(&key.name, node, now);
                }
            }
            Object::CsiNode(csi_node) => {
                if let Some((key, csi_node)) = self.read(watch, key, csi_node) {
                    self.put_csi_node(&key.name, Some(csi_node));
                }
            }
            // If a class has several namespaces, its watch covers all namespaces.
            Object::Pod(group, pod) if self.covers(group, &key.namespace) => {
                if let Some((key, pod)) = self.read(watch, key, pod) {
                    self.put_pod(group, key, pod);
                }
            }
            Object::Pod(..) => {}
            // For an unreadable one, the last readable state stays: it may run on any node.
            Object::DaemonSet(group, daemon_set) => {
                if let Some((_, daemon_set)) = self.read(watch, key, daemon_set) {
                    self.put_daemon_set(group, daemon_set);
                }
            }
            Object::ResourceSlice(group, slice) => {
                if let Some((key, slice)) = self.read(watch, key, slice) {
                    self.put_slice(group, &key, slice);
                }
            }
            Object::Rule(rule) => {
                if let Some((_, rule)) = self.read(watch, key, rule) {
                    self.put_rule(rule, now.wall);
                }
            }
            // An unreadable one is dropped, so that the controller never deletes it.
            Object::NodeClaim(claim) => {
                if let Some((_, claim)) = self.read(watch, key.clone(), claim) {
                    self.put_claim(&claim);
                } else {
                    self.index.remove(watch, &key);
                    self.remove_claim(&key.name);
                }
            }
            // For an unreadable one, the last readable state stays.
            Object::NodePool(pool) => {
                if let Some((key, pool)) = self.read(watch, key, pool) {
                    self.put_pool(&key.name, pool);
                }
            }
        }
    }

    /// Indexes an object; returns it with its key. If it is unreadable, notes that, and its node is left as it is until the
    /// object is readable.
    fn read<T: Kind>(
        &mut self,
        watch: Watch,
        key: ObjectKey,
        object: Watched<T>,
    ) -> Option<(ObjectKey, T)> {
        let version = object.version();
        let node = match watch {
            Watch::Nodes | Watch::CsiNodes => Some(key.name.clone()),
            _ if object.value().is_some() => None,
            _ => {
                let known = self.index.get(watch, &key);
                let known = known.and_then(|kept| kept.node.clone());
                known.or_else(|| object.node_name().map(Arc::from))
            }
        };
        let uid = object.meta().uid.as_deref().map(Arc::from);
        match object.read() {
            Ok(value) => {
                let left_alone = self.index.clear_unreadable(watch, &key);
                self.mark_each(left_alone.as_slice());
                Some((self.index.put(watch, key, version), value))
            }
            Err(why) => {
                let concerned = self.index.note_unreadable(Broken {
                    watch,
                    key,
                    uid,
                    node,
                    why,
                });
                self.mark_each(&concerned);
                None
            }
        }
    }

    pub(super) fn remove(&mut self, watch: Watch, key: &ObjectKey) {
        let left_alone = self.index.clear_unreadable(watch, key);
        self.mark_each(left_alone.as_slice());
        let Some(kept) = self.index.remove(watch, key) else {
            return;
        };
        match watch {
            Watch::Nodes => self.remove_node(&key.name),
            Watch::CsiNodes => self.put_csi_node(&key.name, None),
            Watch::Pods(_) | Watch::ResourceSlices(_) => self.take_off(watch, key, kept.node),
            Watch::DaemonSets(group) => self.remove_daemon_set(group, key),
            Watch::Rules => self.remove_rule(&key.name),
            Watch::NodeClaims => self.remove_claim(&key.name),
            Watch::NodePools => self.remove_pool(&key.name),
        }
    }

    /// Ends a list: objects that it has not shown are gone; all of them if the cluster has no such resource.
    fn end_list(&mut self, watch: Watch, is_absent: bool, now: Now) {
        let before = self.views.phase(watch);
        let (asked, listed) = self.views.end_list(watch, is_absent, now.monotonic);
        for key in self.index.known(watch) {
            if !listed.contains(&key) {
                self.remove(watch, &key);
            }
        }
        self.current(watch, asked, now);
        let is_karpenters = matches!(watch, Watch::NodeClaims | Watch::NodePools);
        if self.unseen.remove(&watch) || is_karpenters && self.views.phase(watch) != before {
            self.has_rule_news = true;
            self.mark_all();
        }
    }

    /// Notes that a watch has shown everything up to this version.
    fn has_shown(&mut self, watch: Watch, version: Version, now: Now) {
        if let Some(as_of) = self.views.shown(watch, version) {
            self.current(watch, as_of, now);
        }
    }

    /// Whether the cluster may lack the resource of this watch. A resource of Kubernetes' own that was there does not go: an
    /// API server that does not have it is an older one, which is being replaced.
    fn may_lack(&self, watch: Watch) -> bool {
        let is_kubernetes_own = matches!(watch, Watch::ResourceSlices(_));
        let was_there = self.views.phase(watch) == Some(Phase::Listed);
        watch.is_optional() && !(is_kubernetes_own && was_there)
    }

    /// Whether a newer state of the object is known than this version, from the answer to a write.
    fn is_outdated(&self, watch: Watch, key: &ObjectKey, shown: Version) -> bool {
        let known = self.index.get(watch, key);
        shown != 0 && known.is_some_and(|known| shown < known.version)
    }
}
