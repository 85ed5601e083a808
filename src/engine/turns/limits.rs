//! How many writes the API server is asked for: as many at a time as it bears, and no more a second than it was said.
//!
//! The number at a time follows "additive increase, multiplicative decrease" (RFC 5681, section 3.1): each answer that says
//! "too many", "not now" or nothing at all halves it, once for all writes that were under way together, and makes all wait
//! for a common pause; each full round of answers adds one. The number a second is a token bucket, as in
//! `k8s.io/client-go/util/flowcontrol`.

use std::time::{Duration, Instant};

use super::backoff::{Backoff, Pauses};

/// The common pauses, where the API server does not say for how long.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(100), Duration::from_secs(10));
/// The longest that the API server is obeyed at once. It may say so again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How many writes there may be a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Writes a second, above 0.
    pub per_second: f64,
    /// How many may come at once, 1 or more.
    pub burst: u32,
}

/// Whether a write may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may.
    Now,
    /// Not before this time.
    At(Instant),
    /// Not before another has been answered.
    AfterAnother,
}

/// The limit that all writes share.
#[derive(Debug)]
pub struct WriteLimits {
    ceiling: f64,
    /// How many writes may be under way; from 1 to the ceiling.
    window: f64,
    /// When the window was last cut.
    cut: Option<Instant>,
    retry: Backoff,
    /// The end of the common pause.
    paused: Option<Instant>,
    bucket: Option<WriteBucket>,
}

impl WriteLimits {
    /// At most so many writes at a time, 1 or more, and so many a second where that is limited.
    #[must_use]
    pub fn new(at_a_time: u16, rate: Option<Rate>) -> Self {
        let ceiling = f64::from(at_a_time.max(1));
        Self {
            ceiling,
            window: ceiling,
            cut: None,
            retry: Backoff::default(),
            paused: None,
            bucket: rate.map(WriteBucket::new),
        }
    }

    /// Whether another write may be made while so many are under way.
    #[must_use]
    pub fn turn(&self, under_way: usize, now: Instant) -> Turn {
        if let Some(at) = self.paused.filter(|at| now < *at) {
            return Turn::At(at);
        }
        if under_way >= self.at_a_time() {
            return Turn::AfterAnother;
        }
        match self.bucket.as_ref().map(|bucket| bucket.next(now)) {
            Some(at) if now < at => Turn::At(at),
            _ => Turn::Now,
        }
    }

    /// Notes that a write is made.
    pub fn made(&mut self, now: Instant) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now);
        }
    }

    /// Notes that a write that was made at this time has been dealt with, be it refused.
    pub fn dealt_with(&mut self, made: Instant) {
        // What was under way when the window was cut says nothing about how it is now.
        if self.cut.is_none_or(|cut| cut <= made) {
            self.window = (self.window + 1.0 / self.window).min(self.ceiling);
            self.retry = Backoff::default();
        }
    }

    /// Notes that the API server did not deal with a write that was made at this time: it has too much to do, or fails, or
    /// does not answer. It may have said when to come again.
    pub fn overloaded(&mut self, made: Instant, come_again: Option<Duration>, now: Instant) {
        let is_known = self.cut.is_some_and(|cut| made < cut);
        if !is_known {
            self.window = (self.window / 2.0).max(1.0);
            self.cut = Some(now);
        }
        let until = match come_again {
            Some(wait) => now + wait.min(LONGEST_WAIT),
            None if is_known => return,
            None => self.retry.failed(PAUSES, now),
        };
        self.paused = self.paused.max(Some(until));
    }

    /// How many writes may be under way at a time, 1 or more.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the window is between 1 and 65,535"
    )]
    #[must_use]
    pub fn at_a_time(&self) -> usize {
        // A window that is short of a whole number by the error of adding up fractions counts as that.
        (self.window + 1e-6) as usize
    }
}

