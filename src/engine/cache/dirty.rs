//! Which nodes have to be evaluated.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::engine::map::Set;

/// The names of nodes that have to be evaluated, each once, in the order in which that turned up.
#[derive(Debug, Default)]
pub struct Dirty {
    /// Whether anybody evaluates nodes. As long as nobody does, none is noted: one day all have to be.
    is_wanted: bool,
    queue: VecDeque<Arc<str>>,
    names: Set<Arc<str>>,
}

impl Dirty {
    /// Notes names from now on.
    pub fn begin(&mut self) {
        self.is_wanted = true;
    }

    /// Whether anybody evaluates nodes.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Notes a name.
    pub fn mark(&mut self, name: &Arc<str>) {
        if self.is_wanted && self.names.insert(name.clone()) {
            self.queue.push_back(name.clone());
        }
    }

    /// Takes the next one.
    pub fn next(&mut self) -> Option<Arc<str>> {
        let name = self.queue.pop_front()?;
        self.names.remove(&name);
        Some(name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
}
