//! Live reads: what a decision depends on is read from the API server itself, past all watches.
//!
//! A live read of a node costs one request for each stale kind of the node's objects (the Node, its `CSINode`, its pods of each
//! group). What all nodes share (the rules, the `DaemonSet`s of each group) is read once a second at most, however many nodes
//! are read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::debug;

use super::evidence::Unread;
use crate::engine::cache::Cache;
use crate::engine::effects::{Effects, Purpose};
use crate::engine::error::RequestError;
use crate::engine::io::{Count, Request};
use crate::engine::map::Map;
use crate::engine::pacer::{Backoff, Class, Pauses};
use crate::plan::StaleKinds;

/// How long a live read counts, from when it was requested. This is part of the age that evidence may have.
const FRESH: Duration = Duration::from_secs(10);
/// What all nodes share is read at most once in this time.
const SHARED: Duration = Duration::from_secs(1);

/// The live reads of one node.
#[derive(Debug, Default)]
pub struct NodeLiveReads {
    /// The kinds that were read last, and when they were requested.
    had: Option<(Instant, StaleKinds)>,
    retry: Backoff,
}

/// A live read under way.
#[derive(Debug)]
struct LiveRead {
    asked: Instant,
    kinds: StaleKinds,
    /// Whether the node's objects, or what all nodes share, are still awaited.
    awaits_node: bool,
    awaits_cluster: bool,
    error: Option<RequestError>,
}

/// A live read that has ended.
#[derive(Debug)]
pub struct EndedRead {
    pub name: Arc<str>,
    asked: Instant,
    kinds: StaleKinds,
    error: Option<RequestError>,
}

#[derive(Debug, Default)]
pub(crate) struct LiveReads {
    under_way: Map<Arc<str>, LiveRead>,
    /// The nodes that wait for a live read.
    queue: BTreeSet<Arc<str>>,
    /// When the read of what all nodes share was requested: the one under way, and the last one that ended.
    asked: Option<Instant>,
    read: Option<Instant>,
    /// What the last one failed to read.
    unread: Unread,
    /// When all caches last became stale: reads requested before do not count.
    invalidated: Option<Instant>,
}

impl NodeLiveReads {
    /// The kinds that were read so recently that they are current, unless all caches have become stale since.
    pub fn fresh(&self, invalidated: Option<Instant>, now: Instant) -> StaleKinds {
        let counts = |asked: Instant| {
            now.saturating_duration_since(asked) <= FRESH
                && invalidated.is_none_or(|invalidated| invalidated <= asked)
        };
        let had = self.had.as_ref().filter(|(asked, _)| counts(*asked));
        had.map(|(_, kinds)| kinds.clone()).unwrap_or_default()
    }

    /// Notes what was read. Earlier reads that still count are kept, and the whole is as old as the oldest of them.
    fn had(
        &mut self,
        asked: Instant,
        kinds: StaleKinds,
        invalidated: Option<Instant>,
        now: Instant,
    ) {
        let before = self.fresh(invalidated, now);
        let since = self.had.as_ref().filter(|_| !before.is_empty());
        let asked = since.map_or(asked, |(before, _)| asked.min(*before));
        self.had = Some((asked, kinds.and(before)));
    }

    /// Handles the end of a live read. What it did read counts.
    pub fn ended(&mut self, ended: EndedRead, invalidated: Option<Instant>, out: &mut Effects) {
        let now = out.now.monotonic;
        self.had(ended.asked, ended.kinds, invalidated, now);
        let Some(error) = &ended.error else {
            self.retry = Backoff::default();
            return;
        };
        self.retry.failed(Pauses::REFUSED, now);
        if error.is_refusal() {
            let what = "cannot read again what the node is decided on";
            out.pacer.complain(what, &ended.name, error, now);
        }
    }
}

impl LiveRead {
    /// Fails the whole read.
    fn fails(&mut self, error: RequestError) {
        self.kinds = StaleKinds::default();
        self.error.get_or_insert(error);
    }

    /// Removes the kinds that were not read.
    fn has_not_read(&mut self, unread: &Unread) {
        let kinds = self.kinds.without(&unread.kinds);
        if kinds != self.kinds && self.error.is_none() {
            self.error.clone_from(&unread.error);
        }
        self.kinds = kinds;
    }
}

impl LiveReads {
    /// Starts a live read of these kinds of a node, unless one is under way. If too many are, the node is queued. Returns the
    /// read if it ends at once.
    pub(crate) fn begin(
        &mut self,
        name: &Arc<str>,
        work: &NodeLiveReads,
        kinds: StaleKinds,
        cache: &Cache,
        out: &mut Effects,
    ) -> Option<EndedRead> {
        let now = out.now.monotonic;
        if self.under_way.contains_key(name) {
            return None;
        }
        if let Some(at) = work.retry.not_before(now) {
            out.timers.wake_node(name, at);
            return None;
        }
        if self.under_way.len() >= out.pacer.permits(Class::LiveRead, now) {
            self.queue.insert(name.clone());
            return None;
        }
        debug!(node = %name, ?kinds, "reading live before the decision");
        let live_read = LiveRead {
            asked: now,
            awaits_node: kinds.is_of_the_node(),
            awaits_cluster: kinds.is_of_the_cluster() && !self.has_read_cluster_for(now),
            kinds,
            error: None,
        };
        if live_read.awaits_node {
            let name = name.clone();
            let request = Request::ReadNodeLive {
                name: name.clone(),
                components: cache.components_to_read(&live_read.kinds),
                kinds: live_read.kinds.clone(),
            };
            out.ask(Purpose::LiveRead(name), request);
        }
        if live_read.awaits_cluster {
            self.read_cluster(cache, out);
        }
        self.under_way.insert(name.clone(), live_read);
        self.end(name, out)
    }

