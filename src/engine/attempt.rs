//! Attempts to write one thing: how they ended, and when the next one may be made. This is the retry policy of every write.
//!
//! Pauses double after each failure, and each is cut short by up to half, so that things that failed together are not retried
//! together. The pauses are `backon`'s.
//!
//! Contention: someone keeps undoing a change. A thing is changed one way and back by turns, so a change that is made twice in a
//! row was undone in between. The controller repeats it at once a few times a minute, then with growing pauses, until they stop.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};

use super::error::RequestError;
use super::map::hash;
use crate::plan::TaintId;

/// This many repeats of a change within [`WINDOW`] are contention.
const TOLERATED: u32 = 4;
const WINDOW: Duration = Duration::from_secs(60);
/// The pauses before further repeats.
const CONTENDED: Pauses = Pauses::between(Duration::from_secs(5), Duration::from_secs(5 * 60));
/// After a conflict: a few retries are all but immediate.
const CONFLICT: Pauses = Pauses::between(Duration::from_millis(1), Duration::from_secs(30));

/// A first pause and a longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    first: Duration,
    longest: Duration,
}

impl Pauses {
    /// After a refusal: an early retry is likely to be refused too.
    pub const REFUSED: Self = Self::between(Duration::from_millis(50), Duration::from_secs(30));
    /// After an unreachable API server, whose return must be noticed soon.
    pub const UNREACHABLE: Self = Self::between(Duration::from_millis(50), Duration::from_secs(2));

    /// Pauses that double from `first` to `longest`.
    pub const fn between(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The pause after this many failures in a row, 1 or more. The jitter depends on the start time, so the same inputs have
    /// the same effects.
    fn after(self, failures: u32, now: Instant) -> Duration {
        // The library's jitter only adds, up to the same again.
        let mut pauses = ExponentialBuilder::new()
            .with_min_delay(self.first / 2)
            .with_max_delay(self.longest / 2)
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(hash((now, failures)))
            .build();
        // By then, every pause is the longest.
        let before = failures.clamp(1, u32::BITS) - 1;
        pauses.nth(before as usize).unwrap_or(self.longest)
    }
}

/// When something that failed may be retried.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backoff {
    failures: u32,
    /// The kind of pauses for which the failures were counted.
    pauses: Option<Pauses>,
    not_before: Option<Instant>,
}

impl Backoff {
    /// Notes a failure; returns when to retry. A failure with other pauses than before has another cause, and starts with its
    /// first pause.
    pub(crate) fn failed(&mut self, pauses: Pauses, now: Instant) -> Instant {
        if self.pauses.replace(pauses) != Some(pauses) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let at = now + pauses.after(self.failures, now);
        self.not_before = Some(at);
        at
    }

    pub(crate) fn retry_at(&mut self, at: Instant) {
        self.not_before = Some(at);
    }

    /// When the next try is due, which may be past; `None` if nothing failed.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.not_before
    }

    /// When to retry; `None` for now.
    pub(crate) fn not_before(&self, now: Instant) -> Option<Instant> {
        self.not_before.filter(|at| now < *at)
    }
}

/// A change: a hash of what it sets; `None` if it removes that.
pub(super) type Change = Option<u64>;

/// The attempts at one thing that is written.
#[derive(Debug, Default)]
pub struct Attempt {
    pub under_way: bool,
    /// When to make the next one, after a failure.
    pub(crate) backoff: Backoff,
    /// Refusals in a row.
    pub refusals: u32,
    /// The change that was made last, and when.
    last: Option<(Change, Instant)>,
    /// How often that change was repeated...
    repeats: u32,
    /// ...since this time.
    since: Option<Instant>,
    /// The rule whose change is contended.
    contended_by: Option<Box<str>>,
}

/// How often someone else has undone a change by the time it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undone {
    pub times: u32,
    /// The time that it took.
    pub within: Duration,
    /// How long the change waits before it is repeated again: zero while this is tolerated.
    pub pause: Duration,
}

