//! The objects that cannot be understood at the moment, the nodes that are left as they are because of them, and what of this
//! is still to be told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use kube::api::ObjectMeta;

use super::{Cache, Watch};
use crate::object::Unreadable;

/// What tells an object from others of its kind, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Where it was seen.
    pub watch: Watch,
    /// Its name, after its namespace where it has one; empty where it says nothing.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Option<Arc<str>>,
}

impl Identity {
    /// The identity that the metadata of an object give it.
    pub fn of(watch: Watch, meta: &ObjectMeta) -> Self {
        let name = meta.name.as_deref().unwrap_or_default();
        Self {
            watch,
            name: match &meta.namespace {
                Some(namespace) => format!("{namespace}/{name}").into(),
                None => name.into(),
            },
            uid: meta.uid.as_deref().map(Arc::from),
        }
    }
}

/// An object that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The object.
    pub object: Identity,
    /// The node that is left as it is because of it.
    pub node: Option<Arc<str>>,
    /// What is wrong with it.
    pub why: Unreadable,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.object.watch.kind();
        match &*self.object.name {
            "" => write!(f, "a {kind} without a name")?,
            name => write!(f, "{kind} {name}")?,
        }
        write!(f, " cannot be understood: {}", self.why)
    }
}

type Key = (Watch, Arc<str>);

/// The objects that cannot be understood at the moment.
#[derive(Debug, Default)]
pub struct Unreadables {
    all: HashMap<Key, Known>,
    /// Whether some of them have not been told.
    has_news: bool,
    by_node: HashMap<Arc<str>, BTreeSet<Key>>,
}

#[derive(Debug)]
struct Known {
    broken: Broken,
    is_told: bool,
    /// Whether it has been seen since the list began that is under way.
    is_listed: bool,
}

impl Unreadables {
    /// Answers an object that was seen, if it can be understood, and the nodes that are left as they are from now on, or no
    /// longer, because of it. `node` is the one that it is about, where it is about one alone.
    pub fn understood<T>(
        &mut self,
        object: Identity,
        node: Option<Arc<str>>,
        read: Result<T, Unreadable>,
    ) -> (Option<T>, Vec<Arc<str>>) {
        match read {
            Ok(value) => (Some(value), self.clear(&object).into_iter().collect()),
            Err(why) => (None, self.note(Broken { object, node, why })),
        }
    }

    /// Notes an object that cannot be understood; answers the nodes that this concerns, where it is news.
    fn note(&mut self, broken: Broken) -> Vec<Arc<str>> {
        let key = (broken.object.watch, broken.object.name.clone());
        if let Some(known) = self.all.get_mut(&key)
            && known.broken == broken
        {
            known.is_listed = true;
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
            is_listed: true,
        };
        self.all.insert(key, known);
        self.has_news = true;
        concerned
    }

    /// Notes that an object can be understood again, or is gone; answers the node that was left as it was because of it.
    pub fn clear(&mut self, object: &Identity) -> Option<Arc<str>> {
        if self.all.is_empty() {
            return None;
        }
        self.forget(&(object.watch, object.name.clone()))
    }

    /// A list of all objects begins.
    pub fn begin_list(&mut self, watch: Watch) {
        for known in self.of_watch(watch) {
            known.is_listed = false;
        }
    }

    /// A list of all objects ends: what was not in it is gone. Answers the nodes that were left as they were because of it.
    pub fn end_list(&mut self, watch: Watch) -> Vec<Arc<str>> {
        let gone: Vec<Key> = self
            .of_watch(watch)
            .filter(|known| !known.is_listed)
            .map(|known| (watch, known.broken.object.name.clone()))
            .collect();
        gone.iter().filter_map(|key| self.forget(key)).collect()
    }

    /// An object because of which this node is left as it is.
    pub fn of_node(&self, node: &str) -> Option<&Broken> {
        let key = self.by_node.get(node)?.first()?;
        self.all.get(key).map(|known| &known.broken)
    }

    /// What has not been told yet. From now on it has been.
    pub fn tell(&mut self) -> Vec<Broken> {
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
        untold.sort_by(|a, b| a.object.name.cmp(&b.object.name));
        untold
    }

    /// Where each of the objects was seen.
    pub fn watches(&self) -> impl Iterator<Item = Watch> {
        self.all.keys().map(|(watch, _)| *watch)
    }

    fn of_watch(&mut self, watch: Watch) -> impl Iterator<Item = &mut Known> {
        self.all
            .values_mut()
            .filter(move |known| known.broken.object.watch == watch)
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

    /// Takes in that an object is gone.
    pub(super) fn gone(&mut self, object: &Identity) {
        let concerned = self.unreadables.clear(object);
        self.mark_each(concerned.as_slice());
    }

    /// Takes in that a list of all objects has ended: what was not in it is gone.
    pub(super) fn listed(&mut self, watch: Watch) {
        let concerned = self.unreadables.end_list(watch);
        self.mark_each(&concerned);
    }

    fn mark_each(&mut self, names: &[Arc<str>]) {
        for name in names {
            self.mark(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(name: &str, node: Option<&str>, why: &str) -> Broken {
        Broken {
            object: Identity {
                watch: Watch::Pods(0),
                name: name.into(),
                uid: None,
            },
            node: node.map(Arc::from),
            why: Unreadable::new(why),
        }
    }

    #[test]
    fn a_node_is_left_alone_until_all_of_its_objects_can_be_understood() {
        let mut known = Unreadables::default();
        let (a, b) = (
            broken("ns/a", Some("n"), "x"),
            broken("ns/b", Some("n"), "x"),
        );
        assert_eq!(known.note(a.clone()), ["n".into()]);
        assert_eq!(known.note(b.clone()), ["n".into()]);
        assert_eq!(known.of_node("n"), Some(&a));
        assert_eq!(known.clear(&a.object), Some("n".into()));
        assert_eq!(known.of_node("n"), Some(&b));
        assert_eq!(known.clear(&b.object), Some("n".into()));
        assert_eq!(known.of_node("n"), None);
        assert_eq!(known.clear(&b.object), None);
    }

    #[test]
    fn each_complaint_is_told_once() {
        let mut known = Unreadables::default();
        let first = broken("ns/a", None, "x");
        known.note(first.clone());
        assert_eq!(known.tell(), std::slice::from_ref(&first));
        assert_eq!(known.note(first), [] as [Arc<str>; 0]);
        assert_eq!(known.tell(), []);
        let other = broken("ns/a", Some("n"), "y");
        assert_eq!(known.note(other.clone()), ["n".into()]);
        assert_eq!(other.to_string(), "Pod ns/a cannot be understood: y",);
        assert_eq!(known.tell(), [other]);
    }

    #[test]
    fn what_a_list_does_not_have_is_gone() {
        let mut known = Unreadables::default();
        let (stays, goes) = (
            broken("ns/a", Some("n"), "x"),
            broken("ns/b", Some("m"), "x"),
        );
        known.note(stays.clone());
        known.note(goes);
        known.begin_list(Watch::Pods(0));
        known.note(stays);
        assert_eq!(known.end_list(Watch::Pods(1)), [] as [Arc<str>; 0]);
        assert_eq!(known.end_list(Watch::Pods(0)), ["m".into()]);
        assert_eq!((known.of_node("m"), known.watches().count()), (None, 1));
    }
}
