//! The nodes to evaluate, in turn, and what else follows from what was seen.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::map::Set;

#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Whether nodes are queued. A follower evaluates nothing, and a new leader starts with all nodes.
    pub(super) evaluates: bool,
    /// Their names, each once, oldest first.
    queue: VecDeque<Arc<str>>,
    queued: Set<Arc<str>>,
    /// The nodes on which the controller did not act because something was stale.
    withheld: Set<Arc<str>>,
    /// What is not dealt with yet.
    pub(crate) changes: Changes,
}

/// What follows from what the cache has taken in, beside the nodes to evaluate.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Whether the rules, or what they wait for, have changed.
    pub rules: bool,
    /// The rules whose status has been shown again. A follower notes none.
    pub statuses: Set<Arc<str>>,
    /// Whether an outage has ended: a kind is current again after longer than a working watch is silent.
    pub outage_ended: bool,
}

impl Turn {
    /// Queues a node for evaluation.
    pub(crate) fn mark(&mut self, name: &Arc<str>) {
        if self.evaluates && self.queued.insert(name.clone()) {
            self.queue.push_back(name.clone());
        }
    }

    pub(super) fn mark_each<'a>(&mut self, names: impl IntoIterator<Item = &'a Arc<str>>) {
        for name in names {
            self.mark(name);
        }
    }

    pub(crate) fn next(&mut self) -> Option<Arc<str>> {
        let name = self.queue.pop_front()?;
        self.queued.remove(&name);
        Some(name)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Notes that a stale kind kept the controller from acting on a node, so that the node is evaluated again afterwards.
    pub(crate) fn withhold(&mut self, name: &Arc<str>) {
        self.withheld.insert(name.clone());
    }

    /// Queues the nodes that were withheld.
    pub(super) fn resume(&mut self) {
        for name in std::mem::take(&mut self.withheld) {
            self.mark(&name);
        }
    }

    /// Notes that the API server has shown the status of a known rule again.
    pub(super) fn shows_status(&mut self, rule: Arc<str>) {
        if self.evaluates {
            self.changes.statuses.insert(rule);
        }
    }
}
