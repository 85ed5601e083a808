//! Nodes and their `CSINode`s, from watches and write responses.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource;

use super::{Cache, entry};
use crate::condition::Watch;
use crate::engine::broken::Identity;
use crate::engine::io::Now;
use crate::object::{CsiNode, Node, ObjectKey, Taint, Version, Watched};

impl Cache {
    /// Takes in a node from the response to a write or a read, unless the cache has a newer state. Observations are updated as
    /// for a watch event: the watch may never show this state. If the UID differs, the known node is gone; the watch will show
    /// the new one.
    pub fn update_node(&mut self, object: Watched<Node>, now: Now) {
        let meta = object.meta();
        let (key, version) = (ObjectKey::of(meta), object.version());
        let known = self.entries.get(&key.name).and_then(|it| it.node.as_ref());
        // An equal version may show more: the response to a patch has metadata only.
        let Some(known) = known.filter(|_| !self.is_outdated(Watch::Nodes, &key, version)) else {
            return;
        };
        if meta.uid.as_deref() == Some(&*known.uid) {
            self.see_node(object, None, now);
        } else {
            self.remove(Watch::Nodes, &key);
        }
    }

    /// Takes in the metadata in the response to a patch, unless the cache has a newer state. The caller evaluates the node again.
    pub fn patched_node(&mut self, version: Version, patched: Node, taints: Option<Vec<Taint>>) {
        let key = ObjectKey::unscoped(patched.name.clone());
        if let Some(entry) = self.entries.get_mut(&patched.name)
            && let Some(node) = &mut entry.node
            && let Some(kept) = self.index.get_mut(Watch::Nodes, &key)
            && node.uid == patched.uid
            && kept.version < version
        {
            kept.version = version;
            if node.take_in(patched, taints) {
                entry.selected_at = 0;
            }
            let repairing = &self.rule_set.repairing;
            entry.observations.see_deadlines(node, repairing);
        }
    }

    /// Keeps a node and updates its observations. `came` is when it joined, if it was not known before.
    pub(super) fn see_node(&mut self, object: Watched<Node>, came: Option<Timestamp>, now: Now) {
        let identity = Identity::of(Watch::Nodes, object.meta());
        let version = object.version();
        let name = Some(identity.key.name.clone());
        let node = self.understood(identity, version, name, object.read());
        let Some((ObjectKey { name, .. }, mut node)) = node else {
            return;
        };
        node.name = name.clone();
        let is_late = self.views.is_stale(Watch::Nodes, now.monotonic);
        let entry = entry(&mut self.entries, &name);
        if entry
            .node
            .as_ref()
            .is_none_or(|known| known.uid != node.uid)
        {
            entry.joined = came;
        }
        entry.seen = Some(now.monotonic);
        let followed = &self.rule_set.followed;
        let is_alive = entry
            .observations
            .see(entry.node.as_ref(), &node, followed, now.wall);
        let repairing = &self.rule_set.repairing;
        entry.observations.see_deadlines(&node, repairing);
        if is_late {
            entry.observations.saw_late(now.wall);
            entry.missed_changes(now.wall);
        }
        self.put_node(node);
        if is_alive {
            self.mark(&name);
        }
    }

    fn put_node(&mut self, node: Node) {
        let name = node.name.clone();
        let entry = entry(&mut self.entries, &name);
        let known = entry.node.take();
        let node = entry.node.insert(node);
        if known.as_ref().is_none_or(|it| it.labels != node.labels) {
            entry.selected_at = 0;
        }
        let counted = &self.rule_set.counted;
        if known.is_none_or(|known| is_news(known, node, counted)) {
            self.mark(&name);
        }
    }

    pub(super) fn remove_node(&mut self, name: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.node = None;
            self.mark(name);
            self.drop_if_empty(name);
        }
    }

    pub(super) fn see_csi_node(&mut self, object: Watched<CsiNode>) {
        let identity = Identity::of(Watch::CsiNodes, object.meta());
        let version = object.version();
        let name = Some(identity.key.name.clone());
        let csi_node = self.understood(identity, version, name, object.read());
        if let Some((ObjectKey { name, .. }, mut csi_node)) = csi_node {
            csi_node.name = name.clone();
            self.put_csi_node(&name, Some(csi_node));
        }
    }

    fn put_csi_node(&mut self, name: &Arc<str>, csi_node: Option<CsiNode>) {
        let is_first_sight = !self.views.has_listed(Watch::CsiNodes);
        let entry = self.entry(name);
        if entry.csi_node == csi_node {
            return;
        }
        if !is_first_sight {
            let before = entry.csi_node.as_ref();
            entry.observations.see_csi_node(before, csi_node.as_ref());
        }
        entry.csi_node = csi_node;
        self.mark(name);
    }

    pub(super) fn remove_csi_node(&mut self, name: &Arc<str>) {
        if self.entries.contains_key(name) {
            self.put_csi_node(name, None);
            self.drop_if_empty(name);
        }
    }
}

/// Whether a decision may depend on what has changed: not on amounts of resources that no rule counts.
fn is_news(mut known: Node, node: &Node, counted: &BTreeSet<Arc<str>>) -> bool {
    let amounts_differ = known.resources != node.resources;
    if amounts_differ && known.resources.count_alike(&node.resources, counted) {
        known.resources.clone_from(&node.resources);
    }
    known != *node
}
