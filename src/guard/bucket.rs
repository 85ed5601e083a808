//! A token bucket of one token, without a clock of its own.

use jiff::{SignedDuration, Timestamp};

/// What may be missing from a token for it to count as whole: less than the errors of adding up many small parts.
const ROUNDING: f64 = 1e-9;

/// A bucket that holds at most one token and fills by time passed, at a rate that may change and may be 0.
///
/// The burst of 1 is `EvictionRateLimiterBurst` of `pkg/controller/nodelifecycle/scheduler`. As there (`SwapLimiter`),
/// rate 0 empties the bucket: when things begin to recover, the rest has a while to follow. Unlike there, any other change
/// of rate keeps what is in the bucket.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// How much of a token was there when it was last settled; 0 to 1.
    level: f64,
    /// Tokens a second since then; 0 or more.
    rate: f64,
    /// When that was; `None` as long as it has been full from the start.
    settled: Option<Timestamp>,
}

impl Bucket {
    /// A full bucket.
    pub fn new() -> Self {
        Self {
            level: 1.0,
            rate: 0.0,
            settled: None,
        }
    }

    /// Fills up to now at the rate that held until now, and goes on at this one. A clock that went backwards adds
    /// nothing, and time goes on from there.
    pub fn settle(&mut self, now: Timestamp, rate: f64) {
        self.level = if rate > 0.0 { self.level_at(now) } else { 0.0 };
        self.rate = rate;
        self.settled = Some(now);
    }

    /// Whether nothing is missing, as of when it was last settled.
    pub fn is_full(&self) -> bool {
        self.level >= 1.0 - ROUNDING
    }

    /// Takes the token, if it is there as of when the bucket was last settled.
    pub fn take(&mut self) -> bool {
        let full = self.is_full();
        if full {
            self.level = 0.0;
        }
        full
    }

    /// Gives back the token that was taken last, as if it had not been: the bucket was full, and so it is again.
    pub fn give_back(&mut self) {
        self.level = 1.0;
    }

    /// When the token will be there if from now on it fills at this rate: `now` if it is there, and `None` for never.
    pub fn next_token(&self, now: Timestamp, rate: f64) -> Option<Timestamp> {
        if rate <= 0.0 {
            return None;
        }
        let missing = 1.0 - self.level_at(now);
        if missing <= ROUNDING {
            return Some(now);
        }
        // Rounded up, so that at that time it is there.
        let moment = SignedDuration::try_from_secs_f64(missing / rate)
            .ok()
            .and_then(|wait| wait.checked_add(SignedDuration::from_nanos(1)))
            .and_then(|wait| now.checked_add(wait).ok());
        Some(moment.unwrap_or(Timestamp::MAX))
    }

    fn level_at(&self, now: Timestamp) -> f64 {
        let passed = self.settled.map_or(SignedDuration::ZERO, |settled| {
            now.duration_since(settled).max(SignedDuration::ZERO)
        });
        (self.level + passed.as_secs_f64() * self.rate).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn it_starts_full_and_fills_by_time_passed() {
        let mut bucket = Bucket::new();
        bucket.settle(at(0), 0.1);
        assert!(bucket.take());
        assert!(!bucket.take());
        bucket.settle(at(9), 0.1);
        assert!(!bucket.take());
        bucket.settle(at(10), 0.1);
        assert!(bucket.take());
        bucket.settle(at(1000), 0.1);
        assert!(bucket.take());
        assert!(!bucket.take(), "no more than one is saved up");
    }

    #[test]
    fn a_change_of_rate_keeps_what_is_there() {
        let mut bucket = Bucket::new();
        bucket.settle(at(0), 0.1);
        assert!(bucket.take());
        bucket.settle(at(5), 0.01);
        bucket.settle(at(15), 0.1);
        bucket.settle(at(18), 0.1);
        assert!(!bucket.take());
        bucket.settle(at(19), 0.1);
        assert!(bucket.take());
    }

    #[test]
    fn rate_zero_empties_it() {
        let mut bucket = Bucket::new();
        bucket.settle(at(0), 0.0);
        assert!(!bucket.take());
        bucket.settle(at(500), 0.1);
        assert!(!bucket.take(), "and nothing comes in");
        bucket.settle(at(510), 0.1);
        assert!(bucket.take());
    }

    #[test]
    fn a_clock_that_goes_backwards_neither_fills_nor_stops_it() {
        let mut bucket = Bucket::new();
        bucket.settle(at(3600), 0.1);
        assert!(bucket.take());
        bucket.settle(at(0), 0.1);
        assert!(!bucket.take());
        assert_eq!(
            bucket.next_token(at(0), 0.1).map(Timestamp::as_second),
            Some(at(10).as_second())
        );
        bucket.settle(at(10), 0.1);
        assert!(bucket.take());
    }

    #[test]
    fn the_next_token_is_there_when_it_was_said_to_be() {
        for rate in [0.001, 0.1, 0.3, 7.0, 1234.5] {
            let mut bucket = Bucket::new();
            let mut now = at(0);
            bucket.settle(now, rate);
            for _ in 0..1000 {
                assert!(bucket.take(), "{rate} at {now}");
                now = bucket.next_token(now, rate).unwrap();
                bucket.settle(now, rate);
            }
        }
    }

    #[test]
    fn a_token_that_never_comes_is_not_waited_for() {
        let mut bucket = Bucket::new();
        assert_eq!(bucket.next_token(at(0), 0.1), Some(at(0)), "it is there");
        bucket.settle(at(0), 0.0);
        assert_eq!(bucket.next_token(at(0), 0.0), None);
        for rate in [f64::MIN_POSITIVE, 1e-12] {
            assert_eq!(bucket.next_token(at(0), rate), Some(Timestamp::MAX));
        }
    }
}
