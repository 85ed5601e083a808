//! The nodes of one zone: how many there are, who waits, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::limits::Limits;
use super::member::Member;
use super::zone::{ZoneState, zone_state};
use crate::bucket::TokenBucket;

/// How long a node whose turn it is keeps the others waiting, should its taint not get written.
const PATIENCE: Duration = Duration::from_secs(30);

/// The nodes of one zone.
///
/// At most one node at a time is granted. So the last token taken is always the granted node's, and while nothing can
/// be written, grants do not pile up to be used all at once.
#[derive(Debug, Clone)]
pub(super) struct ZoneNodes {
    /// How many nodes meet their conditions.
    pub met: usize,
    /// How many do not: those that are closed, those that wait and the one that is granted.
    pub unmet: usize,
    /// Those that wait, without the one that is granted.
    waiting: BTreeSet<Place>,
    granted: Option<Grant>,
    /// When nodes among those that wait had their turn without being closed.
    missed: BTreeMap<Arc<str>, Instant>,
    /// A node for each token. The burst of 1 is `EvictionRateLimiterBurst` of `pkg/controller/nodelifecycle/scheduler`. As
    /// there (`SwapLimiter`), rate 0 empties the bucket: when things begin to recover, the rest has a while to follow. Unlike
    /// there, any other change of rate keeps what is in the bucket.
    bucket: TokenBucket,
}

/// A place in the queue: those who had their turn already come last, else whoever has waited longest comes first.
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
    pub fn new() -> Self {
        Self {
            met: 0,
            unmet: 0,
            waiting: BTreeSet::new(),
            granted: None,
            missed: BTreeMap::new(),
            bucket: TokenBucket::full(1),
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.met + self.unmet
    }

    /// Whether there is nothing to remember: no nodes, and a bucket as good as new.
    pub fn is_forgettable(&self) -> bool {
        self.len() == 0 && self.bucket.has_token()
    }

    pub fn state(&self, limits: &Limits) -> ZoneState {
        zone_state(self.met, self.unmet, limits.unhealthy_zone_threshold)
    }

    /// Nodes a second that may be closed here; `halted` when every zone is fully disrupted.
    pub fn rate(&self, limits: &Limits, halted: bool) -> f64 {
        if halted {
            0.0
        } else {
            limits.rate(self.state(limits), self.len())
        }
    }

    /// Whether this node may be closed at this rate.
    pub fn may_close(&self, node: &str, rate: f64) -> bool {
        rate > 0.0 && self.is_granted(node)
    }

    /// How many nodes wait that may not be closed at this rate.
    pub fn held(&self, rate: f64) -> usize {
        self.waiting.len() + usize::from(self.granted.is_some() && rate <= 0.0)
    }

    pub fn add(&mut self, node: &Arc<str>, member: Member) {
        match member {
            Member::Met => self.met += 1,
            Member::Closed => self.unmet += 1,
            Member::Waiting { since } => {
                self.unmet += 1;
                self.waiting.insert(self.turn(node, since));
            }
        }
    }

    /// Takes out a node that was added as this. One that is granted has not been closed, and gives its token back.
    pub fn remove(&mut self, node: &Arc<str>, member: Member) {
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

    /// Notes that a node that waits has done so since another time than was thought.
    pub fn correct(&mut self, node: &Arc<str>, was: Timestamp, since: Timestamp) {
        match &mut self.granted {
            Some(grant) if grant.node == *node => grant.since = since,
            _ => {
                self.waiting.remove(&self.turn(node, was));
                self.waiting.insert(self.turn(node, since));
            }
        }
    }

    /// Answers the node that may be closed from now on, where there is one more, with its place in the queue.
    pub fn grant(&mut self, now: Instant, rate: f64) -> Option<(Timestamp, Arc<str>)> {
        self.bucket.settle(now, rate);
        if rate <= 0.0 {
            self.bucket.empty();
            self.withdraw();
            return None;
        }
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

    /// When [`Self::grant`] may have something to give although nothing changes.
    pub fn next_grant(&self, now: Instant, rate: f64) -> Option<Instant> {
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

    /// Notes that the granted node, if it is this one, has been closed: it has no token to give back any more.
    pub fn spend(&mut self, node: &str) {
        if self.is_granted(node) {
            self.withdraw();
        }
    }

    /// Has the granted node wait again, in its old place.
    fn withdraw(&mut self) {
        if let Some(Grant { node, since, .. }) = self.granted.take() {
            self.waiting.insert(self.turn(&node, since));
        }
    }

    /// Has the granted node wait again, behind the others.
    fn pass_over(&mut self, now: Instant) {
        if let Some(Grant { node, since, .. }) = self.granted.take() {
            self.missed.insert(node.clone(), now);
            self.waiting.insert(self.turn(&node, since));
        }
    }
}
