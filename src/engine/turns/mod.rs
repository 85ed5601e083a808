//! Whose turn it is: the loop's dealings with the limit on writes, with what has been refused, and with outages.

mod backoff;
mod contention;
mod limits;
mod outage;
mod refusals;
mod repetitions;
mod retries;

use std::time::Instant;

use tracing::{info, warn};

use crate::engine::RequestError;
use crate::engine::reconcile::{Done, Reconciler};
pub use backoff::{Backoff, Pauses};
pub use contention::{Contention, Undone};
pub use limits::{Limits, Rate, Turn};
pub use outage::Outage;
pub use refusals::Refusals;
pub use repetitions::Repetitions;
pub use retries::Retries;

/// What the complaint about too many requests is known by.
const THROTTLED: &str = "throttled";

impl Reconciler {
    /// Starts a write, which counts against the limit that all share.
    pub(super) fn start(&mut self, write: impl Future<Output = Done> + Send + 'static) {
        let made = self.writer.limiter.made();
        self.in_flight.spawn(async move { (made, write.await) });
    }

    /// Whether the limit on writes lets a node be written now. If not, the end of another write, or a timer, has it asked
    /// again.
    pub(super) fn may_write(&mut self) -> bool {
        let turn = self
            .writer
            .limiter
            .turn(self.node_writes + self.condition_writes);
        if let Turn::At(at) = turn {
            self.next_write = Some(at);
        }
        turn == Turn::Now
    }

    /// Has those looked at whose turn it is to try again what has been refused.
    pub(super) fn take_turns(&mut self) {
        let now = Instant::now();
        while let Some(name) = self.retries.next(now) {
            if let Some(work) = self.nodes.get_mut(&name) {
                work.has_turn = true;
                self.cache.mark(&name);
            }
        }
        while let Some(name) = self.condition_retries.next(now) {
            if let Some(work) = self.nodes.get_mut(&name) {
                work.conditions.has_turn = true;
                self.condition_queue.push_front(name);
            }
        }
    }

    pub(super) fn next_retry(&self) -> Option<Instant> {
        let now = Instant::now();
        [&self.retries, &self.condition_retries]
            .into_iter()
            .filter_map(|retries| retries.next_turn(now))
            .min()
    }

    /// Notes a sign of life of the API server.
    pub(super) fn heard(&mut self) {
        if self.outage.heard() {
            info!("the API server shows signs of life");
        }
    }

    /// Notes what the answer to a write that was made at this time says about the API server.
    pub(super) fn note_answer(&mut self, made: Instant, error: Option<&RequestError>) {
        match error {
            Some(error @ RequestError::Unreachable(_)) => {
                if self.outage.unreachable(Instant::now()) {
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
        if let Some(error @ RequestError::Throttled { .. }) = error
            && let Some(more) = self.complaints.tell(THROTTLED, Instant::now())
        {
            warn!(more, "{error}; fewer writes at a time");
        }
        self.writer.limiter.answered(made, error);
    }

    /// Logs why something about a node cannot be written, unless the same has just been said of another node.
    pub(super) fn complain(&mut self, what: &str, node: &str, error: &RequestError) {
        let complaint = format!("{what}: {error}");
        let cause = complaint.replace(node, "");
        if let Some(more) = self.complaints.tell(&cause, Instant::now()) {
            warn!(%node, more, "{complaint}");
        }
    }
}
