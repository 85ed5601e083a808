//! A token bucket without its own clock. It limits the rate of the controller's writes, and of the nodes that a rule may gate.

use std::time::{Duration, Instant};

/// Tolerance for a whole token: less than the rounding errors of adding many small parts.
const ROUNDING: f64 = 1e-9;

/// The longest wait that is returned. At a rate so low that it takes longer, ask again then.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A bucket that fills over time, at a rate that may change and may be 0.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    /// Its capacity, 1 or more.
    burst: f64,
    /// The tokens when it was last settled; negative if some were taken in advance.
    level: f64,
    /// Tokens per second since then; 0 or more.
    rate: f64,
    /// When that was; `None` while it has been full from the start.
    settled: Option<Instant>,
}

impl TokenBucket {
    pub fn full(burst: f64) -> Self {
        Self {
            burst,
            level: burst,
            rate: 0.0,
            settled: None,
        }
    }

    /// Fills at the previous rate up to now, and sets the rate from now on.
    pub fn settle(&mut self, now: Instant, rate: f64) {
        self.level = self.level_at(now);
        self.rate = rate;
        self.settled = Some(now);
    }

    /// Whether there is a token, as of the last [`Self::settle`].
    pub(crate) fn has_token(&self) -> bool {
        self.level >= 1.0 - ROUNDING
    }

    /// Takes a token, in advance if there is none.
    pub fn take(&mut self) {
        self.level -= 1.0;
    }

    pub(crate) fn give_back(&mut self) {
        self.level = (self.level + 1.0).min(self.burst);
    }

    pub(crate) fn empty(&mut self) {
        self.level = 0.0;
    }

    /// When there will be a token if the bucket fills at this rate from now on: `now` if there is one, `None` for never.
    pub fn next_token(&self, now: Instant, rate: f64) -> Option<Instant> {
        let missing = 1.0 - self.level_at(now);
        if missing <= ROUNDING {
            return Some(now);
        }
        if rate <= 0.0 {
            return None;
        }
        // Rounded up, so that the token is there at that time.
        let wait = Duration::try_from_secs_f64(missing / rate).unwrap_or(LONGEST_WAIT);
        Some(now + wait.min(LONGEST_WAIT) + Duration::from_nanos(1))
    }

    fn level_at(&self, now: Instant) -> f64 {
        let passed = self.settled.map(|at| now.saturating_duration_since(at));
        (self.level + passed.unwrap_or_default().as_secs_f64() * self.rate).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::moment;

    #[test]
    fn a_token_that_hardly_ever_comes_is_asked_about_once_a_day() {
        let mut bucket = TokenBucket::full(1.0);
        let now = moment(0);
        assert_eq!(bucket.next_token(now, 0.0), Some(now), "it is there");
        bucket.settle(now, 0.0);
        bucket.empty();
        assert_eq!(bucket.next_token(now, 0.0), None);
        for rate in [f64::MIN_POSITIVE, 1e-12] {
            let next = bucket.next_token(now, rate).unwrap();
            assert_eq!((next - now).as_secs(), LONGEST_WAIT.as_secs());
        }
    }
}
