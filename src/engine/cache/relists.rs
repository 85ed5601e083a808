//! What the lists have shown that are under way.

use crate::engine::kind::Watch;
use crate::engine::map::{Map, Set};
use crate::object::ObjectKey;

/// The lists that are under way, each with the objects that it has shown so far.
#[derive(Debug, Default)]
pub struct Relists(Map<Watch, Set<ObjectKey>>);

impl Relists {
    /// A list begins, in place of any that was under way of this kind.
    pub fn begin(&mut self, watch: Watch) {
        self.0.insert(watch, Set::default());
    }

    /// An object was shown; answers whether that was by a list.
    pub fn saw(&mut self, watch: Watch, key: &ObjectKey) -> bool {
        let list = self.0.get_mut(&watch);
        list.map(|shown| shown.insert(key.clone())).is_some()
    }

    /// A list is complete; answers what it has shown.
    pub fn end(&mut self, watch: Watch) -> Set<ObjectKey> {
        self.0.remove(&watch).unwrap_or_default()
    }
}