impl Undone {
    /// Whether contention starts.
    pub fn is_news(&self) -> bool {
        self.times == TOLERATED
    }
}

impl Attempt {
    pub fn ended(&mut self, error: Option<&RequestError>, now: Instant) {
        self.under_way = false;
        let Some(error) = error else {
            self.refusals = 0;
            self.backoff = Backoff::default();
            return;
        };
        self.refusals += u32::from(error.is_refusal());
        let pauses = match error {
            RequestError::Unreachable(_) | RequestError::Throttled { .. } => Pauses::UNREACHABLE,
            RequestError::Conflict => CONFLICT,
            _ => Pauses::REFUSED,
        };
        self.backoff.failed(pauses, now);
    }

    /// Retries at this time or later.
    pub fn wait_until(&mut self, at: Instant) {
        self.backoff.not_before = self.backoff.not_before.max(Some(at));
    }

    /// Notes that a rule made this change. Returns `Some` if it repeats the last one, which had been undone.
    pub fn made(&mut self, change: Change, rule: &str, now: Instant) -> Option<Undone> {
        if self.has_stood(now) {
            *self = Self::default();
        }
        let is_repeat = self.last.is_some_and(|(last, _)| last == change);
        self.last = Some((change, now));
        if !is_repeat {
            return None;
        }
        let is_over = self
            .since
            .is_none_or(|since| now.duration_since(since) > WINDOW);
        if is_over && self.contended_by.is_none() {
            self.since = Some(now);
            self.repeats = 0;
        }
        self.repeats += 1;
        let mut pause = Duration::ZERO;
        if self.repeats >= TOLERATED {
            pause = CONTENDED.after(self.repeats + 1 - TOLERATED, now);
            self.backoff.retry_at(now + pause);
            self.contended_by = Some(rule.into());
        }
        Some(Undone {
            times: self.repeats,
            within: self.since.map_or(Duration::ZERO, |since| now - since),
            pause,
        })
    }

    /// Whether the last change has stood for so long that contention is over.
    fn has_stood(&self, now: Instant) -> bool {
        self.last.is_none_or(|(_, made)| {
            let until = self.backoff.not_before(made);
            let pause = until.map_or(Duration::ZERO, |at| at - made);
            now.duration_since(made) > WINDOW.max(2 * pause)
        })
    }
}

/// A part of a write that can be refused or undone by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A taint, with its records if the write has both.
    Taint(TaintId),
    /// The annotations of a taint alone, or all that belong to no taint.
    Records(Option<TaintId>),
    Annotation(String),
    Condition(Box<str>),
}

