//! The `DaemonSet`s that rules wait for by name: which are watched, and whether everything has been seen of each.
//!
//! Each is a group of its own from when a rule names it: the `DaemonSet` is watched by its name, and from when it is known
//! which pods it selects, these. A group selects the same pods for as long as it lives; a `DaemonSet` that is created again
//! with another selector gets another one, so that nothing that belongs to the former is taken for the latter's.

use crate::condition::{ComponentGroup, NamedDaemonSet};
use crate::engine::io::Effect;
use crate::engine::kind::{Scope, Watch};
use crate::engine::map::Set;
use crate::object::ObjectKey;
use crate::selector::Selector;

/// How many are watched at most. Each costs two watches.
pub const MOST: usize = 64;

/// The `DaemonSet`s that are waited for by name.
#[derive(Debug, Default)]
pub struct Named {
    pub(super) all: Vec<NamedDaemonSet>,
    /// Which pods each of them has, as far as that is known, in the same order.
    pub(super) selectors: Vec<Option<Selector>>,
    /// The number of the next group.
    next: usize,
    /// The watches that have not shown everything yet.
    pub(super) awaited: Set<Watch>,
    /// What is to be watched from now on, and what no longer.
    pub(super) orders: Vec<Effect>,
}

impl Named {
    /// All of them.
    pub fn all(&self) -> &[NamedDaemonSet] {
        &self.all
    }

    /// Takes in that everything has been seen that a watch shows; answers whether that is so for the first time.
    pub fn confirmed(&mut self, watch: Watch) -> bool {
        self.awaited.remove(&watch)
    }

    /// Where one is among them.
    pub(super) fn position(&self, group: ComponentGroup) -> Option<usize> {
        self.all.iter().position(|named| named.group == group)
    }

    /// Begins a watch.
    pub(super) fn watch(&mut self, watch: Watch, scope: Scope) {
        self.awaited.insert(watch);
        self.orders.push(Effect::Watch(watch, scope));
    }

    /// Begins to watch one.
    pub(super) fn begin(&mut self, key: ObjectKey) {
        let group = ComponentGroup::Named(self.next);
        self.next += 1;
        self.watch(Watch::DaemonSets(group), Scope::DaemonSet(key.clone()));
        self.selectors.push(None);
        self.all.push(NamedDaemonSet {
            key,
            group,
            is_seen: false,
        });
    }
}
