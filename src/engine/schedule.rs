//! When each node is evaluated next, and why; and what else follows from what was seen.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::map::{Map, Set};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Every node is evaluated anew.
    Anew,
    /// Something about the node has changed.
    Seen,
    /// The rules, or what they wait for, have changed.
    Rules,
    /// What was stale is current again.
    Current,
    /// A request for the node has ended.
    Answered,
    /// It may be gated now.
    Permitted,
    /// Its conditions may be published now.
    Publishing,
    /// A time has come that decides or tells something.
    Due,
    /// A request may be made again.
    Retry,
}

#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Whether nodes are evaluated. A follower evaluates none, and a new leader starts with all nodes.
    pub(super) evaluates: bool,
    /// The nodes to evaluate now, each once, oldest first, and why.
    queue: VecDeque<Arc<str>>,
    pub(super) queued: Map<Arc<str>, Why>,
    /// When nodes are evaluated if nothing happens. An earlier evaluation stops none: it may have seen too little to tell the next.
    later: BTreeSet<(Instant, Arc<str>)>,
    timers: Map<Arc<str>, (Instant, Why)>,
    /// The nodes on which the controller did not act because something was stale. They are evaluated again afterwards.
    pub(super) withheld: Set<Arc<str>>,
    /// When a disruption guard may let another node be gated, whichever that is.
    pub(super) next_gating: Option<Instant>,
    /// What is not dealt with yet.
    pub(super) changes: Changes,
}

/// What follows from what the cache has taken in, beside the nodes to evaluate.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Whether the rules, or what they wait for, have changed.
    pub rules: bool,
    /// Whether anything else has changed that findings about rules depend on.
    pub behind: bool,
    /// The rules whose status has been shown again. A follower notes none.
    pub statuses: Set<Arc<str>>,
    /// Whether an outage has ended: a kind is current again after longer than a working watch is silent.
    pub outage_ended: bool,
}

impl Schedule {
    /// In how long the node is evaluated if nothing happens, and why.
    pub(super) fn due(&self, name: &str, now: Instant) -> Option<(Duration, Why)> {
        let timer = || self.timers.get(name).map(|(at, why)| (*at - now, *why));
        let queued = self.queued.get(name).map(|why| (Duration::ZERO, *why));
        queued.or_else(timer)
    }

    /// Evaluates the node now, after those that are queued.
    pub(super) fn mark(&mut self, name: &Arc<str>, why: Why) {
        if self.evaluates && !self.queued.contains_key(name) {
            self.queued.insert(name.clone(), why);
            self.queue.push_back(name.clone());
        }
    }

    pub(super) fn mark_each<'a>(&mut self, names: impl Iterator<Item = &'a Arc<str>>, why: Why) {
        names.for_each(|name| self.mark(name, why));
    }

    /// Evaluates the node at this time at the latest.
    pub(super) fn by(&mut self, name: &Arc<str>, at: Instant, why: Why) {
        if self.timers.get(name).is_none_or(|(known, _)| at < *known) {
            self.forget(name);
            self.later.insert((at, name.clone()));
            self.timers.insert(name.clone(), (at, why));
        }
    }

    pub(super) fn forget(&mut self, name: &Arc<str>) -> Option<Why> {
        let (name, (at, why)) = self.timers.remove_entry(name)?;
        self.later.remove(&(at, name));
        Some(why)
    }

    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((_, name)) = self.later.first().filter(|(at, _)| *at <= now).cloned()
            && let Some(why) = self.forget(&name)
        {
            self.mark(&name, why);
        }
    }

    pub(super) fn next(&mut self) -> Option<(Arc<str>, Why)> {
        self.queued.remove_entry(&self.queue.pop_front()?)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// When time alone calls for something. What is due already waits for its turn.
    pub(super) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let mut times = self.later.iter().map(|(at, _)| *at);
        let timer = times.find(|at| *at > now);
        timer.into_iter().chain(self.next_gating).min()
    }

    pub(super) fn resume(&mut self) {
        let withheld = std::mem::take(&mut self.withheld);
        self.mark_each(withheld.iter(), Why::Current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_due_at_the_earliest_time_for_which_there_is_a_reason() {
        let mut schedule = Schedule::default();
        let (name, start) = (Arc::from("n"), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let due = |schedule: &Schedule| schedule.due("n", start);
        let at = |seconds, why| Some((Duration::from_secs(seconds), why));
        schedule.mark(&name, Why::Seen);
        assert_eq!(due(&schedule), None, "a follower evaluates nothing");
        schedule.evaluates = true;
        schedule.by(&name, after(9), Why::Due);
        assert_eq!(due(&schedule), at(9, Why::Due));
        schedule.by(&name, after(5), Why::Retry);
        schedule.by(&name, after(7), Why::Due);
        assert_eq!(due(&schedule), at(5, Why::Retry));
        assert_eq!(schedule.next_wake(start), Some(after(5)));
        // What happens in the meantime stops no timer.
        schedule.mark(&name, Why::Seen);
        schedule.mark(&name, Why::Rules);
        assert_eq!((due(&schedule), schedule.len()), (at(0, Why::Seen), 1));
        assert_eq!(schedule.next(), Some((name.clone(), Why::Seen)));
        assert_eq!((schedule.next(), due(&schedule)), (None, at(5, Why::Retry)));
        schedule.wake(after(4));
        assert_eq!(schedule.next(), None);
        schedule.wake(after(5));
        assert_eq!(schedule.next(), Some((name.clone(), Why::Retry)));
        assert_eq!((schedule.next(), due(&schedule)), (None, None));
        schedule.by(&name, after(9), Why::Due);
        schedule.forget(&name);
        assert_eq!((due(&schedule), schedule.next_wake(start)), (None, None));
        schedule.withheld.insert(name.clone());
        schedule.resume();
        schedule.resume();
        assert_eq!(schedule.next(), Some((name, Why::Current)));
        assert_eq!(schedule.next(), None);
    }
}
