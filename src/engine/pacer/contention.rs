//! Contention: someone keeps undoing what a rule does to a taint of one node. The controller redoes the change at once a few
//! times a minute, then with growing pauses, until they stop.
//!
//! Taints are added and removed by turns, so a change that is made twice in a row was undone in between. A reversal that the
//! rules now want is not contention.

use std::time::{Duration, Instant};

use super::backoff::{Backoff, Pauses};

/// This many reversals within [`WINDOW`] are contention.
const TOLERATED: u32 = 4;
const WINDOW: Duration = Duration::from_secs(60);
/// The pauses before further changes.
const PAUSES: Pauses = Pauses::between(Duration::from_secs(5), Duration::from_secs(5 * 60));

/// The recent changes on one node; `T` identifies the taint, `C` the change.
#[derive(Debug)]
pub(crate) struct Contention<T, C> {
    records: Vec<ChangeRecord<T, C>>,
}

#[derive(Debug)]
struct ChangeRecord<T, C> {
    taint: T,
    change: C,
    /// When it was last made.
    made: Instant,
    /// Boxed, because changes are rarely undone.
    undone: Option<Box<Contest>>,
}

/// The reversals of a change.
#[derive(Debug)]
struct Contest {
    times: u32,
    since: Instant,
    /// The rule that makes it, once it is contended.
    contended: Option<String>,
    retry: Backoff,
}

/// What a reversal amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undone {
    /// Tolerated.
    Now,
    /// Contention starts.
    TooOften {
        /// The number of reversals.
        times: u32,
        /// The time that they took.
        within: Duration,
        /// How long the controller waits before it makes the change again.
        pause: Duration,
    },
    /// Contention continues.
    Again,
}

impl<T, C> Default for Contention<T, C> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
        }
    }
}

impl<T, C> ChangeRecord<T, C> {
    /// Whether it has stood for so long that contention is over.
    fn has_settled(&self, now: Instant) -> bool {
        let next_try = self
            .undone
            .as_ref()
            .and_then(|undone| undone.retry.not_before(self.made));
        let pause = next_try.map_or(Duration::ZERO, |at| at - self.made);
        now.duration_since(self.made) > WINDOW.max(2 * pause)
    }

    /// The rule that makes it, if it is contended.
    fn contended(&self, now: Instant) -> Option<&str> {
        let rule = self.undone.as_ref()?.contended.as_deref()?;
        (!self.has_settled(now)).then_some(rule)
    }
}

impl<T: PartialEq, C: PartialEq + Copy> Contention<T, C> {
    /// Notes a change to a taint by this rule. Returns `Some` if the same change had been undone.
    pub(crate) fn made(&mut self, taint: T, change: C, rule: &str, now: Instant) -> Option<Undone> {
        self.records.retain(|known| !known.has_settled(now));
        let known = self.records.iter().position(|known| known.taint == taint);
        let Some(known) = known else {
            self.records.reserve_exact(1);
            self.records.push(ChangeRecord {
                taint,
                change,
                made: now,
                undone: None,
            });
            return None;
        };
        let known = &mut self.records[known];
        known.made = now;
        if known.change != change {
            known.change = change;
            return None;
        }
        let undone = known.undone.get_or_insert_with(|| {
            Box::new(Contest {
                times: 0,
                since: now,
                contended: None,
                retry: Backoff::default(),
            })
        });
        if undone.contended.is_none() && now.duration_since(undone.since) > WINDOW {
            undone.since = now;
            undone.times = 0;
        }
        undone.times += 1;
        if undone.times < TOLERATED {
            return Some(Undone::Now);
        }
        let pause = undone.retry.failed(PAUSES, now) - now;
        if undone.contended.replace(rule.to_owned()).is_some() {
            return Some(Undone::Again);
        }
        Some(Undone::TooOften {
            times: undone.times,
            within: now.duration_since(undone.since),
            pause,
        })
    }

    /// Forgets changes that have stood for long, and reversals that the rules now want.
    pub(crate) fn forget(&mut self, now: Instant, is_as_it_should_be: impl Fn(&T, C) -> bool) {
        self.records.retain(|known| {
            !known.has_settled(now) && !is_as_it_should_be(&known.taint, known.change)
        });
    }

    /// Whether no recent change is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// When this change of a taint may be made again; `None` for now.
    pub(crate) fn not_before(
        &self,
        is_taint: impl Fn(&T) -> bool,
        change: C,
        now: Instant,
    ) -> Option<Instant> {
        let known = self.records.iter().find(|known| is_taint(&known.taint))?;
        known.contended(now).filter(|_| known.change == change)?;
        known.undone.as_ref()?.retry.not_before(now)
    }

