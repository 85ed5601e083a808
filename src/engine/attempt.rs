//! Attempts to write one thing: how they ended, and when the next one may be made. This is the retry policy of every write.
//!
//! Contention: someone keeps undoing a change. A thing is changed one way and back by turns, so a change that is made twice in a
//! row was undone in between. The controller repeats it at once a few times a minute, then with growing pauses, until they stop.
//! So it does, over half an hour, with gatings by a component that comes and goes with the taint.

use std::time::{Duration, Instant};

use super::error::RequestError;
use nodegate_core::backoff::{Backoff, Pauses};
use nodegate_core::object::ObjectKey;

/// This many repeats of a change within [`WINDOW`] are contention.
const TOLERATED: u32 = 4;
const WINDOW: Duration = Duration::from_secs(60);
const CONTENDED: Pauses = Pauses::between(Duration::from_secs(5), Duration::from_secs(5 * 60));
/// The same for gatings: labels that have gone hold a node for five minutes more.
const GATED: Pauses = Pauses::between(Duration::from_secs(20 * 60), Duration::from_secs(4 * 3600));
/// After a conflict: a few retries are all but immediate.
const CONFLICT: Pauses = Pauses::between(Duration::from_millis(1), Duration::from_secs(30));

/// A change: a hash of what it sets; `None` if it removes that.
pub(super) type Change = Option<u64>;

#[derive(Debug, Default)]
pub struct Attempt {
    pub under_way: bool,
    pub(crate) backoff: Backoff,
    /// Refusals in a row.
    pub refusals: u32,
    pub(super) last: Option<(Change, Instant)>,
    /// How often the last change was repeated...
    repeats: u32,
    /// ...since this time.
    since: Option<Instant>,
    contended_by: Option<Box<str>>,
    /// Whether each change is a repeat: it is made only after it was taken back.
    gates: bool,
}

/// How often someone else has undone a change by the time it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undone {
    pub times: u32,
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

    /// Notes that a rule made this change. Returns `Some` if it repeats the last one, which had been undone.
    pub fn made(&mut self, change: Change, rule: &str, now: Instant) -> Option<Undone> {
        if self.has_stood(now) {
            *self = Self {
                gates: self.gates,
                ..Self::default()
            };
        }
        let is_repeat = self.gates || self.last.is_some_and(|(last, _)| last == change);
        self.last = Some((change, now));
        if !is_repeat {
            return None;
        }
        let is_over = self
            .since
            .is_none_or(|since| now.duration_since(since) > self.window());
        if is_over && self.contended_by.is_none() {
            self.since = Some(now);
            self.repeats = 0;
        }
        self.repeats += 1;
        let mut pause = Duration::ZERO;
        if self.repeats >= TOLERATED {
            let pauses = if self.gates { GATED } else { CONTENDED };
            pause = pauses.after(self.repeats + 1 - TOLERATED, now);
            self.backoff.retry_at(now + pause);
            self.contended_by = Some(rule.into());
        }
        Some(Undone {
            times: self.repeats,
            within: self.since.map_or(Duration::ZERO, |since| now - since),
            pause,
        })
    }

    /// Within which time repeats are contention.
    fn window(&self) -> Duration {
        WINDOW * if self.gates { 30 } else { 1 }
    }

    /// When contention is over if the last change stands until then.
    pub(super) fn stands_by(&self) -> Option<Instant> {
        let (_, made) = self.last?;
        let until = self.backoff.not_before(made);
        let pause = until.map_or(Duration::ZERO, |at| at - made);
        Some(made + self.window().max(2 * pause))
    }

    fn has_stood(&self, now: Instant) -> bool {
        self.stands_by().is_none_or(|at| now >= at)
    }
}

/// A part of a write that can be refused or undone by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// A taint (`key:effect`), with its records if the write has both.
    Taint(String),
    /// The annotations of a taint alone, or all that belong to no taint.
    Records(Option<String>),
    Annotation(String),
    Condition(Box<str>),
    /// Gatings of the node by this taint for lack of a Ready pod of this `DaemonSet`.
    Gating(String, ObjectKey),
}

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
            let attempt = Attempt {
                gates: matches!(part, Part::Gating(..)),
                ..Attempt::default()
            };
            self.0.push((part.clone(), attempt));
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

    pub(super) fn refusals(&self, part: &Part) -> u32 {
        self.get(part).map_or(0, |attempt| attempt.refusals)
    }

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

    /// The rules whose changes are contended, each with the part and the attempts at it.
    pub(super) fn contended(&self, now: Instant) -> impl Iterator<Item = (&str, &Part, &Attempt)> {
        let contended = self.0.iter().filter(move |(_, it)| !it.has_stood(now));
        contended.filter_map(|(part, it)| Some((it.contended_by.as_deref()?, part, it)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const ADDED: Change = Some(0);

    fn taint() -> Part {
        Part::Taint("gate:NoSchedule".into())
    }

    fn add(parts: &mut Parts, now: Instant) {
        parts.get_mut(&taint()).made(ADDED, "r", now);
    }

    fn not_before(parts: &Parts, now: Instant) -> Option<Instant> {
        parts.not_before(&taint(), ADDED, now)
    }

    fn contended(parts: &Parts, now: Instant) -> Vec<&str> {
        parts.contended(now).map(|it| it.0).collect()
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
    fn a_fourth_gating_by_one_component_within_half_an_hour_waits_longer_each_time() {
        let part = Part::Gating("gate:NoSchedule".into(), ObjectKey::new("n10", "plugin"));
        let gatings = |every: u32| {
            let (mut now, mut parts) = (Instant::now(), Parts::default());
            let pauses = (0..6).map(|_| {
                parts.forget(|_| false, |_, _| false, now);
                parts.get_mut(&part).made(ADDED, "r", now);
                let until = parts.not_before(&part, ADDED, now);
                let pause = until.map_or(Duration::ZERO, |it| it - now);
                now = until.unwrap_or(now) + every * S;
                pause.as_secs() / 60
            });
            pauses.collect::<Vec<_>>()
        };
        let pauses = gatings(6 * 60);
        assert_eq!(pauses[..3], [0, 0, 0]);
        assert!((10..=20).contains(&pauses[3]), "{pauses:?}");
        assert!((40..=80).contains(&pauses[5]), "{pauses:?}");
        assert_eq!(gatings(16 * 60), [0; 6]);
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
        assert!(!is_forgotten(&mut parts, 59));
        assert!(is_forgotten(&mut parts, 60));
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
