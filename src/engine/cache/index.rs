//! The kept objects of every watch: their versions, and the nodes that they belong to. What is the same for all kinds of
//! objects goes by this index; a kind has a file of its own for the rest.

use std::sync::Arc;

use crate::condition::Watch;
use crate::engine::map::Map;
use crate::object::{ObjectKey, Version};

#[derive(Debug, Default)]
pub(super) struct Index(Map<Watch, Map<ObjectKey, Kept>>);

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
        let of_watch = self.0.entry(watch).or_default();
        let place = of_watch.entry(key);
        let key = place.key().clone();
        let known = place.or_insert(Kept {
            version,
            node: None,
        });
        known.version = version;
        key
    }

    pub(super) fn get(&self, watch: Watch, key: &ObjectKey) -> Option<&Kept> {
        self.0.get(&watch)?.get(key)
    }

    /// The node that an object belongs to, unless its key names it.
    pub(super) fn node(&self, watch: Watch, key: &ObjectKey) -> Option<Arc<str>> {
        self.get(watch, key)?.node.clone()
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

    pub(super) fn get_mut(&mut self, watch: Watch, key: &ObjectKey) -> Option<&mut Kept> {
        self.0.get_mut(&watch)?.get_mut(key)
    }

    pub(super) fn keys(&self, watch: Watch) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(&watch).into_iter().flat_map(Map::keys)
    }

    /// How many objects all watches of a kind keep.
    pub(super) fn count(&self, kind: Watch) -> usize {
        let of_kind = self.0.iter().filter(|(it, _)| it.kind() == kind.kind());
        of_kind.map(|(_, objects)| objects.len()).sum()
    }

    pub(super) fn remove(&mut self, watch: Watch, key: &ObjectKey) -> Option<Kept> {
        self.0.get_mut(&watch)?.remove(key)
    }

    /// Removes all objects of a watch.
    pub(super) fn remove_all(&mut self, watch: Watch) -> Map<ObjectKey, Kept> {
        self.0.remove(&watch).unwrap_or_default()
    }
}
