//! Limits equal log messages: the first is logged, then one a minute with the number of those suppressed.

use std::time::{Duration, Instant};

use crate::map::Map;

/// How often an equal message is logged.
const INTERVAL: Duration = Duration::from_secs(60);
/// How many different messages are remembered.
const CAPACITY: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Repetitions {
    /// When each message was logged last, and how often it was suppressed since then.
    told: Map<String, (Instant, u64)>,
}

impl Repetitions {
    /// Whether to log this now; if so, how often it was suppressed.
    pub(super) fn tell(&mut self, what: &str, now: Instant) -> Option<u64> {
        if !self.told.contains_key(what) && self.told.len() >= CAPACITY {
            self.told
                .retain(|_, (at, _)| now.duration_since(*at) < INTERVAL);
        }
        // Beyond the capacity, all messages share one entry.
        let is_one_of_many = !self.told.contains_key(what) && self.told.len() >= CAPACITY;
        let what = if is_one_of_many { "" } else { what };
        let Some((at, again)) = self.told.get_mut(what) else {
            self.told.insert(what.to_owned(), (now, 0));
            return Some(0);
        };
        if now.duration_since(*at) < INTERVAL {
            *again += 1;
            return None;
        }
        *at = now;
        Some(std::mem::take(again))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_a_minute_with_how_often_it_was() {
        let start = Instant::now();
        let mut repetitions = Repetitions::default();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(repetitions.tell("forbidden", at(0)), Some(0));
        for second in 1..60 {
            assert_eq!(repetitions.tell("forbidden", at(second)), None);
        }
        assert_eq!(repetitions.tell("another", at(59)), Some(0));
        assert_eq!(repetitions.tell("forbidden", at(60)), Some(59));
        assert_eq!(repetitions.tell("forbidden", at(61)), None);
        assert_eq!(repetitions.tell("forbidden", at(3600)), Some(1));
    }

    #[test]
    fn one_message_does_not_reset_the_count_of_another() {
        let start = Instant::now();
        let mut repetitions = Repetitions::default();
        let at = |seconds| start + Duration::from_secs(seconds);
        repetitions.tell("forbidden", at(0));
        repetitions.tell("forbidden", at(1));
        assert_eq!(repetitions.tell("another", at(100)), Some(0));
        assert_eq!(repetitions.tell("forbidden", at(101)), Some(1));
    }

    #[test]
    fn neither_what_is_remembered_nor_what_is_told_grows_without_end() {
        let start = Instant::now();
        let mut repetitions = Repetitions::default();
        let told = (0..10 * CAPACITY)
            .filter(|index| repetitions.tell(&index.to_string(), start).is_some());
        assert_eq!(told.count(), CAPACITY + 1);
        assert_eq!(repetitions.told.len(), CAPACITY + 1);
        let later = start + 2 * INTERVAL;
        assert_eq!(repetitions.tell("new", later), Some(0));
        assert_eq!(repetitions.tell("new", later), None);
        assert_eq!(repetitions.told.len(), 1);
    }
}
