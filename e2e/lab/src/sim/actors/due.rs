//! What somebody has to do, and when.

use std::collections::BTreeSet;

use crate::sim::time::Time;

/// Tasks, each with its time. Those of one time come in their own order.
#[derive(Debug, Clone)]
pub struct Due<T: Ord>(BTreeSet<(Time, T)>);

impl<T: Ord> Default for Due<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord> Due<T> {
    /// Has this done then.
    pub fn at(&mut self, time: Time, task: T) {
        self.0.insert((time, task));
    }

    /// When there is something to do next.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.0.first().map(|(time, _)| *time)
    }

    /// The next task that is due by now.
    pub fn take(&mut self, now: Time) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, task)| task)
    }
}

/// When somebody looks who has something to look at: at the first of the times that he was told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Soon(Option<Time>);

impl Soon {
    /// Has him look then, unless he does before.
    pub fn at(&mut self, time: Time) {
        self.0 = Some(self.0.map_or(time, |known| known.min(time)));
    }

    /// When he looks next.
    #[must_use]
    pub fn next(self) -> Option<Time> {
        self.0
    }

    /// Whether he looks now; he has then.
    pub fn take(&mut self, now: Time) -> bool {
        let is_due = self.0.is_some_and(|time| time <= now);
        if is_due {
            self.0 = None;
        }
        is_due
    }
}
