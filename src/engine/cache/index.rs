//! What is the same for all kinds of objects: the version and the node of each that is kept, and those that are unreadable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::condition::Watch;
use crate::engine::map::Map;
use crate::engine::unreadable::Broken;
use crate::object::{ObjectKey, Version};

#[derive(Debug, Default)]
pub(crate) struct Index {
    kept: Map<Watch, Map<ObjectKey, Kept>>,
    unreadable: BTreeMap<(Watch, ObjectKey), Broken>,
    /// The unreadable objects that have not been reported yet.
    untold: BTreeSet<(Watch, ObjectKey)>,
    /// Those because of which a node is left as it is.
    by_node: Map<Arc<str>, BTreeSet<(Watch, ObjectKey)>>,
}

/// What is indexed of an object.
#[derive(Debug)]
pub(super) struct Kept {
    /// The version of the kept state.
    pub(super) version: Version,
    /// The node that the object belongs to, unless its key names it.
    pub(super) node: Option<Arc<str>>,
}

impl Index {
    /// Notes the version of an object's kept state. Returns the key for what is kept, so that its text is in memory once.
    pub(super) fn put(&mut self, watch: Watch, key: ObjectKey, version: Version) -> ObjectKey {
        let place = self.kept.entry(watch).or_default().entry(key);
        let key = place.key().clone();
        let node = None;
        place.or_insert(Kept { version, node }).version = version;
        key
    }

    pub(super) fn get(&self, watch: Watch, key: &ObjectKey) -> Option<&Kept> {
        self.kept.get(&watch)?.get(key)
    }

    pub(super) fn get_mut(&mut self, watch: Watch, key: &ObjectKey) -> Option<&mut Kept> {
        self.kept.get_mut(&watch)?.get_mut(key)
    }

    /// Notes the node that an object belongs to; returns the earlier one, if that was another.
    pub(super) fn place(
        &mut self,
        watch: Watch,
        key: &ObjectKey,
        node: &Arc<str>,
    ) -> Option<Arc<str>> {
        let before = self.get_mut(watch, key)?.node.replace(node.clone());
        before.filter(|before| before != node)
    }

    pub(super) fn remove(&mut self, watch: Watch, key: &ObjectKey) -> Option<Kept> {
        self.kept.get_mut(&watch)?.remove(key)
    }

    /// Forgets a watch whose objects have been removed.
    pub(super) fn end(&mut self, watch: Watch) {
        self.kept.remove(&watch);
    }

    /// The objects of a watch, unreadable ones included, from the last to the first: sorted lists are taken apart from their ends.
    pub(super) fn known(&self, watch: Watch) -> Vec<ObjectKey> {
        let kept = self.kept.get(&watch).into_iter().flat_map(Map::keys);
        let mut known: Vec<_> = kept.chain(self.unreadable(watch)).cloned().collect();
        known.sort_unstable_by(|a, b| b.cmp(a));
        known
    }

    /// How many objects all watches of a kind keep.
    pub(super) fn count(&self, kind: Watch) -> usize {
        let of_kind = self.kept.iter().filter(|(it, _)| it.kind() == kind.kind());
        of_kind.map(|(_, objects)| objects.len()).sum()
    }

    /// Notes an unreadable object; returns the nodes that this affects if it is new.
    pub(super) fn note_unreadable(&mut self, broken: Broken) -> Vec<Arc<str>> {
        let key = (broken.watch, broken.key.clone());
        if self.unreadable.get(&key) == Some(&broken) {
            return Vec::new();
        }
        let was = self.clear_unreadable(broken.watch, &broken.key);
        let node = broken.node.clone();
        if let Some(node) = &node {
            let keys = self.by_node.entry(node.clone()).or_default();
            keys.insert(key.clone());
        }
        self.untold.insert(key.clone());
        self.unreadable.insert(key, broken);
        was.into_iter().chain(node).collect()
    }

    /// Notes that an object is readable, or gone; returns the node that was left as it was because of it.
    pub(super) fn clear_unreadable(&mut self, watch: Watch, key: &ObjectKey) -> Option<Arc<str>> {
        if self.unreadable.is_empty() {
            return None;
        }
        let key = (watch, key.clone());
        self.untold.remove(&key);
        let node = self.unreadable.remove(&key)?.node?;
        if let Some(keys) = self.by_node.get_mut(&node) {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_node.remove(&node);
            }
        }
        Some(node)
    }

    pub(super) fn unreadable(&self, watch: Watch) -> impl Iterator<Item = &ObjectKey> {
        let first = ObjectKey::unscoped(Arc::default());
        let keys = self.unreadable.range((watch, first)..).map(|(key, _)| key);
        keys.take_while(move |key| key.0 == watch)
            .map(|(_, key)| key)
    }

    /// An unreadable object because of which this node is left as it is.
    pub(crate) fn left_alone(&self, node: &str) -> Option<&Broken> {
        self.unreadable.get(self.by_node.get(node)?.first()?)
    }

    /// How many objects of each kind are unreadable.
    pub(crate) fn unreadable_counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(Watch::KINDS.map(|watch| (watch.kind(), 0)));
        for (watch, _) in self.unreadable.keys() {
            *counts.entry(watch.kind()).or_default() += 1;
        }
        counts
    }

    /// Takes the unreadable objects that have not been reported yet.
    pub(crate) fn tell_unreadable(&mut self) -> Vec<Broken> {
        let untold = std::mem::take(&mut self.untold).into_iter();
        untold
            .filter_map(|key| self.unreadable.get(&key).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::ComponentGroup;
    use crate::object::Unreadable;

    fn broken(name: &str, node: Option<&str>, why: &str) -> Broken {
        Broken {
            watch: Watch::Pods(ComponentGroup::Class(0)),
            key: ObjectKey::new("ns", name),
            uid: None,
            node: node.map(Arc::from),
            why: Unreadable::new(why),
        }
    }

    #[test]
    fn a_node_is_left_alone_until_all_of_its_objects_are_readable() {
        let mut known = Index::default();
        let (a, b) = (broken("a", Some("n"), "x"), broken("b", Some("n"), "x"));
        assert_eq!(known.note_unreadable(a.clone()), ["n".into()]);
        assert_eq!(known.note_unreadable(b.clone()), ["n".into()]);
        assert_eq!(known.left_alone("n"), Some(&a));
        assert_eq!(known.clear_unreadable(a.watch, &a.key), Some("n".into()));
        assert_eq!(known.left_alone("n"), Some(&b));
        assert_eq!(known.clear_unreadable(b.watch, &b.key), Some("n".into()));
        assert_eq!(known.left_alone("n"), None);
        assert_eq!(known.clear_unreadable(b.watch, &b.key), None);
    }

    #[test]
    fn each_complaint_is_told_once() {
        let mut known = Index::default();
        let first = broken("a", None, "x");
        known.note_unreadable(first.clone());
        assert_eq!(known.tell_unreadable(), std::slice::from_ref(&first));
        assert_eq!(known.note_unreadable(first), [] as [Arc<str>; 0]);
        assert_eq!(known.tell_unreadable(), []);
        let other = broken("a", Some("n"), "y");
        assert_eq!(known.note_unreadable(other.clone()), ["n".into()]);
        assert_eq!(other.to_string(), "Pod ns/a cannot be parsed: y",);
        assert_eq!(known.tell_unreadable(), [other]);
    }
}
