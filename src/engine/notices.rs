//! The queue of Events. Writes to nodes come first; under overload, Events are dropped and counted rather than kept back.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::io::Now;
use super::notice::Notice;

/// How many Events the queue holds.
const CAPACITY: usize = 32_768;
/// How long an Event yields to writes to nodes.
const PATIENCE: Duration = Duration::from_secs(1);

/// The queue, oldest first.
#[derive(Debug, Default)]
pub struct Notices {
    queue: VecDeque<(Notice, Now)>,
    /// When the oldest is posted even if nodes are still being written.
    put_off: Option<Instant>,
}

impl Notices {
    /// Adds a notice; returns false if the queue is full.
    pub fn take(&mut self, notice: Notice, now: Now) -> bool {
        let has_room = self.queue.len() < CAPACITY;
        if has_room {
            self.queue.push_back((notice, now));
        }
        has_room
    }

    /// Whether the oldest may be posted now.
    pub fn is_due(&mut self, is_busy: bool, now: Instant) -> bool {
        let Some((_, came)) = self.queue.front() else {
            return false;
        };
        let patient_until = came.monotonic + PATIENCE;
        self.put_off = (is_busy && now < patient_until).then_some(patient_until);
        self.put_off.is_none()
    }

    /// The oldest, with the time at which it was added.
    pub fn next(&mut self) -> Option<(Notice, Timestamp)> {
        let (notice, came) = self.queue.pop_front()?;
        Some((notice, came.wall))
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// When the oldest is posted even if nodes are still being written.
    pub fn next_turn(&self) -> Option<Instant> {
        self.put_off.filter(|_| !self.queue.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::notice::{About, LATE};
    use crate::testing::at;

    fn notice(why: &str) -> Notice {
        let about = About::node(&"n".into(), &"uid".into());
        Notice::new(about, &LATE, why.into())
    }

    #[test]
    fn what_waits_longest_comes_first_and_keeps_its_time() {
        let now = Instant::now();
        let mut notices = Notices::default();
        for seconds in [1, 2] {
            let came = Now {
                wall: at(seconds),
                monotonic: now,
            };
            assert!(notices.take(notice(&seconds.to_string()), came));
        }
        assert_eq!(notices.len(), 2);
        assert_eq!(notices.next(), Some((notice("1"), at(1))));
        assert_eq!(notices.next(), Some((notice("2"), at(2))));
        assert_eq!((notices.next(), notices.len()), (None, 0));
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let came = Now {
            wall: at(0),
            monotonic: Instant::now(),
        };
        let mut notices = Notices::default();
        let taken = (0..=CAPACITY).filter(|_| notices.take(notice(""), came));
        assert_eq!(taken.count(), CAPACITY);
        notices.next();
        assert!(notices.take(notice(""), came));
    }

    #[test]
    fn one_that_is_put_off_is_posted_after_a_second_or_as_soon_as_nothing_is_written() {
        let start = Instant::now();
        let came = Now {
            wall: at(0),
            monotonic: start,
        };
        let mut notices = Notices::default();
        assert!(!notices.is_due(false, start), "there is none");
        notices.take(notice(""), came);
        assert!(notices.is_due(false, start));
        assert_eq!(notices.next_turn(), None);
        assert!(!notices.is_due(true, start));
        assert_eq!(notices.next_turn(), Some(start + PATIENCE));
        assert!(notices.is_due(true, start + PATIENCE));
        assert_eq!(notices.next_turn(), None);
        assert!(!notices.is_due(true, start));
        notices.next();
        assert_eq!(notices.next_turn(), None, "nothing waits any more");
    }
}
