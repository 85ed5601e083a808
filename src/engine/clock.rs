//! Two clocks made into one time: the wall clock, by which objects are dated, and the monotonic one, by which it shows
//! whether the wall clock was set and whether this process stood still.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// The wall clock was set if it parts from the monotonic clock by more than this between two readings.
const STEP: SignedDuration = SignedDuration::from_secs(2);
/// The process stood still if two readings are further apart than this. The loop reads its clock every second.
const STALL: Duration = Duration::from_secs(3);

/// The time, from both clocks.
#[derive(Debug)]
pub struct Clock {
    wall: Timestamp,
    monotonic: Instant,
}

/// What a reading of the clocks says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The time by the wall clock. It goes back only where the wall clock was set back.
    pub now: Timestamp,
    /// Whether the wall clock was set since the last reading, or the machine was suspended: whatever was measured so far
    /// has to begin anew.
    pub was_set: bool,
    /// How far the wall clock has parted from the monotonic one since the last reading, forward or back.
    pub step: SignedDuration,
    /// Whether the process stood still since the last reading: what it knows is as old as that.
    pub stood_still: bool,
}

impl Clock {
    /// A clock that is first read now.
    #[must_use]
    pub fn new(wall: Timestamp, monotonic: Instant) -> Self {
        Self { wall, monotonic }
    }

    /// Reads the clocks: these are their times.
    pub fn read(&mut self, wall: Timestamp, monotonic: Instant) -> Reading {
        let passed = monotonic.saturating_duration_since(self.monotonic);
        let exact = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        let expected = self.wall.checked_add(exact).unwrap_or(Timestamp::MAX);
        let step = wall.duration_since(expected);
        let was_set = step.abs() > STEP;
        // What small corrections take back is passed over.
        let now = if was_set { wall } else { wall.max(self.wall) };
        self.wall = now;
        self.monotonic = self.monotonic.max(monotonic);
        Reading {
            now,
            was_set,
            step,
            stood_still: passed > STALL || was_set,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn clocks_that_part_are_told_from_those_that_drift_and_a_stall_from_both() {
        for (name, wall, passed, now, was_set, stood_still) in [
            ("a second", 101, 1, 101, false, false),
            ("a correction forward", 102, 1, 102, false, false),
            ("a correction back", 99, 1, 100, false, false),
            ("set forward", 3700, 1, 3700, true, true),
            ("set back", -3500, 1, -3500, true, true),
            ("stood still", 125, 25, 125, false, true),
            (
                "suspended, which the monotonic clock does not count",
                1000,
                0,
                1000,
                true,
                true,
            ),
        ] {
            let started = Instant::now();
            let mut clock = Clock::new(at(100), started);
            let later = started + Duration::from_secs(passed);
            let reading = clock.read(at(wall), later);
            let expected = Reading {
                now: at(now),
                was_set,
                step: reading.step,
                stood_still,
            };
            assert_eq!(reading, expected, "{name}");
            let again = clock.read(at(wall), later);
            assert!(!again.was_set && !again.stood_still, "{name}: told once");
        }
    }
}
