//! The objects that are unreadable at present, the nodes that are left as they are because of them, and which objects have not
//! been reported yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::condition::Watch;
use crate::engine::broken::{Broken, Identity};
use crate::engine::map::Map;
use crate::object::{ObjectKey, Unreadable};

type Key = (Watch, ObjectKey);

/// The objects that are unreadable at present.
#[derive(Debug, Default)]
pub(super) struct Unreadables {
    all: Map<Key, Known>,
    /// Whether any has not been reported yet.
    has_news: bool,
    by_node: Map<Arc<str>, BTreeSet<Key>>,
}

#[derive(Debug)]
struct Known {
    broken: Broken,
    is_told: bool,
}

impl Unreadables {
    /// Returns the decoded object, if it is readable, and the nodes that this affects: those that are left as they are from now
    /// on, or no longer. `node` is the node that the object belongs to, if it belongs to one.
    pub(super) fn understood<T>(
        &mut self,
        object: Identity,
        node: Option<Arc<str>>,
        read: Result<T, Unreadable>,
    ) -> (Option<T>, Vec<Arc<str>>) {
        match read {
            Ok(value) => {
                let left_alone = self.clear(object.watch, &object.key);
                (Some(value), left_alone.into_iter().collect())
            }
            Err(why) => (None, self.note(Broken { object, node, why })),
        }
    }

    /// Notes an unreadable object; returns the nodes that this affects if it is new.
    fn note(&mut self, broken: Broken) -> Vec<Arc<str>> {
        let key = (broken.object.watch, broken.object.key.clone());
        if self
            .all
            .get(&key)
            .is_some_and(|known| known.broken == broken)
        {
            return Vec::new();
        }
        let was = self.forget(&key);
        if let Some(node) = &broken.node {
            let keys = self.by_node.entry(node.clone()).or_default();
            keys.insert(key.clone());
        }
        let concerned = was.into_iter().chain(broken.node.clone()).collect();
        let known = Known {
            broken,
            is_told: false,
        };
        self.all.insert(key, known);
        self.has_news = true;
        concerned
    }

    /// Notes that an object is readable again, or gone; returns the node that was left as it was because of it.
    pub(super) fn clear(&mut self, watch: Watch, key: &ObjectKey) -> Option<Arc<str>> {
        if self.all.is_empty() {
            return None;
        }
        self.forget(&(watch, key.clone()))
    }

    /// An unreadable object because of which this node is left as it is.
    pub(super) fn of_node(&self, node: &str) -> Option<&Broken> {
        let key = self.by_node.get(node)?.first()?;
        self.all.get(key).map(|known| &known.broken)
    }

    /// Takes what has not been reported yet.
    pub(super) fn tell(&mut self) -> Vec<Broken> {
        if !std::mem::take(&mut self.has_news) {
            return Vec::new();
        }
        let mut untold: Vec<Broken> = self
            .all
            .values_mut()
            .filter(|known| !known.is_told)
            .map(|known| {
                known.is_told = true;
                known.broken.clone()
            })
            .collect();
        untold.sort_by(|a, b| a.object.key.cmp(&b.object.key));
        untold
    }

    /// The watch of each object.
    pub(super) fn watches(&self) -> impl Iterator<Item = Watch> {
        self.all.keys().map(|(watch, _)| *watch)
    }

    /// The objects of one watch.
    pub(super) fn of_watch(&self, watch: Watch) -> impl Iterator<Item = &ObjectKey> {
        let of_it = self.all.keys().filter(move |key| key.0 == watch);
        of_it.map(|(_, key)| key)
    }

    fn forget(&mut self, key: &Key) -> Option<Arc<str>> {
        let node = self.all.remove(key)?.broken.node?;
        if let Some(keys) = self.by_node.get_mut(&node) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_node.remove(&node);
            }
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::ComponentGroup;

    fn broken(name: &str, node: Option<&str>, why: &str) -> Broken {
        Broken {
            object: Identity {
                watch: Watch::Pods(ComponentGroup::Class(0)),
                key: ObjectKey::new("ns", name),
                uid: None,
            },
            node: node.map(Arc::from),
            why: Unreadable::new(why),
        }
    }

    #[test]
    fn a_node_is_left_alone_until_all_of_its_objects_can_be_understood() {
        let mut known = Unreadables::default();
        let (a, b) = (broken("a", Some("n"), "x"), broken("b", Some("n"), "x"));
        assert_eq!(known.note(a.clone()), ["n".into()]);
        assert_eq!(known.note(b.clone()), ["n".into()]);
        assert_eq!(known.of_node("n"), Some(&a));
        assert_eq!(known.clear(a.object.watch, &a.object.key), Some("n".into()));
        assert_eq!(known.of_node("n"), Some(&b));
        assert_eq!(known.clear(b.object.watch, &b.object.key), Some("n".into()));
        assert_eq!(known.of_node("n"), None);
        assert_eq!(known.clear(b.object.watch, &b.object.key), None);
    }

    #[test]
    fn each_complaint_is_told_once() {
        let mut known = Unreadables::default();
        let first = broken("a", None, "x");
        known.note(first.clone());
        assert_eq!(known.tell(), std::slice::from_ref(&first));
        assert_eq!(known.note(first), [] as [Arc<str>; 0]);
        assert_eq!(known.tell(), []);
        let other = broken("a", Some("n"), "y");
        assert_eq!(known.note(other.clone()), ["n".into()]);
        assert_eq!(other.to_string(), "Pod ns/a cannot be parsed: y",);
        assert_eq!(known.tell(), [other]);
    }
}
