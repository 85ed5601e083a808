//! What is to happen when.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::map::Map;

/// What happens when its time comes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The node of this name is evaluated.
    Node(Arc<str>),
    /// It is seen what there is to be done for the rule with this UID.
    Rule(Arc<str>),
}

/// Timers, soonest first. A node has one at most.
#[derive(Debug, Default)]
pub struct Timers {
    queue: BTreeSet<(Instant, Timer)>,
    nodes: Map<Arc<str>, Instant>,
}

impl Timers {
    /// Has the node evaluated at this time, or earlier if something else wants that.
    pub fn wake_node(&mut self, name: &Arc<str>, at: Instant) {
        if self.nodes.get(name).is_some_and(|wake| *wake <= at) {
            return;
        }
        self.forget_node(name);
        self.nodes.insert(name.clone(), at);
        self.queue.insert((at, Timer::Node(name.clone())));
    }

    /// Takes the node's timer away.
    pub fn forget_node(&mut self, name: &Arc<str>) {
        if let Some(at) = self.nodes.remove(name) {
            self.queue.remove(&(at, Timer::Node(name.clone())));
        }
    }

    /// Has the rule seen to at this time, whatever else wants that.
    pub fn wake_rule(&mut self, uid: &Arc<str>, at: Instant) {
        self.queue.insert((at, Timer::Rule(uid.clone())));
    }

    /// Takes the next timer whose time has come.
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

    /// When the next one fires.
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
