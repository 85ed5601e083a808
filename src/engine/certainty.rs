//! Since when what the watches have shown of each kind of object is certain. While a kind is in doubt nothing is done that
//! can hurt, unless a last look at the objects themselves says so too.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How long a watch may be silent before what it has shown is in doubt: bookmarks come more often than this. It is the
/// age that the evidence for a lifted or an added taint can have at most.
pub const SILENCE: Duration = Duration::from_secs(20);

/// How certain the view of each kind `K` is.
#[derive(Debug)]
pub struct Certainty<K> {
    views: HashMap<K, View>,
}

/// The view of one kind.
#[derive(Debug, Clone, Copy)]
struct View {
    /// When the watch last showed that it lives.
    alive: Instant,
    /// When the view was last certain.
    certain: Instant,
    /// Nothing has shown since then that nothing was missed.
    in_doubt: bool,
}

impl<K: Hash + Eq + Copy> Certainty<K> {
    /// No view of these kinds yet.
    #[must_use]
    pub fn new(kinds: impl IntoIterator<Item = K>, now: Instant) -> Self {
        let view = View {
            alive: now,
            certain: now,
            in_doubt: true,
        };
        Self {
            views: kinds.into_iter().map(|kind| (kind, view)).collect(),
        }
    }

    /// A view of one more kind, of which everything is known just now.
    pub fn begin(&mut self, kind: K, now: Instant) {
        let view = View {
            alive: now,
            certain: now,
            in_doubt: false,
        };
        self.views.insert(kind, view);
    }

    /// There is no view of this kind any more.
    pub fn end(&mut self, kind: K) {
        self.views.remove(&kind);
    }

    /// An event has come. It tells that the watch lives, and not that nothing was missed before it.
    pub fn saw(&mut self, kind: K, now: Instant) {
        if let Some(view) = self.views.get_mut(&kind) {
            // What comes after a silence may have been under way for as long.
            view.in_doubt |= view.is_silent(now);
            view.alive = now;
            if !view.in_doubt {
                view.certain = now;
            }
        }
    }

    /// A complete list or a bookmark has come: everything before it has been seen. Answers how long nothing was certain,
    /// where the kind was in doubt.
    pub fn confirmed(&mut self, kind: K, now: Instant) -> Option<Duration> {
        let view = self.views.get_mut(&kind)?;
        let was_in_doubt = view.in_doubt || view.is_silent(now);
        let blind = now.saturating_duration_since(view.certain);
        *view = View {
            alive: now,
            certain: now,
            in_doubt: false,
        };
        was_in_doubt.then_some(blind)
    }

    /// How long ago the view of this kind was last certain.
    #[must_use]
    pub fn age(&self, kind: K, now: Instant) -> Duration {
        self.views.get(&kind).map_or(Duration::ZERO, |view| {
            now.saturating_duration_since(view.certain)
        })
    }

    /// The watch has broken off.
    pub fn interrupted(&mut self, kind: K) {
        if let Some(view) = self.views.get_mut(&kind) {
            view.in_doubt = true;
        }
    }

    /// Nothing is certain any more: the process stood still, or only begins to act on what it has seen.
    pub fn doubt_all(&mut self) {
        for view in self.views.values_mut() {
            view.in_doubt = true;
        }
    }

    /// Whether what was seen of this kind may not be so any more.
    #[must_use]
    pub fn doubts(&self, kind: K, now: Instant) -> bool {
        self.views
            .get(&kind)
            .is_some_and(|view| view.in_doubt || view.is_silent(now))
    }

    /// The kinds that are in doubt.
    pub fn in_doubt(&self, now: Instant) -> impl Iterator<Item = K> {
        self.views
            .iter()
            .filter(move |(_, view)| view.in_doubt || view.is_silent(now))
            .map(|(kind, _)| *kind)
    }
}

impl View {
    fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.alive) > SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Saw,
        Confirmed,
        Interrupted,
        DoubtAll,
    }

    #[test]
    fn only_a_complete_list_or_a_bookmark_ends_a_doubt() {
        use Step::{Confirmed, DoubtAll, Interrupted, Saw};
        for (name, steps, asked_at, expected) in [
            ("before anything came", &[][..], 0, true),
            ("an event alone", &[(0, Saw)], 1, true),
            ("listed", &[(0, Confirmed)], 20, false),
            ("silent", &[(0, Confirmed)], 21, true),
            (
                "events keep it certain",
                &[(0, Confirmed), (15, Saw)],
                35,
                false,
            ),
            (
                "the first event after a silence",
                &[(0, Confirmed), (21, Saw)],
                21,
                true,
            ),
            (
                "a bookmark after a silence",
                &[(0, Confirmed), (21, Saw), (22, Confirmed)],
                23,
                false,
            ),
            ("broken off", &[(0, Confirmed), (5, Interrupted)], 5, true),
            (
                "an event after it broke off",
                &[(0, Confirmed), (5, Interrupted), (6, Saw)],
                7,
                true,
            ),
            (
                "resumed",
                &[(0, Confirmed), (5, Interrupted), (6, Confirmed)],
                7,
                false,
            ),
            ("doubted", &[(0, Confirmed), (5, DoubtAll)], 6, true),
        ] {
            let start = Instant::now();
            let after = |seconds| start + Duration::from_secs(seconds);
            let mut certainty = Certainty::new(["pods", "nodes"], start);
            for (time, step) in steps {
                match step {
                    Saw => certainty.saw("pods", after(*time)),
                    Confirmed => {
                        certainty.confirmed("pods", after(*time));
                    }
                    Interrupted => certainty.interrupted("pods"),
                    DoubtAll => certainty.doubt_all(),
                }
            }
            assert_eq!(
                certainty.doubts("pods", after(asked_at)),
                expected,
                "{name}"
            );
            assert!(
                certainty
                    .in_doubt(after(asked_at))
                    .any(|kind| kind == "nodes")
            );
        }
    }

    #[test]
    fn the_end_of_a_doubt_says_once_how_long_nothing_was_certain() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut certainty = Certainty::new(["pods"], start);
        assert_eq!(
            certainty.confirmed("pods", after(2)),
            Some(Duration::from_secs(2))
        );
        certainty.saw("pods", after(10));
        certainty.interrupted("pods");
        certainty.saw("pods", after(12));
        assert_eq!(certainty.age("pods", after(14)), Duration::from_secs(4));
        assert_eq!(
            certainty.confirmed("pods", after(15)),
            Some(Duration::from_secs(5))
        );
        assert_eq!(certainty.confirmed("pods", after(16)), None);
    }
}
