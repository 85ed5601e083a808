//! Up to which version everything has been shown: no evidence is taken in that is older than that, whether or not the object is
//! known. An object that is not known may be gone.

use std::sync::Arc;

use crate::engine::kind::Watch;
use crate::engine::map::Map;
use crate::object::Version;

/// Up to which version everything has been shown.
#[derive(Debug, Default)]
pub struct Shown {
    by_watch: Map<Watch, Version>,
    /// What lists beside the watch have shown that it has not reached yet, each of the objects of one node or, under no name,
    /// of the cluster's.
    by_look: Map<(Watch, Arc<str>), Version>,
}

impl Shown {
    /// The watch has shown everything up to this version.
    pub fn watched(&mut self, watch: Watch, version: Version) {
        let shown = self.by_watch.entry(watch).or_default();
        *shown = version.max(*shown);
    }

    /// The view is current as of a version: looks that the watch has overtaken by it say nothing more.
    pub fn reached(&mut self, watch: Watch, version: Version) {
        self.watched(watch, version);
        let is_ahead = |it: &Watch, at: Version| *it != watch || at > version;
        self.by_look.retain(|(it, _), at| is_ahead(it, *at));
    }

    /// The watch has listed everything as of this version. It may be a lower one than before: the cluster may have been restored
    /// from an older state.
    pub fn listed(&mut self, watch: Watch, version: Version) {
        self.forget(watch);
        self.by_watch.insert(watch, version);
    }

    /// A list of a node's objects, or under no name of the cluster's, has shown them as of this version.
    pub fn looked(&mut self, watch: Watch, node: &Arc<str>, version: Version) {
        if !self.has_watched(watch, version) {
            let shown = self.by_look.entry((watch, node.clone())).or_default();
            *shown = version.max(*shown);
        }
    }

    /// Nothing has been shown of this any more.
    pub fn forget(&mut self, watch: Watch) {
        self.by_watch.remove(&watch);
        self.by_look.retain(|(it, _), _| *it != watch);
    }

    /// Whether the watch has shown what an object of this version became.
    pub fn has_watched(&self, watch: Watch, version: Version) -> bool {
        version != 0 && self.by_watch.get(&watch).is_some_and(|it| version <= *it)
    }

    /// Whether a look has shown what an object of this version became.
    pub fn has_looked(&self, watch: Watch, node: &str, version: Version) -> bool {
        if version == 0 || self.by_look.is_empty() {
            return false;
        }
        let shown = self.by_look.get(&(watch, node.into()));
        shown.is_some_and(|it| version <= *it)
    }
}
