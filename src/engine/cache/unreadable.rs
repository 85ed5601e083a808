//! Unreadable objects, of all kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::map::Map;
use nodegate_core::condition::Watch;
use nodegate_core::object::{ObjectKey, Unreadable};

/// An unreadable object, as far as its metadata identify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub watch: Watch,
    /// Its name and namespace; each is empty if it has none.
    pub key: ObjectKey,
    pub uid: Option<Arc<str>>,
    /// The node that is left as it is because of it.
    pub node: Option<Arc<str>>,
    pub why: Unreadable,
}

impl Broken {
    /// Its kind and name.
    pub fn object(&self) -> String {
        let kind = self.watch.kind();
        match (&*self.key.namespace, &*self.key.name) {
            (_, "") => format!("a {kind} without a name"),
            ("", name) => format!("{kind} {name}"),
            _ => format!("{kind} {}", self.key),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be parsed: {}", self.object(), self.why)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Unreadables {
    all: BTreeMap<(Watch, ObjectKey), Broken>,
    untold: BTreeSet<(Watch, ObjectKey)>,
    /// Those because of which a node is left as it is.
    by_node: Map<Arc<str>, BTreeSet<(Watch, ObjectKey)>>,
}

impl Unreadables {
    /// Notes an unreadable object; returns the nodes that this affects if it is new.
    pub(super) fn note(&mut self, broken: Broken) -> Vec<Arc<str>> {
        let key = (broken.watch, broken.key.clone());
        if self.all.get(&key) == Some(&broken) {
            return Vec::new();
        }
        let was = self.clear(broken.watch, &broken.key);
        let node = broken.node.clone();
        if let Some(node) = &node {
            let keys = self.by_node.entry(node.clone()).or_default();
            keys.insert(key.clone());
        }
        self.untold.insert(key.clone());
        self.all.insert(key, broken);
        was.into_iter().chain(node).collect()
    }

    /// Notes that an object is readable, or gone; returns the node that was left as it was because of it.
    pub(super) fn clear(&mut self, watch: Watch, key: &ObjectKey) -> Option<Arc<str>> {
        if self.all.is_empty() {
            return None;
        }
        let key = (watch, key.clone());
        self.untold.remove(&key);
        let node = self.all.remove(&key)?.node?;
        if let Some(keys) = self.by_node.get_mut(&node) {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_node.remove(&node);
            }
        }
        Some(node)
    }

    pub(super) fn of(&self, watch: Watch) -> impl Iterator<Item = &ObjectKey> {
        let first = ObjectKey::unscoped(Arc::default());
        let keys = self.all.range((watch, first)..).map(|(key, _)| key);
        keys.take_while(move |key| key.0 == watch)
            .map(|(_, key)| key)
    }

    /// An unreadable object because of which this node is left as it is.
    pub(crate) fn left_alone(&self, node: &str) -> Option<&Broken> {
        self.all.get(self.by_node.get(node)?.first()?)
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::from(Watch::KINDS.map(|watch| (watch.kind(), 0)));
        for (watch, _) in self.all.keys() {
            *counts.entry(watch.kind()).or_default() += 1;
        }
        counts
    }

    /// Takes the unreadable objects that have not been reported yet.
    pub(crate) fn tell(&mut self) -> Vec<Broken> {
        let untold = std::mem::take(&mut self.untold).into_iter();
        untold
            .filter_map(|key| self.all.get(&key).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodegate_core::condition::ComponentGroup;
    use nodegate_core::object::Unreadable;

    const PODS: Watch = Watch::Pods(ComponentGroup::Class(0));

    fn broken(watch: Watch, namespace: &str, name: &str) -> Broken {
        Broken {
            watch,
            key: ObjectKey::new(namespace, name),
            uid: None,
            node: Some("n".into()),
            why: Unreadable::new("x"),
        }
    }

    #[test]
    fn a_node_is_left_alone_until_all_of_its_objects_are_readable() {
        let mut known = Unreadables::default();
        let (a, b) = (broken(PODS, "ns", "a"), broken(PODS, "ns", "b"));
        assert_eq!(known.note(a.clone()), ["n".into()]);
        assert_eq!(known.note(b.clone()), ["n".into()]);
        assert_eq!(known.left_alone("n"), Some(&a));
        assert_eq!(known.clear(a.watch, &a.key), Some("n".into()));
        assert_eq!(known.left_alone("n"), Some(&b));
        assert_eq!(known.clear(b.watch, &b.key), Some("n".into()));
        assert_eq!(known.left_alone("n"), None);
        assert_eq!(known.clear(b.watch, &b.key), None);
    }

    #[test]
    fn an_object_is_called_by_as_much_of_its_name_as_it_has() {
        for (watch, namespace, name, called) in [
            (PODS, "ns", "a", "Pod ns/a"),
            (Watch::Nodes, "", "a", "Node a"),
            (PODS, "ns", "", "a Pod without a name"),
            (Watch::Nodes, "", "", "a Node without a name"),
        ] {
            let said = broken(watch, namespace, name).to_string();
            assert_eq!(said, format!("{called} cannot be parsed: x"));
        }
    }
}
