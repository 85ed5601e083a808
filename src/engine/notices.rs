//! Notices that wait to be posted. What is written to nodes comes first; under overload notices are dropped and counted
//! rather than waited for.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::io::Now;
use super::notice::Notice;

/// How many may wait.
const CAPACITY: usize = 32_768;
/// How long they are put off in favour of writes to nodes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Notices, in the order in which they came.
#[derive(Debug, Default)]
pub struct Notices {
    queue: VecDeque<(Notice, Now)>,
    /// When the first one is posted even if nodes are still being written.
    put_off: Option<Instant>,
}

impl Notices {
    /// Takes one in; answers whether there was room for it.
    pub fn take(&mut self, notice: Notice, now: Now) -> bool {
        let has_room = self.queue.len() < CAPACITY;
        if has_room {
            self.queue.push_back((notice, now));
        }
        has_room
    }

    /// Whether it is time to post the next one.
    pub fn is_due(&mut self, is_busy: bool, now: Instant) -> bool {
        let Some((_, came)) = self.queue.front() else {
            return false;
        };
        let patient_until = came.monotonic + PATIENCE;
        self.put_off = (is_busy && now < patient_until).then_some(patient_until);
        self.put_off.is_none()
    }

    /// The next one, with when it came.
    pub fn next(&mut self) -> Option<(Notice, Timestamp)> {
        let (notice, came) = self.queue.pop_front()?;
        Some((notice, came.wall))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// When one that is put off is posted all the same.
    pub fn next_turn(&self) -> Option<Instant> {
        self.put_off.filter(|_| !self.queue.is_empty())
    }
}
