//! One write at a time of one thing, and when to retry it: the error policy of every write.

use std::time::Instant;

use super::backoff::{Backoff, Pauses};
use crate::engine::error::RequestError;

/// The slot for writes of one thing: the write under way, and how earlier attempts ended.
#[derive(Debug)]
pub struct WriteSlot<W = ()> {
    under_way: Option<W>,
    backoff: Backoff,
    /// Refusals in a row.
    refusals: u32,
}

/// What follows from the answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterWrite {
    /// It succeeded.
    Done,
    /// It may be retried at this time, if it is still wanted.
    Again(Instant),
    /// It was refused, and may be retried at this time.
    Refused {
        /// When to retry.
        again: Instant,
        /// The refusals in a row before this one.
        before: u32,
    },
}

impl<W> WriteSlot<W> {
    /// Begins a write. None may be under way.
    pub fn begin(&mut self, write: W) {
        self.under_way = Some(write);
    }

    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Ends the write under way; returns it, and what follows.
    pub fn ended(&mut self, error: Option<&RequestError>, now: Instant) -> Option<(W, AfterWrite)> {
        let write = self.take()?;
        Some((write, self.judge(error, now)))
    }

    /// Takes the write out of the slot, for callers that judge its answer themselves.
    pub fn take(&mut self) -> Option<W> {
        self.under_way.take()
    }

    /// Takes the write out of the slot if the predicate holds for it.
    pub fn take_if(&mut self, is_meant: impl FnOnce(&mut W) -> bool) -> Option<W> {
        self.under_way.take_if(is_meant)
    }

    /// Updates pauses and refusals by an answer.
    pub fn judge(&mut self, error: Option<&RequestError>, now: Instant) -> AfterWrite {
        match error {
            None => {
                self.forgive();
                AfterWrite::Done
            }
            Some(RequestError::Unreachable(_) | RequestError::Throttled { .. }) => {
                AfterWrite::Again(self.backoff.failed(Pauses::UNREACHABLE, now))
            }
            Some(RequestError::Conflict | RequestError::Gone) => {
                AfterWrite::Again(self.backoff.failed(Pauses::REFUSED, now))
            }
            Some(
                RequestError::Broken { .. } | RequestError::TimedOut(_) | RequestError::Failed(_),
            ) => {
                let before = self.refusals;
                self.refusals = before.saturating_add(1);
                let again = self.backoff.failed(Pauses::REFUSED, now);
                AfterWrite::Refused { again, before }
            }
        }
    }

    /// Forgets earlier failures.
    pub fn forgive(&mut self) {
        self.backoff = Backoff::default();
        self.refusals = 0;
    }

    /// Retries at this time or later.
    pub fn wait_until(&mut self, at: Instant) {
        let due = self.backoff.due();
        self.backoff.retry_at(due.map_or(at, |due| due.max(at)));
    }

    /// Retries at this time, whatever failed before.
    pub fn retry_at(&mut self, at: Instant) {
        self.backoff.retry_at(at);
    }

    /// When to retry; `None` for now.
    pub fn not_before(&self, now: Instant) -> Option<Instant> {
        self.backoff.not_before(now)
    }

    pub fn refusals(&self) -> u32 {
        self.refusals
    }
}

impl<W> Default for WriteSlot<W> {
    fn default() -> Self {
        Self {
            under_way: None,
            backoff: Backoff::default(),
            refusals: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_follows_from_an_answer_depends_on_whose_trouble_it_is() {
        let message = String::new;
        let busy = RequestError::Throttled {
            message: message(),
            come_again: None,
        };
        let broken = RequestError::Broken {
            message: message(),
            come_again: None,
        };
        for (error, refusals) in [
            (RequestError::Unreachable(message()), 0),
            (busy, 0),
            (RequestError::Conflict, 0),
            (RequestError::Gone, 0),
            (broken, 1),
            (RequestError::TimedOut(Duration::ZERO), 1),
            (RequestError::Failed(message()), 1),
        ] {
            let now = Instant::now();
            let mut slot = WriteSlot::default();
            assert_eq!(slot.ended(Some(&error), now), None, "nothing is under way");
            slot.begin("a");
            assert!(slot.is_under_way());
            let (write, verdict) = slot.ended(Some(&error), now).unwrap();
            assert!(!slot.is_under_way());
            assert_eq!((write, slot.refusals()), ("a", refusals), "{error:?}");
            assert_eq!(error.is_refusal(), refusals == 1, "{error:?}");
            let again = match verdict {
                AfterWrite::Done => panic!("{error:?}"),
                AfterWrite::Again(at) => at,
                AfterWrite::Refused { again, before } => {
                    assert_eq!(before, 0);
                    again
                }
            };
            assert_eq!(slot.not_before(now), Some(again), "{error:?}");
            slot.begin("b");
            assert_eq!(slot.ended(None, again), Some(("b", AfterWrite::Done)));
            assert_eq!((slot.refusals(), slot.not_before(now)), (0, None));
        }
    }
}
