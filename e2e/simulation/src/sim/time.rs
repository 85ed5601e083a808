//! Time on the cluster's clock, and on the two clocks of a process, which can diverge from it.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use nodegate_engine::io::Now;

/// The time since the schedule began.
pub type Time = Duration;

pub const fn s(seconds: u64) -> Time {
    Duration::from_secs(seconds)
}

pub const fn ms(milliseconds: u64) -> Time {
    Duration::from_millis(milliseconds)
}

/// The cluster's clock at this time. It is always right: the API server and the actors take their timestamps from it.
pub fn wall(time: Time) -> Timestamp {
    // 2026-01-01T00:00:00Z
    const BEGINNING: i64 = 1_767_225_600;
    let beginning = Timestamp::from_second(BEGINNING).unwrap_or_default();
    let since = SignedDuration::try_from(time).unwrap_or_default();
    beginning.checked_add(since).unwrap_or(Timestamp::MAX)
}

/// The monotonic clocks' value at the beginning: the same in every run where the platform allows it, since random pauses may be
/// seeded from it.
pub fn beginning() -> Instant {
    const BEGINNING: Duration = Duration::from_secs(1_000_000);
    let now = Instant::now();
    // An instant prints as the seconds and nanoseconds of the system's clock; there is no other way to read them.
    let printed = format!("{now:?}");
    let number = |field: &str| {
        let (_, rest) = printed.split_once(field)?;
        let end = rest.find(|it: char| !it.is_ascii_digit())?;
        rest[..end].parse().ok()
    };
    let parts = (number("tv_sec: "), number("tv_nsec: "));
    let (Some(seconds), Some(nanoseconds)) = parts else {
        return now;
    };
    let since = Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
    let zero = now.checked_sub(since);
    zero.map_or(now, |zero| zero + BEGINNING)
}

#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The monotonic clock at the beginning of the schedule. Only differences to it matter.
    base: Instant,
    /// How far the wall clock is ahead of the cluster's.
    step: SignedDuration,
    /// For how long the monotonic clock has stood still.
    slept: Duration,
}

impl Clocks {
    /// Two clocks without deviation.
    pub fn new(base: Instant) -> Self {
        Self {
            base,
            step: SignedDuration::ZERO,
            slept: Duration::ZERO,
        }
    }

    /// Both clocks' values at this time.
    pub fn now(&self, time: Time) -> Now {
        Now {
            wall: wall(time).checked_add(self.step).unwrap_or(Timestamp::MAX),
            monotonic: self.base + time.saturating_sub(self.slept),
        }
    }

    /// When the monotonic clock will reach this value.
    pub fn when(&self, monotonic: Instant) -> Time {
        monotonic.saturating_duration_since(self.base) + self.slept
    }

    /// Steps the wall clock forward or back.
    pub fn step(&mut self, by: SignedDuration) {
        self.step = self.step.saturating_add(by);
    }

    /// Records a suspension of this length. Suspending and waking take a moment on its own clock, too.
    pub fn suspended(&mut self, lasted: Duration) {
        self.slept += lasted.saturating_sub(ms(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_begins_at_the_same_time() {
        let first = beginning();
        std::thread::sleep(ms(2));
        assert_eq!(first, beginning());
    }

    #[test]
    fn the_two_clocks_of_a_process_can_part_from_the_clusters() {
        let base = Instant::now();
        let mut clocks = Clocks::new(base);
        assert_eq!(clocks.now(s(5)).wall, wall(s(5)));
        assert_eq!(clocks.now(s(5)).monotonic, base + s(5));
        clocks.step(SignedDuration::from_secs(-3600));
        clocks.suspended(s(10));
        let now = clocks.now(s(20));
        assert_eq!(wall(s(20)).duration_since(now.wall).as_secs(), 3600);
        assert_eq!(now.monotonic, base + s(10) + ms(1));
        assert_eq!(clocks.when(now.monotonic), s(20));
    }
}