/// The attempts at the parts of a write, as long as they matter.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<(Part, Attempt)>);

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, part: &Part) -> Option<&Attempt> {
        let mut known = self.0.iter();
        known.find(|(it, _)| it == part).map(|(_, attempt)| attempt)
    }

    pub(super) fn get_mut(&mut self, part: &Part) -> &mut Attempt {
        let known = self.0.iter().position(|(it, _)| it == part);
        let known = known.unwrap_or_else(|| {
            self.0.reserve_exact(1);
            self.0.push((part.clone(), Attempt::default()));
            self.0.len() - 1
        });
        &mut self.0[known].1
    }

    /// Forgets changes that have stood for long or were rightly undone, and refusals of parts that have not been wanted for a
    /// while: who makes a write wanted by turns must not have it tried more often.
    pub(super) fn forget(
        &mut self,
        is_wanted: impl Fn(&Part) -> bool,
        is_right: impl Fn(&Part, Change) -> bool,
        now: Instant,
    ) {
        self.0.retain_mut(|(part, attempt)| {
            let due = attempt.backoff.due();
            let is_long_ago = due.is_none_or(|due| due + WINDOW < now);
            if attempt.refusals > 0 && is_long_ago && !is_wanted(part) {
                attempt.ended(None, now);
            }
            let is_right = attempt.last.is_some_and(|(last, _)| is_right(part, last));
            attempt.refusals > 0 || !(is_right || attempt.has_stood(now))
        });
    }

    pub(super) fn are_refused(&self) -> bool {
        self.0.iter().any(|(_, attempt)| attempt.refusals > 0)
    }

    /// How often in a row a part was refused.
    pub(super) fn refusals(&self, part: &Part) -> u32 {
        self.get(part).map_or(0, |attempt| attempt.refusals)
    }

    /// Lets all that was refused be retried at this time.
    pub(super) fn retry_at(&mut self, at: Instant) {
        let refused = self.0.iter_mut().filter(|(_, it)| it.refusals > 0);
        refused.for_each(|(_, attempt)| attempt.backoff.retry_at(at));
    }

    /// When this change of a part may be repeated; `None` for now. Contention holds up the same change alone.
    pub(super) fn not_before(&self, part: &Part, change: Change, now: Instant) -> Option<Instant> {
        let is_same = |it: &&Attempt| it.last.is_some_and(|(last, _)| last == change);
        self.get(part).filter(is_same)?.backoff.not_before(now)
    }

    /// When a part that was refused may be retried; `None` for now.
    pub(super) fn refused_until(&self, part: &Part, now: Instant) -> Option<Instant> {
        let is_refused = |it: &&Attempt| it.refusals > 0;
        self.get(part).filter(is_refused)?.backoff.not_before(now)
    }

    /// The rules whose changes are contended.
    pub(super) fn contended(&self, now: Instant) -> impl Iterator<Item = &str> {
        let contended = self.0.iter().filter(move |(_, it)| !it.has_stood(now));
        contended.filter_map(|(_, it)| it.contended_by.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        assert_eq!(backoff.not_before(now), None);
        for nominal in [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000] {
            let at = backoff.failed(Pauses::UNREACHABLE, now);
            let pause = at - now;
            let nominal = Duration::from_millis(nominal);
            let rounding = Duration::from_micros(10);
            assert!(
                pause + rounding >= nominal / 2 && pause <= nominal + rounding,
                "{pause:?} of {nominal:?}"
            );
            assert_eq!(backoff.not_before(now), Some(at));
            assert_eq!(backoff.not_before(at), None);
            now = at;
        }
    }

    #[test]
    fn retries_of_writes_that_fail_together_are_spread() {
        let start = Instant::now();
        let pauses: crate::engine::map::Set<Duration> = (0..100)
            .map(|index| {
                let now = start + Duration::from_nanos(index);
                Backoff::default().failed(Pauses::REFUSED, now) - now
            })
            .collect();
        assert!(pauses.len() > 90, "{}", pauses.len());
    }

    const S: Duration = Duration::from_secs(1);
    const ADDED: Change = Some(0);

    fn taint() -> Part {
        Part::Taint(TaintId {
            key: "gate".into(),
            effect: String::new(),
        })
    }

    fn add(parts: &mut Parts, now: Instant) {
        parts.get_mut(&taint()).made(ADDED, "r", now);
    }

    fn not_before(parts: &Parts, now: Instant) -> Option<Instant> {
        parts.not_before(&taint(), ADDED, now)
    }

    fn contended(parts: &Parts, now: Instant) -> Vec<&str> {
        parts.contended(now).collect()
    }

    /// Makes a change again as soon as allowed, against someone who undoes it at once; returns when it was made.
    fn follow(parts: &mut Parts, start: Instant, time: Duration) -> Vec<Instant> {
        let mut now = start;
        let mut writes = Vec::new();
        while now < start + time {
            add(parts, now);
            writes.push(now);
            let next = not_before(parts, now);
            now = next.unwrap_or(now) + Duration::from_millis(10);
        }
        writes
    }

    #[test]
    fn a_change_that_others_keep_undoing_is_repeated_ever_more_slowly() {
        let start = Instant::now();
        let mut parts = Parts::default();
        let writes = follow(&mut parts, start, 3600 * S);
        assert!((17..40).contains(&writes.len()), "{}", writes.len());
        let in_the_first_minute = writes.iter().filter(|at| **at < start + 60 * S);
        assert!(in_the_first_minute.count() <= 5 + 6);
        let last = writes.last_chunk::<2>().unwrap();
        assert!(last[1] - last[0] >= 150 * S && last[1] - last[0] <= 301 * S);
        assert_eq!(contended(&parts, start + 3600 * S), ["r"]);
    }

    #[test]
    fn a_change_that_is_undone_now_and_then_is_repeated_at_once() {
        for (every, is_contended) in [(20, true), (25, false), (30, false)] {
            let start = Instant::now();
            let mut parts = Parts::default();
            for time in 0..40 {
                add(&mut parts, start + time * every * S);
            }
            let last = start + 39 * every * S;
            let waits = not_before(&parts, last).is_some();
            let seen = (waits, contended(&parts, last).len() == 1);
            assert_eq!(seen, (is_contended, is_contended), "every {every} s");
        }
    }

    #[test]
    fn a_change_that_has_stood_is_forgotten() {
        let start = Instant::now();
        let mut parts = Parts::default();
        let is_forgotten = |parts: &mut Parts, second: u32| {
            parts.forget(|_| false, |_, _| false, start + second * S);
            parts.is_empty()
        };
        add(&mut parts, start);
        assert!(!is_forgotten(&mut parts, 60));
        assert!(is_forgotten(&mut parts, 61));
        // A contended change stands once it has stood for twice its pause, if that is longer.
        follow(&mut parts, start, 3600 * S);
        assert!(!is_forgotten(&mut parts, 3700));
        assert!(is_forgotten(&mut parts, 4500));
    }

    #[test]
    fn a_refused_part_holds_up_itself_alone_until_it_has_not_been_wanted_for_long() {
        let now = Instant::now();
        let error = RequestError::Failed("no".into());
        let other = Part::Records(None);
        let mut parts = Parts::default();
        parts.get_mut(&taint()).ended(Some(&error), now);
        parts.forget(|_| false, |_, _| false, now);
        assert!(parts.are_refused());
        assert!(parts.refused_until(&taint(), now).is_some());
        assert_eq!(parts.refused_until(&other, now), None);
        parts.forget(|_| false, |_, _| false, now + 2 * WINDOW);
        assert!(!parts.are_refused());
        assert!(parts.is_empty());
    }

    #[test]
    fn the_kind_of_failure_decides_how_a_write_is_retried() {
        let message = String::new;
        let busy = RequestError::Throttled {
            message: message(),
            retry_after: None,
        };
        for (error, refusals, longest) in [
            (RequestError::Unreachable(message()), 0, 50),
            (busy, 0, 50),
            (RequestError::Conflict, 0, 1),
            (RequestError::Gone, 0, 50),
            (RequestError::Broken(message()), 1, 50),
            (RequestError::TimedOut(Duration::ZERO), 1, 50),
            (RequestError::Failed(message()), 1, 50),
        ] {
            let now = Instant::now();
            let mut attempt = Attempt {
                under_way: true,
                ..Attempt::default()
            };
            attempt.ended(Some(&error), now);
            assert!(!attempt.under_way);
            assert_eq!(attempt.refusals, refusals, "{error:?}");
            assert_eq!(error.is_refusal(), refusals == 1, "{error:?}");
            let pause = attempt.backoff.not_before(now).expect("a pause") - now;
            assert!(pause <= Duration::from_millis(longest), "{error:?}");
            attempt.ended(None, now);
            let left = (attempt.refusals, attempt.backoff.not_before(now));
            assert_eq!(left, (0, None));
        }
    }
}
