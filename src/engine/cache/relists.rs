//! What the lists in progress have shown.

use crate::engine::kind::Watch;
use crate::engine::map::{Map, Set};
use crate::object::ObjectKey;

/// The lists in progress, each with the objects that it has shown so far.
#[derive(Debug, Default)]
pub(super) struct Relists(Map<Watch, Set<ObjectKey>>);

impl Relists {
    /// Begins a list, in place of any in progress.
    pub(super) fn begin(&mut self, watch: Watch) {
        self.0.insert(watch, Set::default());
    }

    /// Notes an object; returns whether a list is in progress.
    pub(super) fn saw(&mut self, watch: Watch, key: &ObjectKey) -> bool {
        let list = self.0.get_mut(&watch);
        list.map(|shown| shown.insert(key.clone())).is_some()
    }

    /// Ends a list; returns the objects that it has shown.
    pub(super) fn end(&mut self, watch: Watch) -> Set<ObjectKey> {
        self.0.remove(&watch).unwrap_or_default()
    }
}
