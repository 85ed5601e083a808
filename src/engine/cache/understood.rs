//! Whether what was seen can be understood, and what is left as it is where it cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cache;
use crate::engine::broken::{Broken, Identity};
use crate::engine::kind::Watch;
use crate::object::Unreadable;

impl Cache {
    /// The object because of which this node is left as it is, if there is one: it cannot be understood.
    pub fn left_alone(&self, node: &str) -> Option<&Broken> {
        self.unreadables.of_node(node)
    }

    /// The objects that cannot be understood, as far as that has not been told yet.
    pub fn tell_unreadable(&mut self) -> Vec<Broken> {
        self.unreadables.tell()
    }

    /// How many objects of each kind cannot be understood.
    pub fn unreadable_counts(&self) -> BTreeMap<&'static str, usize> {
        let kinds = Watch::KINDS.into_iter();
        let mut counts: BTreeMap<_, _> = kinds.map(|watch| (watch.kind(), 0)).collect();
        for watch in self.unreadables.watches() {
            *counts.entry(watch.kind()).or_default() += 1;
        }
        counts
    }

    /// Answers an object that was seen, if it can be understood. One that cannot is noted, and the node that it is about left
    /// as it is until it can.
    pub(super) fn understood<T>(
        &mut self,
        object: Identity,
        node: Option<Arc<str>>,
        read: Result<T, Unreadable>,
    ) -> Option<T> {
        let (value, concerned) = self.unreadables.understood(object, node, read);
        self.mark_each(&concerned);
        value
    }

    pub(super) fn mark_each(&mut self, names: &[Arc<str>]) {
        for name in names {
            self.mark(name);
        }
    }
}