    /// The rules whose changes are contended.
    pub(crate) fn contended(&self, now: Instant) -> impl Iterator<Item = &str> {
        self.records
            .iter()
            .filter_map(move |known| known.contended(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Kind {
        Added,
        Removed,
    }
    use Kind::{Added, Removed};

    const S: Duration = Duration::from_secs(1);

    fn made(
        contention: &mut Contention<&'static str, Kind>,
        change: Kind,
        now: Instant,
    ) -> Option<Undone> {
        contention.made("gate", change, "r", now)
    }

    /// Makes a change again as soon as allowed, against someone who undoes it at once; returns when it was made.
    fn follow(
        contention: &mut Contention<&'static str, Kind>,
        start: Instant,
        time: Duration,
    ) -> Vec<Instant> {
        let mut now = start;
        let mut writes = Vec::new();
        while now < start + time {
            made(contention, Added, now);
            writes.push(now);
            let next = contention.not_before(|taint| *taint == "gate", Added, now);
            now = next.unwrap_or(now) + Duration::from_millis(10);
        }
        writes
    }

    #[test]
    fn who_keeps_undoing_a_change_is_followed_ever_more_slowly() {
        let start = Instant::now();
        let mut contention = Contention::default();
        let writes = follow(&mut contention, start, 3600 * S);
        assert!((17..40).contains(&writes.len()), "{}", writes.len());
        let in_the_first_minute = writes.iter().filter(|at| **at < start + 60 * S);
        assert!(in_the_first_minute.count() <= 5 + 6);
        let last = writes.last_chunk::<2>().unwrap();
        assert!(last[1] - last[0] >= 150 * S && last[1] - last[0] <= 301 * S);
        assert_eq!(
            contention.contended(start + 3600 * S).collect::<Vec<_>>(),
            ["r"]
        );
    }

    #[test]
    fn it_is_told_once() {
        let now = Instant::now();
        let mut contention = Contention::default();
        let told: Vec<_> = (0..8)
            .map(|time| made(&mut contention, Added, now + time * S))
            .collect();
        assert_eq!(
            told[..4],
            [
                None,
                Some(Undone::Now),
                Some(Undone::Now),
                Some(Undone::Now)
            ]
        );
        let Some(Undone::TooOften {
            times: 4,
            within,
            pause,
        }) = told[4]
        else {
            panic!("{told:?}");
        };
        assert_eq!(within, 3 * S);
        assert!(pause <= 5 * S && pause >= 2 * S, "{pause:?}");
        assert_eq!(told[5..], [Some(Undone::Again); 3]);
    }

    #[test]
    fn a_change_now_and_then_is_followed_at_once() {
        let mut now = Instant::now();
        let mut contention = Contention::default();
        for _ in 0..100 {
            now += 30 * S;
            made(&mut contention, Removed, now);
            assert_eq!(contention.not_before(|_| true, Removed, now), None);
        }
        assert_eq!(contention.contended(now).count(), 0);
    }

    #[test]
    fn what_is_undone_counts_anew_after_a_minute() {
        for (every, is_contended) in [(20, true), (25, false)] {
            let start = Instant::now();
            let mut contention = Contention::default();
            for time in 0..40 {
                made(&mut contention, Added, start + time * every * S);
            }
            let last = start + 39 * every * S;
            assert_eq!(
                contention.contended(last).count() == 1,
                is_contended,
                "every {every} s"
            );
        }
    }

    #[test]
    fn nothing_is_remembered_of_what_has_stood() {
        let start = Instant::now();
        let mut contention = Contention::default();
        assert!(contention.is_empty());
        made(&mut contention, Added, start);
        assert!(!contention.is_empty());
        contention.forget(start + 60 * S, |_, _| false);
        assert!(!contention.is_empty());
        contention.forget(start + 61 * S, |_, _| false);
        assert!(contention.is_empty());
        // A contended change stands once it has stood for twice its pause, if that is longer.
        follow(&mut contention, start, 3600 * S);
        contention.forget(start + 3700 * S, |_, _| false);
        assert!(!contention.is_empty());
        contention.forget(start + 4500 * S, |_, _| false);
        assert!(contention.is_empty());
    }

    #[test]
    fn each_taint_is_contended_by_itself() {
        let now = Instant::now();
        let mut contention = Contention::default();
        for _ in 0..5 {
            made(&mut contention, Added, now);
            assert_eq!(contention.made("other", Added, "other", now), None);
            contention.forget(now, |taint, _| *taint == "other");
        }
        assert_eq!(contention.contended(now).collect::<Vec<_>>(), ["r"]);
        let until = |taint: &str| contention.not_before(|it| *it == taint, Added, now);
        assert!(until("gate").is_some());
        assert_eq!(until("other"), None);
    }

    #[test]
    fn a_node_that_flaps_is_not_contended() {
        let now = Instant::now();
        let mut contention = Contention::default();
        for time in 0..100 {
            let change = if time % 2 == 0 { Added } else { Removed };
            assert_eq!(made(&mut contention, change, now + time * S), None);
        }
        // Someone else removes the taint just before the rule would, each time.
        let mut contention: Contention<_, _> = Contention::default();
        for time in 0..100 {
            assert_eq!(made(&mut contention, Added, now + time * S), None);
            contention.forget(now + time * S, |taint, change| {
                *taint == "gate" && change == Added
            });
        }
    }

    #[test]
    fn it_ends_when_they_stop() {
        let start = Instant::now();
        let mut contention = Contention::default();
        let writes = follow(&mut contention, start, 60 * S);
        let last = *writes.last().unwrap();
        assert_eq!(contention.contended(last + 30 * S).count(), 1);
        let later = last + 601 * S;
        assert_eq!(contention.contended(later).count(), 0);
        assert_eq!(made(&mut contention, Added, later), None);
        assert_eq!(made(&mut contention, Added, later), Some(Undone::Now));
    }

    #[test]
    fn the_opposite_is_never_held_up() {
        let now = Instant::now();
        let mut contention = Contention::default();
        let last = *follow(&mut contention, now, 10 * S).last().unwrap();
        assert!(contention.not_before(|_| true, Added, last).is_some());
        assert_eq!(contention.not_before(|_| true, Removed, last), None);
        assert_eq!(
            contention.not_before(|taint| *taint == "another", Added, now),
            None
        );
    }
}
