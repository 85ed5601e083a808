//! The stores of all kinds, which kube-runtime shares with readers in other tasks. Their order is random, so nothing here goes by
//! it: what is iterated over is indexed beside them, with the same states.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use kube::runtime::reflector::{Lookup, ObjectRef, Store, store::Writer};
use kube::runtime::watcher::Event;

use super::unreadable::Unreadables;
use nodegate_core::condition::{ByGroup, Watch};
use nodegate_core::object::{
    CsiNode, DaemonSet, Kept, Kind, Node, NodeClaim, NodePool, ObjectKey, Pod, ResourceSlice,
    RuleObject, State, Version,
};

#[derive(Debug, Clone)]
pub struct Stored<T>(pub Kept<T>);

impl<T> Deref for Stored<T> {
    type Target = Kept<T>;

    fn deref(&self) -> &Kept<T> {
        &self.0
    }
}

/// Without version and UID, so that a key in a store is one or two strings.
impl<T: Kind> Lookup for Stored<T> {
    type DynamicType = ();

    fn group((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[0].into()
    }

    fn version((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[1].into()
    }

    fn kind((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[2].into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::RESOURCE.row()[3].into()
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some((&*self.key().name).into())
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        let namespace = &*self.key().namespace;
        (!namespace.is_empty()).then(|| namespace.into())
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        None
    }
}

/// What other tasks read. Each store is ready once its first list is complete.
#[derive(Debug, Clone)]
pub struct Readers {
    pub nodes: Store<Stored<Node>>,
    /// All `CSINode`s, if they are watched.
    pub csi_nodes: Store<Stored<CsiNode>>,
}

/// The objects of one watch.
#[derive(Debug)]
pub(super) struct Shelf<T: Kind> {
    writer: Writer<Stored<T>>,
    store: Store<Stored<T>>,
}

impl<T: Kind> Default for Shelf<T> {
    fn default() -> Self {
        let writer = Writer::default();
        let store = writer.as_reader();
        Self { writer, store }
    }
}

impl<T: Kind> Shelf<T> {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Kept<T>> {
        let mut reference = ObjectRef::new(&key.name);
        reference.namespace = Some(key.namespace.to_string()).filter(|it| !it.is_empty());
        let stored = self.store.get(&reference)?;
        Some(Kept::clone(&stored))
    }

    /// Keeps a state; returns it, and the one before.
    pub(super) fn put(&mut self, state: State<T>) -> (Kept<T>, Option<Kept<T>>) {
        let known = self.get(&state.key);
        let kept = Kept::from(state);
        let event = Event::Apply(Stored(kept.clone()));
        self.writer.apply_watcher_event(&event);
        (kept, known)
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Kept<T>> {
        let gone = self.get(key)?;
        self.writer
            .apply_watcher_event(&Event::Delete(Stored(gone.clone())));
        Some(gone)
    }

    /// Tells readers that the first list is complete. All that it has shown is there already, and stays.
    fn complete(&mut self) {
        for stored in self.store.state() {
            let event = Event::InitApply(Stored::clone(&stored));
            self.writer.apply_watcher_event(&event);
        }
        self.writer.apply_watcher_event(&Event::InitDone);
    }
}

/// The objects of one watch, of whatever kind.
pub(super) trait AnyShelf {
    fn version(&self, key: &ObjectKey) -> Option<Version>;
    /// The node that an object belongs to.
    fn node(&self, key: &ObjectKey) -> Option<Arc<str>>;
    fn keys(&self) -> Vec<ObjectKey>;
    fn len(&self) -> usize;
}

impl<T: Kind> AnyShelf for Shelf<T> {
    fn version(&self, key: &ObjectKey) -> Option<Version> {
        self.get(key).map(|kept| kept.version())
    }

    fn node(&self, key: &ObjectKey) -> Option<Arc<str>> {
        self.get(key)?.node_name().map(Arc::from)
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let state = self.store.state();
        state.iter().map(|kept| kept.key().clone()).collect()
    }

    fn len(&self) -> usize {
        self.store.len()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stores {
    pub(super) nodes: Shelf<Node>,
    pub(super) csi_nodes: Shelf<CsiNode>,
    pub(super) pods: ByGroup<Shelf<Pod>>,
    pub(super) daemon_sets: ByGroup<Shelf<DaemonSet>>,
    pub(super) slices: ByGroup<Shelf<ResourceSlice>>,
    pub(super) rules: Shelf<RuleObject>,
    pub(super) claims: Shelf<NodeClaim>,
    pub(super) pools: Shelf<NodePool>,
    pub(crate) unreadable: Unreadables,
}

impl Stores {
    pub(crate) fn readers(&self) -> Readers {
        Readers {
            nodes: self.nodes.store.clone(),
            csi_nodes: self.csi_nodes.store.clone(),
        }
    }

    pub(super) fn of(&self, watch: Watch) -> Option<&dyn AnyShelf> {
        Some(match watch {
            Watch::Nodes => &self.nodes,
            Watch::CsiNodes => &self.csi_nodes,
            Watch::Pods(group) => self.pods.get(&group)?,
            Watch::DaemonSets(group) => self.daemon_sets.get(&group)?,
            Watch::ResourceSlices(group) => self.slices.get(&group)?,
            Watch::Rules => &self.rules,
            Watch::NodeClaims => &self.claims,
            Watch::NodePools => &self.pools,
        })
    }

    /// The objects of a watch, unreadable ones included, from the last to the first: sorted lists are taken apart from their ends.
    pub(super) fn known(&self, watch: Watch) -> Vec<ObjectKey> {
        let mut known = self.of(watch).map_or_else(Vec::new, AnyShelf::keys);
        known.extend(self.unreadable.of(watch).cloned());
        known.sort_unstable_by(|a, b| b.cmp(a));
        known
    }

    pub(super) fn complete(&mut self, watch: Watch) {
        match watch {
            Watch::Nodes => self.nodes.complete(),
            Watch::CsiNodes => self.csi_nodes.complete(),
            _ => {}
        }
    }

    /// Forgets a watch whose objects have been removed.
    pub(super) fn end(&mut self, watch: Watch) {
        match watch {
            Watch::Pods(group) => drop(self.pods.remove(&group)),
            Watch::DaemonSets(group) => drop(self.daemon_sets.remove(&group)),
            Watch::ResourceSlices(group) => drop(self.slices.remove(&group)),
            _ => {}
        }
    }
}
