//! When to retry what failed: pauses double, each cut short by up to half, so that things that failed together spread out.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    first: Duration,
    longest: Duration,
}

impl Pauses {
    /// After a refusal: an early retry is likely to be refused too.
    pub const REFUSED: Self = Self::between(Duration::from_millis(50), Duration::from_secs(30));
    /// After an unreachable API server, whose return must be noticed soon.
    pub const UNREACHABLE: Self = Self::between(Duration::from_millis(50), Duration::from_secs(2));

    pub const fn between(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The pause after this many failures in a row, 1 or more. Its jitter comes from the arguments: same inputs, same effects.
    pub fn after(self, failures: u32, now: Instant) -> Duration {
        // The library's jitter only adds, up to the same again.
        let mut pauses = ExponentialBuilder::new()
            .with_min_delay(self.first / 2)
            .with_max_delay(self.longest / 2)
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(
                BuildHasherDefault::<DefaultHasher>::default().hash_one((now, failures)),
            )
            .build();
        // By then, every pause is the longest.
        let before = failures.clamp(1, u32::BITS) - 1;
        pauses.nth(before as usize).unwrap_or(self.longest)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Backoff {
    failures: u32,
    pauses: Option<Pauses>,
    not_before: Option<Instant>,
}

impl Backoff {
    /// Notes a failure; returns when to retry. Other pauses than before mean another cause: they start with the first.
    pub fn failed(&mut self, pauses: Pauses, now: Instant) -> Instant {
        if self.pauses.replace(pauses) != Some(pauses) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let at = now + pauses.after(self.failures, now);
        self.not_before = Some(at);
        at
    }

    /// Retries not before this time.
    pub fn wait_until(&mut self, at: Instant) {
        self.not_before = self.not_before.max(Some(at));
    }

    pub fn retry_at(&mut self, at: Instant) {
        self.not_before = Some(at);
    }

    /// When the next try is due, which may be past; `None` if nothing failed.
    pub fn due(&self) -> Option<Instant> {
        self.not_before
    }

    /// When to retry; `None` for now.
    pub fn not_before(&self, now: Instant) -> Option<Instant> {
        self.not_before.filter(|at| now < *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        assert_eq!(backoff.not_before(now), None);
        for nominal in [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000] {
            let at = backoff.failed(Pauses::UNREACHABLE, now);
            let pause = at - now;
            let nominal = Duration::from_millis(nominal);
            let rounding = Duration::from_micros(10);
            assert!(
                pause + rounding >= nominal / 2 && pause <= nominal + rounding,
                "{pause:?} of {nominal:?}"
            );
            assert_eq!(backoff.not_before(now), Some(at));
            assert_eq!(backoff.not_before(at), None);
            now = at;
        }
    }

    #[test]
    fn retries_of_writes_that_fail_together_are_spread() {
        let start = Instant::now();
        let pauses: std::collections::HashSet<Duration> = (0..100)
            .map(|index| {
                let now = start + Duration::from_nanos(index);
                Backoff::default().failed(Pauses::REFUSED, now) - now
            })
            .collect();
        assert!(pauses.len() > 90, "{}", pauses.len());
    }
}
