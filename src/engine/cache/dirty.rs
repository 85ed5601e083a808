//! The queue of nodes to evaluate.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::map::Set;

/// The names of the nodes to evaluate, each once, oldest first.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// Whether names are queued. A follower evaluates nothing, and a new leader starts with all nodes.
    is_wanted: bool,
    queue: VecDeque<Arc<str>>,
    names: Set<Arc<str>>,
}

impl Dirty {
    /// Queues names from now on.
    pub(super) fn begin(&mut self) {
        self.is_wanted = true;
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Queues a name.
    pub(super) fn mark(&mut self, name: &Arc<str>) {
        if self.is_wanted && self.names.insert(name.clone()) {
            self.queue.push_back(name.clone());
        }
    }

    pub(super) fn next(&mut self) -> Option<Arc<str>> {
        let name = self.queue.pop_front()?;
        self.names.remove(&name);
        Some(name)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}
