//! Timers of actors.

use std::collections::BTreeSet;

use crate::sim::time::Time;

/// Tasks by time. Tasks of the same time come in their own order.
#[derive(Debug, Clone)]
pub struct Due<T: Ord>(BTreeSet<(Time, T)>);

impl<T: Ord> Default for Due<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord> Due<T> {
    pub fn at(&mut self, time: Time, task: T) {
        self.0.insert((time, task));
    }

    pub fn next(&self) -> Option<Time> {
        self.0.first().map(|(time, _)| *time)
    }

    /// Takes the next task that is due by now.
    pub fn take(&mut self, now: Time) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, task)| task)
    }
}

/// A single timer, at the earliest of the times asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Soon(Option<Time>);

impl Soon {
    /// Wakes at this time at the latest.
    pub fn at(&mut self, time: Time) {
        self.0 = Some(self.0.map_or(time, |known| known.min(time)));
    }

    pub fn next(self) -> Option<Time> {
        self.0
    }

    /// Whether it is due; clears it if so.
    pub fn take(&mut self, now: Time) -> bool {
        let is_due = self.0.is_some_and(|time| time <= now);
        if is_due {
            self.0 = None;
        }
        is_due
    }
}
