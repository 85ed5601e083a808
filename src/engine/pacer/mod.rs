//! The pacer: when each request may be made. Each class of requests has its own limit, all wait together in an outage, and
//! refused or undone writes are retried at their own pace.

mod limits;
mod outage;
mod refused;
mod repetitions;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use tracing::{info, warn};

use limits::ClassLimit;
pub use limits::LONGEST_WAIT;
use outage::Outage;
use refused::RefusedWrites;
use repetitions::Repetitions;

use super::attempt::Attempt;
use super::error::RequestError;
use nodegate_core::guard::TokenBucket;

/// Classes of requests, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nodes' taints and annotations.
    Node,
    /// Rules' finalizers and statuses.
    Rule,
    Claim,
    /// Consistent reads for watches, which change nothing.
    Read,
    /// Nodes' published conditions.
    Conditions,
    Event,
}

pub(super) const CLASSES: usize = 6;

/// The most requests of each class at a time; the limit for nodes is configured.
const RULES: u16 = 16;
const CLAIMS: u16 = 8;
const READS: u16 = 16;
const CONDITIONS: u16 = 8;
const EVENTS: u16 = 4;

/// A rate limit for writes: a token bucket, as in `k8s.io/client-go/util/flowcontrol`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Writes a second, above 0.
    pub per_second: f64,
    /// The largest burst, 1 or more.
    pub burst: f64,
}

#[derive(Debug)]
pub struct Pacer {
    /// What the API server accepts of each class. An overloaded class delays no other, except that all wait while the API
    /// server has too much to do to accept writes to nodes.
    limits: [ClassLimit; CLASSES],
    /// Until when all wait for that.
    paused: Option<Instant>,
    bucket: Option<(Rate, TokenBucket)>,
    outage: Outage,
    pub refused: RefusedWrites,
    complaints: Repetitions,
    under_way: [usize; CLASSES],
}

impl Pacer {
    pub fn new(nodes: u16, rate: Option<Rate>) -> Self {
        let at_a_time = [nodes, RULES, CLAIMS, READS, CONDITIONS, EVENTS];
        Self {
            limits: at_a_time.map(ClassLimit::new),
            paused: None,
            bucket: rate.map(|rate| (rate, TokenBucket::full(rate.burst))),
            outage: Outage::default(),
            refused: RefusedWrites::default(),
            complaints: Repetitions::default(),
            under_way: [0; CLASSES],
        }
    }

    pub fn under_way(&self, class: Class) -> usize {
        self.under_way[class as usize]
    }

    pub fn at_a_time(&self) -> usize {
        self.limit(Class::Node).at_a_time()
    }

    fn limit(&self, class: Class) -> &ClassLimit {
        &self.limits[class as usize]
    }

    /// How many requests of this class may be under way at a time now.
    pub fn permits(&self, class: Class, now: Instant) -> usize {
        let usual = self.limit(class).at_a_time();
        match class {
            // Events wait for the end of an outage instead of being lost.
            Class::Event if self.outage.is_on() => 0,
            Class::Event | Class::Read => usual,
            Class::Node | Class::Rule | Class::Claim | Class::Conditions => {
                self.outage.permits(usual, now)
            }
        }
    }

    /// Whether another request of this class may begin now; if not, ask again when one ends, or at [`Self::next_turn`].
    pub fn may_begin(&self, class: Class, now: Instant) -> bool {
        let of_nodes = self.under_way(Class::Node) + self.under_way(Class::Conditions);
        self.under_way(class) < self.permits(class, now)
            && (class != Class::Conditions || of_nodes < self.at_a_time())
            && self.not_before(class, now).is_none()
    }

    /// Whether a request of a class that yields to writes of nodes may begin now: one at a time while nodes are written.
    pub fn may_publish(&self, class: Class, is_busy: bool, now: Instant) -> bool {
        let is_free = !is_busy || self.under_way(class) == 0;
        is_free && self.may_begin(class, now)
    }