/// A bucket of tokens that fills by time passed.
#[derive(Debug)]
struct WriteBucket {
    rate: Rate,
    /// How many tokens there were when one was last taken.
    level: f64,
    /// When that was.
    taken: Option<Instant>,
}

impl WriteBucket {
    fn new(rate: Rate) -> Self {
        Self {
            rate,
            level: f64::from(rate.burst),
            taken: None,
        }
    }

    fn level(&self, now: Instant) -> f64 {
        let passed = self
            .taken
            .map_or(Duration::ZERO, |taken| now.duration_since(taken));
        (self.level + passed.as_secs_f64() * self.rate.per_second).min(f64::from(self.rate.burst))
    }

    /// When there is a whole token.
    fn next(&self, now: Instant) -> Instant {
        let missing = (1.0 - self.level(now)).max(0.0);
        // A rate so low that the time cannot be told is asked about again after a day.
        let wait = Duration::try_from_secs_f64(missing / self.rate.per_second);
        let day = Duration::from_secs(24 * 60 * 60);
        now + wait.unwrap_or(day).min(day)
    }

    /// Takes a token. What cannot wait may take one that is not there yet.
    fn take(&mut self, now: Instant) {
        self.level = self.level(now) - 1.0;
        self.taken = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    #[test]
    fn writes_are_limited_only_by_their_number_while_all_is_well() {
        let now = Instant::now();
        let mut limits = WriteLimits::new(64, None);
        assert_eq!(limits.turn(63, now), Turn::Now);
        assert_eq!(limits.turn(64, now), Turn::AfterAnother);
        for _ in 0..1000 {
            limits.made(now);
            limits.dealt_with(now);
        }
        assert_eq!(limits.at_a_time(), 64);
        assert_eq!(limits.turn(63, now), Turn::Now);
    }

    #[test]
    fn writes_that_are_turned_away_together_count_once() {
        let start = Instant::now();
        let mut limits = WriteLimits::new(64, None);
        // Well before the shortest pause is over.
        for answer in 1..=40 {
            limits.overloaded(start, None, start + answer * MS);
        }
        assert_eq!(limits.at_a_time(), 32);
        let Turn::At(again) = limits.turn(0, start + 40 * MS) else {
            panic!("no pause");
        };
        assert!(again <= start + 101 * MS, "{:?}", again - start);
        assert_eq!(limits.turn(31, again), Turn::Now);
        assert_eq!(limits.turn(32, again), Turn::AfterAnother);
        // One that was under way then says nothing about how it is now.
        limits.dealt_with(start);
        assert_eq!(limits.at_a_time(), 32);
        // One that was made as soon as that was known does.
        limits.overloaded(start + MS, None, again);
        assert_eq!(limits.at_a_time(), 16);
    }

    #[test]
    fn a_pause_that_the_api_server_asks_for_is_not_cut_short_by_a_later_one() {
        let now = Instant::now();
        let mut limits = WriteLimits::new(64, None);
        limits.overloaded(now, Some(10 * S), now);
        limits.overloaded(now + S, None, now + S);
        assert_eq!(limits.turn(0, now + 2 * S), Turn::At(now + 10 * S));
    }

    #[test]
    fn pauses_begin_anew_once_something_has_been_dealt_with() {
        let start = Instant::now();
        let mut limits = WriteLimits::new(64, None);
        let fail = |limits: &mut WriteLimits, now: Instant| {
            limits.overloaded(now, None, now);
            match limits.turn(0, now) {
                Turn::At(at) => at - now,
                other => panic!("{other:?}"),
            }
        };
        let pauses: Vec<_> = (0..8)
            .map(|time| fail(&mut limits, start + time * 20 * S))
            .collect();
        assert!(pauses[0] <= 100 * MS && pauses[7] >= 5 * S, "{pauses:?}");
        let later = start + 600 * S;
        limits.dealt_with(later);
        assert!(fail(&mut limits, later) <= 100 * MS);
    }

    #[test]
    fn a_rate_too_low_to_be_told_is_asked_about_again_after_a_day() {
        let now = Instant::now();
        let day = 24 * 3600 * S;
        for (per_second, wait) in [(0.5, 2 * S), (1e-9, day), (f64::MIN_POSITIVE, day)] {
            let mut limits = WriteLimits::new(
                64,
                Some(Rate {
                    per_second,
                    burst: 1,
                }),
            );
            assert_eq!(limits.turn(0, now), Turn::Now);
            limits.made(now);
            assert_eq!(limits.turn(0, now), Turn::At(now + wait), "{per_second}");
        }
    }

    #[test]
    fn the_number_falls_to_one_and_pauses_grow_while_nothing_gets_through() {
        let mut now = Instant::now();
        let mut limits = WriteLimits::new(64, None);
        let mut requests = 0;
        let end = now + 60 * S;
        while now < end {
            match limits.turn(0, now) {
                Turn::Now => {
                    limits.made(now);
                    limits.overloaded(now, None, now + MS);
                    requests += 1;
                    now += MS;
                }
                Turn::At(at) => now = at,
                Turn::AfterAnother => panic!("none is under way"),
            }
        }
        assert_eq!(limits.at_a_time(), 1);
        assert!((8..20).contains(&requests), "{requests} in a minute");
    }

    #[test]
    fn the_number_grows_back_by_one_a_round() {
        let now = Instant::now();
        let mut limits = WriteLimits::new(8, None);
        for round in 0..3 {
            limits.overloaded(now + round * S, None, now + round * S);
        }
        assert_eq!(limits.at_a_time(), 1);
        let later = now + 10 * S;
        let mut answers = 0;
        while limits.at_a_time() < 8 {
            limits.dealt_with(later);
            answers += 1;
        }
        // 1 + 2 + ... + 7, and a little more for growing in the midst of a round.
        assert!((28..36).contains(&answers), "{answers}");
    }

    #[test]
    fn the_api_server_says_when_to_come_again() {
        let before = Instant::now();
        let now = before + S;
        let mut limits = WriteLimits::new(64, None);
        limits.overloaded(now, Some(3 * S), now);
        assert_eq!(limits.turn(0, now), Turn::At(now + 3 * S));
        // The longest counts, also among those that were under way together.
        limits.overloaded(before, Some(5 * S), now + MS);
        limits.overloaded(before, Some(S), now + MS);
        limits.overloaded(before, None, now + MS);
        assert_eq!(limits.turn(0, now + S), Turn::At(now + 5 * S + MS));
        assert_eq!(limits.at_a_time(), 32);
        assert_eq!(limits.turn(0, now + 5 * S + MS), Turn::Now);
        // Nobody waits for hours because of one answer.
        limits.overloaded(now + 6 * S, Some(3600 * S), now + 6 * S);
        assert_eq!(limits.turn(0, now + 7 * S), Turn::At(now + 66 * S));
    }

    #[test]
    fn no_more_writes_a_second_than_were_said() {
        let start = Instant::now();
        let rate = Rate {
            per_second: 10.0,
            burst: 5,
        };
        let mut limits = WriteLimits::new(64, Some(rate));
        let mut now = start;
        let mut writes = 0;
        while now < start + 10 * S {
            match limits.turn(0, now) {
                Turn::Now => {
                    limits.made(now);
                    writes += 1;
                }
                Turn::At(at) => now = at.max(now + Duration::from_nanos(1)),
                Turn::AfterAnother => panic!("none is under way"),
            }
        }
        assert!((104..=106).contains(&writes), "{writes}");
        // It does not save up more than a burst.
        let later = now + 3600 * S;
        let mut burst = 0;
        while limits.turn(0, later) == Turn::Now {
            limits.made(later);
            burst += 1;
        }
        assert_eq!(burst, 5);
    }
}
