//! Whose turn it is to be written: how urgent what is, how many requests there may be at a time and a second, what has been
//! refused, and outages.
//!
//! | file | what it is |
//! |---|---|
//! | `backoff` | when something that failed is tried again |
//! | `contention` | how soon a change is made again that somebody keeps undoing |
//! | `limits` | how many writes may be made at a time, and a second |
//! | `outage` | what may be done while the API server cannot be reached |
//! | `refusals` | what of a node's changes is tried again, once the whole has been refused |
//! | `repetitions` | which of many equal complaints are told |
//! | `retries` | whose turn it is to try again what has been refused |

mod backoff;
mod contention;
mod limits;
mod outage;
mod refusals;
mod repetitions;
mod retries;
#[cfg(test)]
mod tests;

use std::time::Instant;

use tracing::{info, warn};

pub use backoff::{Backoff, Pauses};
pub use contention::{Contention, Undone};
pub use limits::{Rate, Turn, WriteLimits};
pub use outage::Outage;
pub use refusals::Refusals;
pub use repetitions::Repetitions;
pub use retries::Retries;

use super::error::RequestError;

/// What the complaint about too many requests is known by.
const THROTTLED: &str = "throttled";

/// What requests are for, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nodes' taints and annotations.
    Node,
    /// Rules' finalizers and statuses.
    Rule,
    /// `NodeClaim`s.
    Claim,
    /// Last looks: they change nothing.
    Look,
    /// Nodes' published conditions.
    Conditions,
    /// Events.
    Event,
}

/// How many classes there are.
const CLASSES: usize = 6;

impl Class {
    /// How many such requests there are at a time, unless that is configured.
    const fn usual(self) -> usize {
        match self {
            Self::Node | Self::Rule => usize::MAX,
            Self::Claim | Self::Conditions => 8,
            Self::Look => 16,
            Self::Event => 4,
        }
    }
}

/// Whose turn it is.
#[derive(Debug)]
pub struct Turns {
    /// How many nodes are written at a time.
    nodes_at_a_time: usize,
    limits: WriteLimits,
    outage: Outage,
    /// What has been refused of nodes, and who waits for a turn to try that again.
    pub nodes: Retries,
    /// The same of their published conditions.
    pub conditions: Retries,
    complaints: Repetitions,
    under_way: [usize; CLASSES],
    /// When the limit on writes lets the next one through, where one waits for that.
    next_write: Option<Instant>,
}

impl Turns {
    /// Turns under these limits.
    pub fn new(at_a_time: u16, rate: Option<Rate>) -> Self {
        Self {
            nodes_at_a_time: at_a_time.into(),
            limits: WriteLimits::new(at_a_time, rate),
            outage: Outage::default(),
            nodes: Retries::default(),
            conditions: Retries::default(),
            complaints: Repetitions::default(),
            under_way: [0; CLASSES],
            next_write: None,
        }
    }

    /// How many requests of this class are under way.
    pub fn under_way(&self, class: Class) -> usize {
        self.under_way[class as usize]
    }

    /// How many nodes may be written at a time now.
    pub fn at_a_time(&self) -> usize {
        self.limits.at_a_time()
    }

    /// How many requests of this class there may be at a time now.
    pub fn permits(&self, class: Class, now: Instant) -> usize {
        let usual = match class {
            Class::Node => self.nodes_at_a_time,
            _ => class.usual(),
        };
        match class {
            // Events wait for the end of an outage rather than be lost in it.
            Class::Event if self.outage.is_on() => 0,
            Class::Event | Class::Look | Class::Rule => usual,
            Class::Node | Class::Claim | Class::Conditions => self.outage.permits(usual, now),
        }
    }

