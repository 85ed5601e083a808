//! One write at a time of one thing, and when it is made again: the error policy of every write.
//!
//! | answer | the next write |
//! |---|---|
//! | done | whenever there is something to write |
//! | unreachable, too many requests | after a short pause, and when the pacer lets its class through: all wait for that together |
//! | conflict, gone | after a pause; a watch or a read shows what has become of the object |
//! | anything else: a refusal | after a pause, and it is told |

use std::time::Instant;

use super::backoff::{Backoff, Pauses};
use crate::engine::error::RequestError;

/// The write of one thing, with what is known of it while it is under way, and how earlier attempts have ended.
#[derive(Debug)]
pub struct WriteSlot<W = ()> {
    under_way: Option<W>,
    backoff: Backoff,
    /// How often in a row it has been refused.
    refusals: u32,
}

/// What follows from the answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has been carried out.
    Done,
    /// It may be made again at this time, if it is still wanted.
    Again(Instant),
    /// It has been refused, after so many refusals before, and may be made again at this time.
    Refused {
        /// When.
        again: Instant,
        /// How often in a row it had been refused before.
        before: u32,
    },
}

impl<W> WriteSlot<W> {
    /// Begins a write. None is under way.
    pub fn begin(&mut self, write: W) {
        self.under_way = Some(write);
    }

    /// Whether a write is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Takes in the answer to the write that is under way; answers what was known of it, and what follows.
    pub fn ended(&mut self, error: Option<&RequestError>, now: Instant) -> Option<(W, Verdict)> {
        let write = self.take()?;
        Some((write, self.judge(error, now)))
    }

    /// Takes the write that is under way out of the slot, for whoever judges its answer.
    pub fn take(&mut self) -> Option<W> {
        self.under_way.take()
    }

    /// Takes the write that is under way out of the slot, if this holds of it.
    pub fn take_if(&mut self, is_meant: impl FnOnce(&mut W) -> bool) -> Option<W> {
        self.under_way.take_if(is_meant)
    }

    /// Judges an answer.
    pub fn judge(&mut self, error: Option<&RequestError>, now: Instant) -> Verdict {
        match error {
            None => {
                self.forgive();
                Verdict::Done
            }
            Some(RequestError::Unreachable(_) | RequestError::Throttled { .. }) => {
                Verdict::Again(self.backoff.failed(Pauses::UNREACHABLE, now))
            }
            Some(RequestError::Conflict | RequestError::Gone) => {
                Verdict::Again(self.backoff.failed(Pauses::REFUSED, now))
            }
            Some(
                RequestError::Broken { .. } | RequestError::TimedOut(_) | RequestError::Failed(_),
            ) => {
                let before = self.refusals;
                self.refusals = before.saturating_add(1);
                let again = self.backoff.failed(Pauses::REFUSED, now);
                Verdict::Refused { again, before }
            }
        }
    }

    /// Forgets how earlier attempts have ended.
    pub fn forgive(&mut self) {
        self.backoff = Backoff::default();
        self.refusals = 0;
    }

    /// When to try again; `None` where that may be done now.
    pub fn not_before(&self, now: Instant) -> Option<Instant> {
        self.backoff.not_before(now)
    }

    /// How often in a row it has been refused.
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
                Verdict::Done => panic!("{error:?}"),
                Verdict::Again(at) => at,
                Verdict::Refused { again, before } => {
                    assert_eq!(before, 0);
                    again
                }
            };
            assert_eq!(slot.not_before(now), Some(again), "{error:?}");
            slot.begin("b");
            assert_eq!(slot.ended(None, again), Some(("b", Verdict::Done)));
            assert_eq!((slot.refusals(), slot.not_before(now)), (0, None));
        }
    }
}
