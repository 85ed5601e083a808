//! Unreadable objects, and the nodes that are left as they are because of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cache;
use crate::condition::Watch;
use crate::engine::broken::{Broken, Identity};
use crate::object::{ObjectKey, Unreadable, Version};

impl Cache {
    /// The unreadable object because of which this node is left as it is, if any.
    pub fn left_alone(&self, node: &str) -> Option<&Broken> {
        self.unreadables.of_node(node)
    }

    /// The unreadable objects that have not been reported yet.
    pub fn tell_unreadable(&mut self) -> Vec<Broken> {
        self.unreadables.tell()
    }

    pub fn unreadable_counts(&self) -> BTreeMap<&'static str, usize> {
        let kinds = Watch::KINDS.into_iter();
        let mut counts: BTreeMap<_, _> = kinds.map(|watch| (watch.kind(), 0)).collect();
        for watch in self.unreadables.watches() {
            *counts.entry(watch.kind()).or_default() += 1;
        }
        counts
    }

    /// Indexes an object; returns it with its key. If it is unreadable, notes that, and its node is left as it is until the
    /// object is readable.
    pub(super) fn understood<T>(
        &mut self,
        object: Identity,
        version: Version,
        node: Option<Arc<str>>,
        read: Result<T, Unreadable>,
    ) -> Option<(ObjectKey, T)> {
        let (watch, key) = (object.watch, object.key.clone());
        let (value, concerned) = self.unreadables.understood(object, node, read);
        self.mark_each(&concerned);
        let value = value?;
        Some((self.index.put(watch, key, version), value))
    }

    pub(super) fn mark_each(&mut self, names: &[Arc<str>]) {
        for name in names {
            self.mark(name);
        }
    }
}
