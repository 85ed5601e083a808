//! The version up to which everything has been shown. An older state is never taken in, even if the object is unknown: it may
//! have been deleted since.

use std::sync::Arc;

use crate::engine::kind::Watch;
use crate::engine::map::Map;
use crate::object::Version;

#[derive(Debug, Default)]
pub(crate) struct Shown {
    by_watch: Map<Watch, Version>,
    /// Versions of live reads that the watch has not reached yet, by node; the empty name stands for the cluster.
    by_live_read: Map<(Watch, Arc<str>), Version>,
}

impl Shown {
    /// Notes that the watch has shown everything up to this version.
    pub(crate) fn watched(&mut self, watch: Watch, version: Version) {
        let shown = self.by_watch.entry(watch).or_default();
        *shown = version.max(*shown);
    }

    /// Notes that the watch is current as of a version, and drops the live reads that it has overtaken.
    pub(crate) fn reached(&mut self, watch: Watch, version: Version) {
        self.watched(watch, version);
        let is_ahead = |it: &Watch, at: Version| *it != watch || at > version;
        self.by_live_read.retain(|(it, _), at| is_ahead(it, *at));
    }

    /// Notes that the watch has listed everything as of this version, which may be lower than before: the cluster may have been
    /// restored from a backup.
    pub(crate) fn listed(&mut self, watch: Watch, version: Version) {
        self.forget(watch);
        self.by_watch.insert(watch, version);
    }

    /// Notes the version of a live read of a node; the empty name stands for the cluster.
    pub(crate) fn read_live(&mut self, watch: Watch, node: &Arc<str>, version: Version) {
        if !self.has_watched(watch, version) {
            let shown = self.by_live_read.entry((watch, node.clone())).or_default();
            *shown = version.max(*shown);
        }
    }

    pub(crate) fn forget(&mut self, watch: Watch) {
        self.by_watch.remove(&watch);
        self.by_live_read.retain(|(it, _), _| *it != watch);
    }

    /// Whether the watch has shown everything up to this version.
    pub(crate) fn has_watched(&self, watch: Watch, version: Version) -> bool {
        version != 0 && self.by_watch.get(&watch).is_some_and(|it| version <= *it)
    }

    /// Whether a live read has shown everything up to this version.
    pub(crate) fn has_read_live(&self, watch: Watch, node: &str, version: Version) -> bool {
        if version == 0 || self.by_live_read.is_empty() {
            return false;
        }
        let shown = self.by_live_read.get(&(watch, node.into()));
        shown.is_some_and(|it| version <= *it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_read_counts_until_the_watch_has_reached_it() {
        let (watch, node) = (Watch::Nodes, "n".into());
        let mut shown = Shown::default();
        shown.read_live(watch, &node, 7);
        for (reached, is_ahead) in [(6, true), (7, false)] {
            shown.reached(watch, reached);
            assert_eq!(shown.has_read_live(watch, "n", 7), is_ahead, "{reached}");
            assert_eq!(shown.has_watched(watch, 7), !is_ahead, "{reached}");
        }
    }
}
