//! How many requests of a class may be under way at a time: as many as the API server accepts.
//!
//! The number follows "additive increase, multiplicative decrease" (RFC 5681, section 3.1). A response that says "too many" or
//! "not now" halves it, once for all requests that were under way together, and starts a common pause for the class. So do failures,
//! or missing responses, of writes of two objects: one alone can be that object's fault. Each full round of answers adds one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nodegate_core::backoff::{Backoff, Pauses};

/// The common pauses, if the API server asks for none.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(100), Duration::from_secs(10));

/// The longest pause that the API server may ask for at once. It may ask again.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Failures of two objects within this time, with no other answer in between, are overload.
const TOGETHER: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct ClassLimit {
    ceiling: f64,
    /// How many may be under way, from 1 to the ceiling.
    window: f64,
    cut: Option<Instant>,
    retry: Backoff,
    /// The end of the common pause.
    paused: Option<Instant>,
    /// The object whose write failed last, and when; `None` after any other answer.
    suspect: Option<(Arc<str>, Instant)>,
}

impl ClassLimit {
    /// A limit of this many requests at a time, 1 or more.
    pub(super) fn new(at_a_time: u16) -> Self {
        let ceiling = f64::from(at_a_time.max(1));
        Self {
            ceiling,
            window: ceiling,
            ..Self::default()
        }
    }

    pub(super) fn not_before(&self, now: Instant) -> Option<Instant> {
        self.paused.filter(|at| now < *at)
    }

    /// Notes that a request that was made at this time was handled, or refused.
    pub(super) fn handled(&mut self, made: Instant) {
        self.suspect = None;
        // Requests from before the window was cut say nothing about the present load.
        if self.cut.is_none_or(|cut| cut <= made) {
            self.window = (self.window + 1.0 / self.window).min(self.ceiling);
            self.retry = Backoff::default();
        }
    }

    /// Notes a request that failed or got no answer in time: overload if two objects' writes fail together, or it writes no object.
    pub(super) fn failed(&mut self, object: Option<&Arc<str>>, made: Instant, now: Instant) {
        let is_alone = object.is_some_and(|object| {
            let before = self.suspect.replace((object.clone(), now));
            before.is_none_or(|(other, at)| other == *object || at + TOGETHER < now)
        });
        if !is_alone {
            self.overloaded(made, None, now);
        }
    }

    /// Notes that a request that was made at this time was not handled because of overload. The API server may have asked to `wait`.
    pub(super) fn overloaded(&mut self, made: Instant, wait: Option<Duration>, now: Instant) {
        let is_known = self.cut.is_some_and(|cut| made < cut);
        if !is_known {
            self.window = (self.window / 2.0).max(1.0);
            self.cut = Some(now);
        }
        let until = match wait {
            Some(wait) => now + wait.min(LONGEST_WAIT),
            None if is_known => return,
            None => self.retry.failed(PAUSES, now),
        };
        self.paused = self.paused.max(Some(until));
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the window is between 1 and 65,535"
    )]
    pub(super) fn at_a_time(&self) -> usize {
        // Rounding errors of added fractions must not cost a request.
        (self.window + 1e-6) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    #[test]
    fn writes_that_are_turned_away_together_count_once() {
        let start = Instant::now();
        let mut limits = ClassLimit::new(64);
        // Well within the shortest pause.
        for answer in 1..=40 {
            limits.overloaded(start, None, start + answer * MS);
        }
        assert_eq!(limits.at_a_time(), 32);
        let again = limits.not_before(start + 40 * MS).expect("a pause");
        assert!(again <= start + 101 * MS, "{:?}", again - start);
        assert_eq!(limits.not_before(again), None);
        // An answer to a request from before the cut says nothing about the present load.
        limits.handled(start);
        assert_eq!(limits.at_a_time(), 32);
        // An answer to a request that was made right after the cut does.
        limits.overloaded(start + MS, None, again);
        assert_eq!(limits.at_a_time(), 16);
    }

    #[test]
    fn pauses_start_over_once_a_request_was_handled() {
        let start = Instant::now();
        let mut limits = ClassLimit::new(64);
        let fail = |limits: &mut ClassLimit, now: Instant| {
            limits.overloaded(now, None, now);
            limits.not_before(now).expect("a pause") - now
        };
        let pauses: Vec<_> = (0..8)
            .map(|time| fail(&mut limits, start + time * 20 * S))
            .collect();
        assert!(pauses[0] <= 100 * MS && pauses[7] >= 5 * S, "{pauses:?}");
        let later = start + 600 * S;
        limits.handled(later);
        assert!(fail(&mut limits, later) <= 100 * MS);
    }

    #[test]
    fn the_number_grows_back_by_one_a_round() {
        let now = Instant::now();
        let mut limits = ClassLimit::new(8);
        for round in 0..3 {
            limits.overloaded(now + round * S, None, now + round * S);
        }
        assert_eq!(limits.at_a_time(), 1);
        let later = now + 10 * S;
        let mut answers = 0;
        while limits.at_a_time() < 8 {
            limits.handled(later);
            answers += 1;
        }
        // 1 + 2 + ... + 7, and a little more, because the window grows during a round.
        assert!((28..36).contains(&answers), "{answers}");
    }

    #[test]
    fn the_api_server_says_when_to_retry() {
        let before = Instant::now();
        let now = before + S;
        let mut limits = ClassLimit::new(64);
        limits.overloaded(now, Some(3 * S), now);
        assert_eq!(limits.not_before(now), Some(now + 3 * S));
        // The longest pause counts, even among requests that were under way together.
        limits.overloaded(before, Some(5 * S), now + MS);
        limits.overloaded(before, Some(S), now + MS);
        limits.overloaded(before, None, now + MS);
        assert_eq!(limits.not_before(now + S), Some(now + 5 * S + MS));
        assert_eq!(limits.at_a_time(), 32);
        assert_eq!(limits.not_before(now + 5 * S + MS), None);
        // One response cannot stop the controller for hours.
        limits.overloaded(now + 6 * S, Some(3600 * S), now + 6 * S);
        assert_eq!(limits.not_before(now + 7 * S), Some(now + 66 * S));
    }
}
