//! One time from two clocks: the wall clock dates objects; the monotonic one shows if that was set, or the process stood still.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// If the two clocks diverge by more than this between two readings, the wall clock was set.
const STEP: SignedDuration = SignedDuration::from_secs(2);
/// If the process waited for longer than this, it stood still. The loop reads the clock every second.
const STALL: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Clock {
    wall: Timestamp,
    monotonic: Instant,
    /// When the process began to wait. What it does before that may take long.
    rested: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// The wall time. It goes back only if the wall clock was set back.
    pub now: Timestamp,
    /// How far the wall clock was set since the last reading, or for how long the machine was suspended: measurements must restart.
    pub step: Option<SignedDuration>,
    /// Whether the process stood still while it waited: its caches are stale.
    pub stood_still: bool,
}

impl Clock {
    pub(super) fn new(wall: Timestamp, monotonic: Instant) -> Self {
        Self {
            wall,
            monotonic,
            rested: monotonic,
        }
    }

    pub(super) fn rest(&mut self, monotonic: Instant) {
        self.rested = self.rested.max(monotonic);
    }

    pub(super) fn read(&mut self, wall: Timestamp, monotonic: Instant) -> Reading {
        let passed = monotonic.saturating_duration_since(self.monotonic);
        let exact = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        let expected = self.wall.checked_add(exact).unwrap_or(Timestamp::MAX);
        let step = Some(wall.duration_since(expected));
        let step = step.filter(|step| step.abs() > STEP);
        let is_set = step.is_some();
        // Small corrections backwards are ignored.
        let now = if is_set { wall } else { wall.max(self.wall) };
        self.wall = now;
        self.monotonic = self.monotonic.max(monotonic);
        let waited = monotonic.saturating_duration_since(self.rested);
        self.rest(monotonic);
        Reading {
            now,
            step,
            stood_still: waited > STALL || is_set,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn clocks_that_part_are_told_from_those_that_drift_and_a_stall_from_both() {
        #[rustfmt::skip]
        let cases = [
            ("a second", 101, 1, 101, false, false),
            ("a correction forward", 102, 1, 102, false, false),
            ("a correction back", 99, 1, 100, false, false),
            ("set forward", 3700, 1, 3700, true, true),
            ("set back", -3500, 1, -3500, true, true),
            ("stood still", 125, 25, 125, false, true),
            ("suspended, which the monotonic clock does not count", 1000, 0, 1000, true, true),
        ];
        for (name, wall, passed, now, was_set, stood_still) in cases {
            let started = Instant::now();
            let mut clock = Clock::new(at(100), started);
            let later = started + Duration::from_secs(passed);
            let reading = clock.read(at(wall), later);
            let read = (reading.now, reading.step.is_some(), reading.stood_still);
            assert_eq!(read, (at(now), was_set, stood_still), "{name}");
            let again = clock.read(at(wall), later);
            assert!(
                again.step.is_none() && !again.stood_still,
                "{name}: told once"
            );
        }
    }
}
