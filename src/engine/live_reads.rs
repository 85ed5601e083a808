//! Last looks: what a decision depends on, read from the API server itself, past all watches.
//!
//! A look at a node costs a request for each kind in doubt that belongs to a node (the Node, its `CSINode`, its pods of each
//! group). What is the same for all nodes (the rules, the `DaemonSet`s of each group) is read once a second at most, however
//! many nodes are looked at.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::debug;

use super::cache::Cache;
use super::effects::{Effects, Purpose};
use super::error::RequestError;
use super::evidence::Unread;
use super::io::{Count, Request};
use super::map::Map;
use super::pacer::{Backoff, Class, Pauses};
use crate::plan::StaleKinds;

/// How long after it was asked for a look counts. It is a part of the age that evidence may have.
const FRESH: Duration = Duration::from_secs(10);
/// How long what is the same for all nodes is not read again.
const SHARED: Duration = Duration::from_secs(1);

/// What has been looked at of one node.
#[derive(Debug, Default)]
pub struct NodeLiveReads {
    /// What was read last, and when that was asked for.
    had: Option<(Instant, StaleKinds)>,
    retry: Backoff,
}

/// A look that is under way.
#[derive(Debug)]
struct Look {
    asked: Instant,
    kinds: StaleKinds,
    /// What is still waited for: the node's own, and the cluster's.
    awaits_node: bool,
    awaits_cluster: bool,
    error: Option<RequestError>,
}

/// A look at a node that has come to its end.
#[derive(Debug)]
pub struct Looked {
    /// The node.
    pub name: Arc<str>,
    asked: Instant,
    kinds: StaleKinds,
    error: Option<RequestError>,
}

/// All looks.
#[derive(Debug, Default)]
pub struct LiveReads {
    under_way: Map<Arc<str>, Look>,
    /// The nodes that wait to be looked at.
    queue: BTreeSet<Arc<str>>,
    /// When what is the same for all nodes was asked for that is read now, and that was read last.
    asked: Option<Instant>,
    read: Option<Instant>,
    /// What was not read of it then.
    unread: Unread,
    /// When everything came into doubt last: what was asked for before does not count.
    doubted: Option<Instant>,
}

impl NodeLiveReads {
    /// What was read so recently that there is no doubt about it, unless everything has come into doubt since.
    pub fn fresh(&self, doubted: Option<Instant>, now: Instant) -> StaleKinds {
        let counts = |asked: Instant| {
            now.saturating_duration_since(asked) <= FRESH
                && doubted.is_none_or(|doubted| doubted <= asked)
        };
        let had = self.had.as_ref().filter(|(asked, _)| counts(*asked));
        had.map(|(_, looked)| looked.clone()).unwrap_or_default()
    }

    /// Notes what was read, beside what was read before and still counts: as old as the older of the two.
    fn had(&mut self, asked: Instant, looked: StaleKinds, doubted: Option<Instant>, now: Instant) {
        let before = self.fresh(doubted, now);
        let since = self.had.as_ref().filter(|_| !before.is_empty());
        let asked = since.map_or(asked, |(before, _)| asked.min(*before));
        self.had = Some((asked, looked.and(before)));
    }

    /// Takes in how a look has ended. What it has read counts, whatever else it has not.
    pub fn ended(&mut self, looked: Looked, doubted: Option<Instant>, out: &mut Effects) {
        let now = out.now.monotonic;
        self.had(looked.asked, looked.kinds, doubted, now);
        let Some(error) = &looked.error else {
            self.retry = Backoff::default();
            return;
        };
        self.retry.failed(Pauses::REFUSED, now);
        if error.is_refusal() {
            let what = "cannot read again what the node is decided on";
            out.pacer.complain(what, &looked.name, error, now);
        }
    }
}

impl Look {
    /// Nothing of it counts.
    fn fails(&mut self, error: RequestError) {
        self.kinds = StaleKinds::default();
        self.error.get_or_insert(error);
    }

    /// This of it does not count.
    fn has_not_read(&mut self, unread: &Unread) {
        let kinds = self.kinds.without(&unread.kinds);
        if kinds != self.kinds && self.error.is_none() {
            self.error.clone_from(&unread.error);
        }
        self.kinds = kinds;
    }
}

