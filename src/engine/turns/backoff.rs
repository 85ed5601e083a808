//! When something that failed is tried again: after pauses that double, each cut short a little so that things that failed
//! together do not come back together.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// How long the pauses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// The first one.
    pub first: Duration,
    /// The longest one.
    pub longest: Duration,
}

impl Pauses {
    /// After an answer that says no: the same again so soon is likely to be answered the same.
    pub const REFUSED: Self = Self::between(Duration::from_millis(50), Duration::from_secs(30));
    /// Where nothing could be reached. An API server that is back is to be noticed soon.
    pub const UNREACHABLE: Self = Self::between(Duration::from_millis(50), Duration::from_secs(2));

    /// Pauses that double from `first` to `longest`.
    #[must_use]
    pub const fn between(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The pause after so many failures in a row, of which there is one at least.
    fn after(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// When something that failed may be tried again.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    failures: u32,
    /// The pauses that the failures were counted for.
    pauses: Option<Pauses>,
    not_before: Option<Instant>,
}

impl Backoff {
    /// Notes a failure; answers when to try again. What has failed for one cause says nothing about another: with other
    /// pauses than before, the first comes first.
    pub fn failed(&mut self, pauses: Pauses, now: Instant) -> Instant {
        if self.pauses.replace(pauses) != Some(pauses) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let at = now + spread(pauses.after(self.failures), self.failures, now);
        self.not_before = Some(at);
        at
    }

    /// When the next try is due, which may be past; `None` where nothing has failed.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.not_before
    }

    /// When to try again; `None` where that may be done now.
    #[must_use]
    pub fn not_before(&self, now: Instant) -> Option<Instant> {
        self.not_before.filter(|at| now < *at)
    }
}

/// A part of the pause, at least half of it, that depends on when it begins: chance enough, and no source of it is needed.
fn spread(pause: Duration, failures: u32, now: Instant) -> Duration {
    let mut hasher = DefaultHasher::new();
    (now, failures).hash(&mut hasher);
    let part = u32::try_from(hasher.finish() >> 32).unwrap_or(u32::MAX);
    pause.mul_f64(0.5 + 0.5 * f64::from(part) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Pauses = Pauses::UNREACHABLE;
    const LONG: Pauses = Pauses::REFUSED;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        assert_eq!(backoff.not_before(now), None);
        for nominal in [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000] {
            let at = backoff.failed(SHORT, now);
            let pause = at - now;
            let nominal = Duration::from_millis(nominal);
            assert!(
                pause >= nominal / 2 && pause <= nominal,
                "{pause:?} of {nominal:?}"
            );
            assert_eq!(backoff.not_before(now), Some(at));
            assert_eq!(backoff.not_before(at), None);
            now = at;
        }
        for _ in 0..100 {
            backoff.failed(SHORT, now);
        }
        assert!(backoff.failed(SHORT, now) <= now + SHORT.longest);
    }

    #[test]
    fn one_cause_does_not_make_another_wait() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        for _ in 0..20 {
            backoff.failed(SHORT, now);
        }
        assert!(backoff.failed(LONG, now) <= now + LONG.first);
        for _ in 0..20 {
            backoff.failed(LONG, now);
        }
        assert!(backoff.failed(LONG, now) > now + SHORT.longest);
    }

    #[test]
    fn what_fails_together_does_not_come_back_together() {
        let start = Instant::now();
        let pauses: std::collections::HashSet<Duration> = (0..100)
            .map(|index| {
                let now = start + Duration::from_nanos(index);
                Backoff::default().failed(LONG, now) - now
            })
            .collect();
        assert!(pauses.len() > 90, "{}", pauses.len());
    }
}
