//! The `DaemonSet`s that rules wait for by name: their watches, and whether those have shown everything.
//!
//! Each forms a component group from when a rule names it. One watch covers the `DaemonSet`; once its selector is known,
//! another covers its pods. The selector of a group never changes: a `DaemonSet` that is created again with another selector
//! gets a new group, so pods of the old one are not mistaken for its own.

use crate::condition::{ComponentGroup, NamedDaemonSet};
use crate::engine::io::Effect;
use crate::engine::kind::{Scope, Watch};
use crate::engine::map::Set;
use crate::object::ObjectKey;
use crate::selector::Selector;

/// How many are watched at most, at two watches each.
pub(crate) const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) all: Vec<NamedDaemonSet>,
    /// The pod selector of each, once known, in the same order.
    pub(super) selectors: Vec<Option<Selector>>,
    /// The number of the next group.
    next: usize,
    /// The watches that have not shown everything yet.
    pub(super) awaited: Set<Watch>,
    /// The watches to start and stop.
    pub(super) orders: Vec<Effect>,
}

impl Named {
    pub(super) fn all(&self) -> &[NamedDaemonSet] {
        &self.all
    }

    /// Notes that a watch is current; returns whether that is so for the first time.
    pub(super) fn confirmed(&mut self, watch: Watch) -> bool {
        self.awaited.remove(&watch)
    }

    /// The index of a group, if it exists.
    pub(super) fn position(&self, group: ComponentGroup) -> Option<usize> {
        self.all.iter().position(|named| named.group == group)
    }

    pub(super) fn watch(&mut self, watch: Watch, scope: Scope) {
        self.awaited.insert(watch);
        self.orders.push(Effect::Watch(watch, scope));
    }

    /// Starts a group for a `DaemonSet`.
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