    /// When pauses and the rate limit permit a request of this class; `None` for now.
    pub fn not_before(&self, class: Class, now: Instant) -> Option<Instant> {
        if class == Class::Read {
            return self.limit(class).not_before(now);
        }
        let of_all = self.paused.filter(|at| now < *at);
        let of_class = self.limit(class).not_before(now);
        of_all.max(of_class).max(self.next_token(now))
    }

    /// When the rate limit permits a write; `None` for now.
    fn next_token(&self, now: Instant) -> Option<Instant> {
        let (rate, bucket) = self.bucket.as_ref()?;
        let next = bucket.next_token(now, rate.per_second);
        next.filter(|at| *at > now)
    }

    pub fn begins(&mut self, class: Class, is_write: bool, now: Instant) {
        self.under_way[class as usize] += 1;
        if is_write && let Some((rate, bucket)) = &mut self.bucket {
            bucket.settle(now, rate.per_second);
            bucket.take();
        }
    }

    pub fn ends(&mut self, class: Class) {
        self.under_way[class as usize] -= 1;
    }

    pub fn on_sign_of_life(&mut self) {
        if self.outage.on_sign_of_life() {
            info!("the API server shows signs of life");
        }
    }

    /// Updates the limits by the answer to a request of this class that was made at this time, to write this object alone.
    pub fn answered(
        &mut self,
        class: Class,
        object: Option<&Arc<str>>,
        made: Instant,
        error: Option<&RequestError>,
        now: Instant,
    ) {
        // A timeout says nothing about reachability.
        let is_silence = |it: &RequestError| {
            matches!(it, RequestError::Unreachable(_) | RequestError::TimedOut(_))
        };
        if !error.is_some_and(is_silence) && self.outage.answered() {
            info!("the API server can be reached again");
        }
        let limit = &mut self.limits[class as usize];
        match error {
            Some(error @ RequestError::Unreachable(_)) => {
                if self.outage.unreachable(now) {
                    warn!("{error}; waiting for it with all writes");
                }
            }
            Some(error @ RequestError::Throttled { retry_after, .. }) => {
                limit.overloaded(made, *retry_after, now);
                if class == Class::Node {
                    self.paused = limit.not_before(now);
                }
                if let Some(more) = self.complaints.tell("throttled", now) {
                    warn!(more, "{error}; fewer such requests at a time");
                }
            }
            Some(RequestError::Broken(_) | RequestError::TimedOut(_)) => {
                limit.failed(object, made, now);
            }
            None | Some(RequestError::Conflict | RequestError::Gone | RequestError::Failed(_)) => {
                limit.handled(made);
            }
        }
    }

    /// Notes how an attempt to write this node ended. Refusals are logged; once one of those goes through, the others are retried.
    pub fn ended(
        &mut self,
        class: Class,
        node: &Arc<str>,
        attempt: &mut Attempt,
        error: Option<&RequestError>,
        now: Instant,
    ) {
        let refusals = attempt.refusals;
        attempt.ended(error, now);
        if error.is_none() && refusals > 0 {
            self.refused.went_through(class, node, now);
        }
        let Some(error) = error.filter(|it| it.is_refusal()) else {
            return;
        };
        if let Some(at) = self.refused.refused(class, node, refusals, now) {
            attempt.backoff.wait_until(at);
        }
        let what = match class {
            Class::Conditions => "cannot publish conditions",
            _ => "cannot write the node",
        };
        self.complain(what, node, error, now);
    }

    /// Logs why an object cannot be written, unless the same was just logged for another one.
    pub fn complain(&mut self, what: &str, name: &str, error: &RequestError, now: Instant) {
        let complaint = format!("{what}: {error}");
        let cause = complaint.replace(name, "");
        if let Some(more) = self.complaints.tell(&cause, now) {
            warn!(%name, more, "{complaint}");
        }
    }

    /// When a request that waits for no answer may begin.
    pub fn next_turn(&self, now: Instant) -> Option<Instant> {
        let pauses = self.limits.iter().map(|limit| limit.not_before(now));
        let others = [self.outage.next_try(now), self.next_token(now)];
        pauses.chain(others).flatten().min()
    }
}