    /// Whether another request of this class may be made now. If not, the end of another one or [`Turns::next_turn`] has it
    /// asked again.
    pub fn may_begin(&mut self, class: Class, now: Instant) -> bool {
        if self.under_way(class) >= self.permits(class, now) {
            return false;
        }
        let counted = match class {
            Class::Look => return true,
            Class::Node | Class::Conditions => {
                self.under_way(Class::Node) + self.under_way(Class::Conditions)
            }
            Class::Rule | Class::Claim | Class::Event => 0,
        };
        match self.limits.turn(counted, now) {
            Turn::Now => true,
            Turn::At(at) => {
                self.next_write = self.next_write.into_iter().chain([at]).min();
                false
            }
            Turn::AfterAnother => false,
        }
    }

    /// Whether a node's conditions may be published now: one at a time while nodes are written.
    pub fn may_publish(&mut self, is_busy: bool, now: Instant) -> bool {
        let is_free = !is_busy || self.under_way(Class::Conditions) == 0;
        is_free && self.may_begin(Class::Conditions, now)
    }

    /// Has nobody wait for a turn to try again what has been refused.
    pub fn try_nothing_again(&mut self) {
        self.nodes = Retries::default();
        self.conditions = Retries::default();
    }

    /// When something may be written that does not count among what is under way; `None` where that may be done now.
    pub fn not_before(&self, now: Instant) -> Option<Instant> {
        match self.limits.turn(0, now) {
            Turn::At(at) => Some(at),
            Turn::Now | Turn::AfterAnother => None,
        }
    }

    /// Notes that a request is made.
    pub fn begins(&mut self, class: Class, is_write: bool, now: Instant) {
        self.under_way[class as usize] += 1;
        if is_write {
            self.limits.made(now);
        }
    }

    /// Notes that a request has ended.
    pub fn ends(&mut self, class: Class) {
        self.under_way[class as usize] -= 1;
    }

    /// Notes a sign of life of the API server.
    pub fn heard(&mut self) {
        if self.outage.is_on() && self.outage.heard() {
            info!("the API server shows signs of life");
        }
    }

    /// Notes what the answer to a request that was made at this time says about the API server.
    pub fn answered(&mut self, made: Instant, error: Option<&RequestError>, now: Instant) {
        match error {
            Some(error @ RequestError::Unreachable(_)) => {
                if self.outage.unreachable(now) {
                    warn!("{error}; waiting for it with all writes");
                }
            }
            // That says neither.
            Some(RequestError::TimedOut(_)) => {}
            _ => {
                if self.outage.answered() {
                    info!("the API server can be reached again");
                }
            }
        }
        match error {
            Some(
                RequestError::Throttled { come_again, .. }
                | RequestError::Broken { come_again, .. },
            ) => self.limits.overloaded(made, *come_again, now),
            Some(RequestError::TimedOut(_)) => self.limits.overloaded(made, None, now),
            Some(RequestError::Unreachable(_)) => {}
            None | Some(RequestError::Conflict | RequestError::Gone | RequestError::Failed(_)) => {
                self.limits.dealt_with(made);
            }
        }
        if let Some(error @ RequestError::Throttled { .. }) = error
            && let Some(more) = self.complaints.tell(THROTTLED, now)
        {
            warn!(more, "{error}; fewer writes at a time");
        }
    }

    /// Logs why something about an object cannot be written, unless the same has just been said of another one.
    pub fn complain(&mut self, what: &str, name: &str, error: &RequestError, now: Instant) {
        let complaint = format!("{what}: {error}");
        let cause = complaint.replace(name, "");
        if let Some(more) = self.complaints.tell(&cause, now) {
            warn!(%name, more, "{complaint}");
        }
    }

    /// Forgets who waits for the limit: they are asked again.
    pub fn ask_again(&mut self) {
        self.next_write = None;
    }

    /// When it is somebody's turn who waits for no answer.
    pub fn next_turn(&self, now: Instant) -> Option<Instant> {
        [
            self.outage.next_try(now),
            self.nodes.next_turn(now),
            self.conditions.next_turn(now),
            self.next_write,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
