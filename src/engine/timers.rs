//! The engine's timers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::map::Map;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// Evaluate the node of this name.
    Node(Arc<str>),
    /// Process the rule with this UID.
    Rule(Arc<str>),
}

/// Timers, soonest first. A node has at most one.
#[derive(Debug, Default)]
pub struct Timers {
    queue: BTreeSet<(Instant, Timer)>,
    nodes: Map<Arc<str>, Instant>,
}

impl Timers {
    /// Evaluates the node at this time, or earlier if a timer is already set.
    pub fn wake_node(&mut self, name: &Arc<str>, at: Instant) {
        if self.nodes.get(name).is_some_and(|wake| *wake <= at) {
            return;
        }
        self.forget_node(name);
        self.nodes.insert(name.clone(), at);
        self.queue.insert((at, Timer::Node(name.clone())));
    }

    /// Removes the node's timer.
    pub fn forget_node(&mut self, name: &Arc<str>) {
        if let Some(at) = self.nodes.remove(name) {
            self.queue.remove(&(at, Timer::Node(name.clone())));
        }
    }

    /// Processes the rule at this time, besides its other timers.
    pub fn wake_rule(&mut self, uid: &Arc<str>, at: Instant) {
        self.queue.insert((at, Timer::Rule(uid.clone())));
    }

    /// Takes the next timer that is due.
    pub fn fire(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.queue.pop_first()?;
        if let Timer::Node(name) = &timer {
            self.nodes.remove(name);
        }
        Some(timer)
    }

    pub fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_node_is_woken_once_and_as_early_as_anything_wants() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let (node, mut timers) = (Arc::from("n"), Timers::default());
        timers.wake_node(&node, after(5));
        timers.wake_node(&node, after(9));
        timers.wake_node(&node, after(3));
        assert_eq!(timers.fire(after(2)), None);
        assert_eq!(timers.fire(after(3)), Some(Timer::Node(node.clone())));
        assert_eq!(timers.fire(after(10)), None);
        timers.wake_node(&node, after(12));
        timers.forget_node(&node);
        assert_eq!(timers.next(), None);
    }
}