impl LiveReads {
    /// Looks at these kinds of a node, unless it is looked at already. Where too many others are, it waits for its turn.
    /// Answers the look if it ends at once.
    pub fn look(
        &mut self,
        name: &Arc<str>,
        work: &NodeLiveReads,
        kinds: StaleKinds,
        cache: &Cache,
        out: &mut Effects,
    ) -> Option<Looked> {
        let now = out.now.monotonic;
        if self.under_way.contains_key(name) {
            return None;
        }
        if let Some(at) = work.retry.not_before(now) {
            out.timers.wake_node(name, at);
            return None;
        }
        if self.under_way.len() >= out.pacer.permits(Class::Look, now) {
            self.queue.insert(name.clone());
            return None;
        }
        debug!(node = %name, ?kinds, "looking again before it is decided");
        let look = Look {
            asked: now,
            awaits_node: kinds.is_of_the_node(),
            awaits_cluster: kinds.is_of_the_cluster() && !self.has_read_cluster_for(now),
            kinds,
            error: None,
        };
        if look.awaits_node {
            let name = name.clone();
            let request = Request::LookAtNode {
                name: name.clone(),
                pods: cache.pods_to_look_at(&look.kinds),
                kinds: look.kinds.clone(),
            };
            out.ask(Purpose::Look(name), request);
        }
        if look.awaits_cluster {
            self.read_cluster(cache, out);
        }
        self.under_way.insert(name.clone(), look);
        self.end(name, out)
    }

    /// Takes in that what was read before does not count any more: everything has come into doubt, or something else is
    /// watched.
    pub fn doubt(&mut self, now: Instant) {
        self.doubted = Some(now);
    }

    /// When that was last.
    pub fn doubted(&self) -> Option<Instant> {
        self.doubted
    }

    /// Takes in that a node has been read, save this, or what kept it from that.
    pub fn node_answered(
        &mut self,
        name: &Arc<str>,
        read: Result<Unread, RequestError>,
        out: &mut Effects,
    ) -> Option<Looked> {
        let look = self.under_way.get_mut(name)?;
        look.awaits_node = false;
        match read {
            Ok(unread) => look.has_not_read(&unread),
            Err(error) => look.fails(error),
        }
        self.end(name, out)
    }

    /// Takes in that what is the same for all nodes has been read, save this, or what kept it from that.
    pub fn cluster_answered(
        &mut self,
        read: Result<Unread, RequestError>,
        cache: &Cache,
        out: &mut Effects,
    ) -> Vec<Looked> {
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
            .filter(|(_, look)| look.awaits_cluster)
            .map(|(name, look)| (name.clone(), look.asked))
            .collect();
        waiting.sort();
        let mut ended = Vec::new();
        for (name, look_asked) in waiting {
            if error.is_none() && !self.has_read_cluster_for(look_asked) {
                // It was asked for too late for that.
                self.read_cluster(cache, out);
                continue;
            }
            if let Some(look) = self.under_way.get_mut(&name) {
                look.awaits_cluster = false;
                if let Some(error) = &error {
                    look.fails(error.clone());
                }
            }
            ended.extend(self.end(&name, out));
        }
        ended
    }

    /// The nodes that may be looked at now, where so many looks may be under way.
    pub fn take_turns(&mut self, permits: usize) -> Vec<Arc<str>> {
        let free = permits.saturating_sub(self.under_way.len());
        std::iter::from_fn(|| self.queue.pop_first())
            .take(free)
            .collect()
    }

    /// Ends a look for which nothing is waited any more.
    fn end(&mut self, name: &Arc<str>, out: &mut Effects) -> Option<Looked> {
        let look = self.under_way.get(name)?;
        if look.awaits_node || look.awaits_cluster {
            return None;
        }
        let mut look = self.under_way.remove(name)?;
        look.has_not_read(&self.unread);
        out.count(Count::Looked {
            answered: look.error.is_none(),
        });
        Some(Looked {
            name: name.clone(),
            asked: look.asked,
            kinds: look.kinds,
            error: look.error,
        })
    }

    /// Whether what is the same for all nodes was read late enough for a look that was asked for at this time.
    fn has_read_cluster_for(&self, asked: Instant) -> bool {
        self.read.is_some_and(|read| {
            read + SHARED >= asked && self.doubted.is_none_or(|doubted| doubted <= read)
        })
    }

    fn read_cluster(&mut self, cache: &Cache, out: &mut Effects) {
        if self.asked.is_none() {
            self.asked = Some(out.now.monotonic);
            let daemon_sets = cache.daemon_sets_to_look_at();
            out.ask(Purpose::ClusterLook, Request::LookAtCluster { daemon_sets });
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
            let mut doubts = StaleKinds::default();
            mark(&mut doubts);
            doubts
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
            "everything has come into doubt since"
        );
        work.had(after(12), nodes.clone(), None, after(12));
        assert_eq!(work.fresh(None, after(20)), nodes);
    }
}
