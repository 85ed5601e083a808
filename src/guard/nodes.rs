//! The nodes of one zone, and the queue of those to be closed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::limits::Limits;
use super::member::Member;
use super::zone::{ZoneState, zone_state};
use crate::bucket::TokenBucket;

/// How long a granted node delays the others if its taint is not written.
const PATIENCE: Duration = Duration::from_secs(30);

/// The nodes of one zone.
///
/// At most one node is granted at a time. So the last token taken always belongs to the granted node, and grants do not
/// accumulate while nothing can be written.
#[derive(Debug, Clone)]
pub(super) struct ZoneNodes {
    /// How many nodes have met conditions.
    pub met: usize,
    /// How many have unmet conditions: closed, waiting and granted ones.
    pub unmet: usize,
    /// The waiting nodes, without the granted one.
    waiting: BTreeSet<Place>,
    granted: Option<Grant>,
    /// When waiting nodes were granted without being closed.
    missed: BTreeMap<Arc<str>, Instant>,
    /// One token per node. The burst of 1 is `EvictionRateLimiterBurst` of `pkg/controller/nodelifecycle/scheduler`. As there
    /// (`SwapLimiter`), rate 0 empties the bucket, which gives the other nodes time to recover too. Unlike there, any other
    /// change of rate keeps the tokens.
    bucket: TokenBucket,
}

/// A place in the queue: nodes with a missed grant come last; otherwise the longest-waiting comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    missed: Option<Instant>,
    since: Timestamp,
    node: Arc<str>,
}

#[derive(Debug, Clone)]
struct Grant {
    node: Arc<str>,
    since: Timestamp,
    at: Instant,
}

impl ZoneNodes {
    pub(super) fn new() -> Self {
        Self {
            met: 0,
            unmet: 0,
            waiting: BTreeSet::new(),
            granted: None,
            missed: BTreeMap::new(),
            bucket: TokenBucket::full(1),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.met + self.unmet
    }

    /// Whether the zone can be dropped: it has no nodes, and its bucket is full.
    pub(super) fn is_forgettable(&self) -> bool {
        self.len() == 0 && self.bucket.has_token()
    }

    pub(super) fn state(&self, limits: &Limits) -> ZoneState {
        zone_state(self.met, self.unmet, limits.unhealthy_zone_threshold)
    }

    /// Nodes a second that may be closed here; `halted` if every zone is fully disrupted.
    pub(super) fn rate(&self, limits: &Limits, halted: bool) -> f64 {
        if halted {
            0.0
        } else {
            limits.rate(self.state(limits), self.len())
        }
    }

    pub(super) fn may_close(&self, node: &str, rate: f64) -> bool {
        rate > 0.0 && self.is_granted(node)
    }

    /// How many nodes wait that may not be closed at this rate.
    pub(super) fn held(&self, rate: f64) -> usize {
        self.waiting.len() + usize::from(self.granted.is_some() && rate <= 0.0)
    }

    pub(super) fn add(&mut self, node: &Arc<str>, member: Member) {
        match member {
            Member::Met => self.met += 1,
            Member::Closed => self.unmet += 1,
            Member::Waiting { since } => {
                self.unmet += 1;
                self.waiting.insert(self.turn(node, since));
            }
        }
    }

    /// Removes a node that was added as `member`. A granted node has not been closed, so it returns its token.
    pub(super) fn remove(&mut self, node: &Arc<str>, member: Member) {
        match member {
            Member::Met => self.met -= 1,
            Member::Closed => self.unmet -= 1,
            Member::Waiting { since } => {
                self.unmet -= 1;
                if self.is_granted(node) {
                    self.granted = None;
                    self.bucket.give_back();
                } else {
                    self.waiting.remove(&self.turn(node, since));
                }
                self.missed.remove(node);
            }
        }
    }

    /// Corrects the time since when a node has waited.
    pub(super) fn correct(&mut self, node: &Arc<str>, was: Timestamp, since: Timestamp) {
        match &mut self.granted {
            Some(grant) if grant.node == *node => grant.since = since,
            _ => {
                self.waiting.remove(&self.turn(node, was));
                self.waiting.insert(self.turn(node, since));
            }
        }
    }

    /// Empties the bucket.
    pub(super) fn empty(&mut self, now: Instant, rate: f64) {
        self.bucket.settle(now, rate);
        self.bucket.empty();
    }

    /// The next node that may be closed, with its place in the queue; `None` if there is none now.
    pub(super) fn grant(&mut self, now: Instant, rate: f64) -> Option<(Timestamp, Arc<str>)> {
        if rate <= 0.0 {
            self.empty(now, rate);
            self.withdraw();
            return None;
        }
        self.bucket.settle(now, rate);
        if self.waiting.is_empty() || !self.bucket.has_token() {
            return None;
        }
        if let Some(grant) = &self.granted {
            if now < grant.at + PATIENCE {
                return None;
            }
            self.pass_over(now);
        }
        self.bucket.take();
        let Place { since, node, .. } = self.waiting.pop_first()?;
        self.granted = Some(Grant {
            node: node.clone(),
            since,
            at: now,
        });
        Some((since, node))
    }

    /// When [`Self::grant`] may return a node although nothing changes.
    pub(super) fn next_grant(&self, now: Instant, rate: f64) -> Option<Instant> {
        if self.waiting.is_empty() || rate <= 0.0 {
            return None;
        }
        let token = self.bucket.next_token(now, rate)?;
        Some(match &self.granted {
            Some(grant) => token.max(grant.at + PATIENCE),
            None => token,
        })
    }

    fn is_granted(&self, node: &str) -> bool {
        self.granted
            .as_ref()
            .is_some_and(|grant| *grant.node == *node)
    }

    fn turn(&self, node: &Arc<str>, since: Timestamp) -> Place {
        Place {
            missed: self.missed.get(node).copied(),
            since,
            node: node.clone(),
        }
    }

    /// Notes that this node, if it is the granted one, has been closed: its token is spent.
    pub(super) fn spend(&mut self, node: &str) {
        if self.is_granted(node) {
            self.withdraw();
        }
    }

    /// Returns the granted node to its old place in the queue.
    pub(super) fn withdraw(&mut self) {
        if let Some(Grant { node, since, .. }) = self.granted.take() {
            self.waiting.insert(self.turn(&node, since));
        }
    }

    /// Returns the granted node to the end of the queue.
    fn pass_over(&mut self, now: Instant) {
        if let Some(Grant { node, since, .. }) = self.granted.take() {
            self.missed.insert(node.clone(), now);
            self.waiting.insert(self.turn(&node, since));
        }
    }
}