    /// Invalidates earlier reads: all caches have become stale, or the watches have changed.
    pub(crate) fn invalidate(&mut self, now: Instant) {
        self.invalidated = Some(now);
    }

    /// When [`Self::invalidate`] was last called.
    pub(crate) fn invalidated(&self) -> Option<Instant> {
        self.invalidated
    }

    /// Handles the answer to the read of a node's objects.
    pub(crate) fn node_answered(
        &mut self,
        name: &Arc<str>,
        read: Result<Unread, RequestError>,
        out: &mut Effects,
    ) -> Option<EndedRead> {
        let live_read = self.under_way.get_mut(name)?;
        live_read.awaits_node = false;
        match read {
            Ok(unread) => live_read.has_not_read(&unread),
            Err(error) => live_read.fails(error),
        }
        self.end(name, out)
    }

    /// Handles the answer to the read of what all nodes share.
    pub(crate) fn cluster_answered(
        &mut self,
        read: Result<Unread, RequestError>,
        cache: &Cache,
        out: &mut Effects,
    ) -> Vec<EndedRead> {
        let asked = self.asked.take();
        let error = match read {
            Ok(unread) => {
                self.read = asked;
                self.unread = unread;
                None
            }
            Err(error) => Some(error),
        };
        let mut waiting: Vec<_> = self
            .under_way
            .iter()
            .filter(|(_, live_read)| live_read.awaits_cluster)
            .map(|(name, live_read)| (name.clone(), live_read.asked))
            .collect();
        waiting.sort();
        let mut ended = Vec::new();
        for (name, live_read_asked) in waiting {
            if error.is_none() && !self.has_read_cluster_for(live_read_asked) {
                // That read was requested too early for this node.
                self.read_cluster(cache, out);
                continue;
            }
            if let Some(live_read) = self.under_way.get_mut(&name) {
                live_read.awaits_cluster = false;
                if let Some(error) = &error {
                    live_read.fails(error.clone());
                }
            }
            ended.extend(self.end(&name, out));
        }
        ended
    }

    /// Takes the queued nodes that may be read now, if this many reads may be under way.
    pub(crate) fn take_turns(&mut self, permits: usize) -> Vec<Arc<str>> {
        let free = permits.saturating_sub(self.under_way.len());
        std::iter::from_fn(|| self.queue.pop_first())
            .take(free)
            .collect()
    }

    /// Ends a live read that waits for nothing any more.
    fn end(&mut self, name: &Arc<str>, out: &mut Effects) -> Option<EndedRead> {
        let live_read = self.under_way.get(name)?;
        if live_read.awaits_node || live_read.awaits_cluster {
            return None;
        }
        let mut live_read = self.under_way.remove(name)?;
        live_read.has_not_read(&self.unread);
        out.count(Count::LiveRead {
            answered: live_read.error.is_none(),
        });
        Some(EndedRead {
            name: name.clone(),
            asked: live_read.asked,
            kinds: live_read.kinds,
            error: live_read.error,
        })
    }

    /// Whether what all nodes share was read recently enough for a live read that was requested at this time.
    fn has_read_cluster_for(&self, asked: Instant) -> bool {
        self.read.is_some_and(|read| {
            read + SHARED >= asked
                && self
                    .invalidated
                    .is_none_or(|invalidated| invalidated <= read)
        })
    }

    fn read_cluster(&mut self, cache: &Cache, out: &mut Effects) {
        if self.asked.is_none() {
            self.asked = Some(out.now.monotonic);
            let daemon_sets = cache.daemon_sets_to_read();
            out.ask(
                Purpose::ClusterLiveRead,
                Request::ReadClusterLive { daemon_sets },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_counts_for_a_while_and_beside_what_is_read_next() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let of = |mark: fn(&mut StaleKinds)| {
            let mut kinds = StaleKinds::default();
            mark(&mut kinds);
            kinds
        };
        let rules = of(|it| it.rules = true);
        let nodes = of(|it| it.nodes = true);
        let mut work = NodeLiveReads::default();
        assert!(work.fresh(None, start).is_empty());
        work.had(start, rules.clone(), None, start);
        work.had(after(4), nodes.clone(), None, after(4));
        assert_eq!(work.fresh(None, after(10)), rules.and(nodes.clone()));
        assert!(
            work.fresh(None, after(11)).is_empty(),
            "as old as the older"
        );
        assert!(
            work.fresh(Some(after(1)), after(4)).is_empty(),
            "everything was invalidated since"
        );
        work.had(after(12), nodes.clone(), None, after(12));
        assert_eq!(work.fresh(None, after(20)), nodes);
    }
}
