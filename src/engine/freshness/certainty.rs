//! How current the view of each kind is. While a kind is stale, nothing harmful is done, unless a live read of the objects
//! themselves confirms it.

use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::engine::map::Map;

/// The highest age of evidence for which a taint may be added or removed. A working watch is at most about 17 seconds old.
pub const MAX_AGE: Duration = Duration::from_secs(20);

/// Tracks how current the view of each kind `K` is.
#[derive(Debug)]
pub(crate) struct Certainty<K> {
    views: Map<K, KindView>,
    /// When all views last became stale: evidence from before does not count.
    invalidated: Option<Instant>,
}

/// The view of one kind.
#[derive(Debug, Clone, Copy)]
struct KindView {
    /// Everything has been shown that had happened by this time.
    as_of: Instant,
    /// When the last event came while the view was current.
    seen: Instant,
    /// Whether the view is stale until the watch proves that it missed nothing.
    stale: bool,
}

impl<K: Hash + Eq + Copy> Certainty<K> {
    /// Stale views of these kinds.
    pub(crate) fn new(kinds: impl IntoIterator<Item = K>, now: Instant) -> Self {
        let view = KindView {
            as_of: now,
            seen: now,
            stale: true,
        };
        Self {
            views: kinds.into_iter().map(|kind| (kind, view)).collect(),
            invalidated: None,
        }
    }

    /// Adds a view that is current as of this time.
    pub(crate) fn begin(&mut self, kind: K, as_of: Instant, now: Instant) {
        let view = KindView {
            as_of,
            seen: now,
            stale: false,
        };
        self.views.insert(kind, view);
    }

    /// Whether there is a view of this kind.
    pub(crate) fn is_known(&self, kind: K) -> bool {
        self.views.contains_key(&kind)
    }

    /// Removes a view.
    pub(crate) fn end(&mut self, kind: K) {
        self.views.remove(&kind);
    }

    /// Notes an event. It does not prove that none was missed before it.
    pub(crate) fn saw(&mut self, kind: K, now: Instant) {
        if let Some(view) = self.views.get_mut(&kind)
            && !view.is_stale(now)
        {
            view.seen = now;
        }
    }

    /// Whether a view that is current as of this time is recent enough.
    pub(crate) fn counts(&self, as_of: Instant, now: Instant) -> bool {
        now.saturating_duration_since(as_of) <= MAX_AGE
            && self
                .invalidated
                .is_none_or(|invalidated| invalidated <= as_of)
    }

    /// Notes that a view is current as of this time. If it was stale, returns for how long.
    pub(crate) fn current(&mut self, kind: K, as_of: Instant, now: Instant) -> Option<Duration> {
        if !self.counts(as_of, now) {
            return None;
        }
        let view = self.views.get_mut(&kind)?;
        let was_stale = view.is_stale(now);
        let blind = now.saturating_duration_since(view.seen);
        *view = KindView {
            as_of: view.as_of.max(as_of),
            seen: now,
            stale: false,
        };
        was_stale.then_some(blind)
    }

    /// How long ago the last event of this kind came while its view was current.
    pub(crate) fn age(&self, kind: K, now: Instant) -> Duration {
        self.views.get(&kind).map_or(Duration::ZERO, |view| {
            now.saturating_duration_since(view.seen)
        })
    }

    /// Notes that a watch has broken off.
    pub(crate) fn interrupted(&mut self, kind: K) {
        if let Some(view) = self.views.get_mut(&kind) {
            view.stale = true;
        }
    }

    /// Makes all views stale: the process stood still, or starts to act on what it has seen.
    pub(crate) fn mark_all_stale(&mut self, now: Instant) {
        self.invalidated = Some(now);
        for view in self.views.values_mut() {
            view.stale = true;
        }
    }

    /// Whether the view of this kind is stale.
    pub(crate) fn is_stale(&self, kind: K, now: Instant) -> bool {
        self.views.get(&kind).is_some_and(|view| view.is_stale(now))
    }

    /// The stale kinds.
    pub(crate) fn stale(&self, now: Instant) -> impl Iterator<Item = K> {
        self.views
            .iter()
            .filter(move |(_, view)| view.is_stale(now))
            .map(|(kind, _)| *kind)
    }
}

impl KindView {
    fn is_stale(&self, now: Instant) -> bool {
        self.stale || now.saturating_duration_since(self.as_of) > MAX_AGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Saw,
        /// Current as of this many seconds after the start.
        Current(u64),
        Interrupted,
        MarkAllStale,
    }

    #[test]
    fn only_a_view_that_is_current_as_of_lately_is_certain() {
        use Step::{Current, Interrupted, MarkAllStale, Saw};
        for (name, steps, asked_at, expected) in [
            ("before anything came", &[][..], 0, true),
            ("an event alone", &[(0, Saw)], 1, true),
            ("current", &[(0, Current(0))], 20, false),
            ("current as of long ago", &[(0, Current(0))], 21, true),
            (
                "events do not keep it certain",
                &[(0, Current(0)), (15, Saw)],
                21,
                true,
            ),
            (
                "it counts from when that was asked for",
                &[(0, Current(0)), (16, Current(12))],
                33,
                true,
            ),
            (
                "until then",
                &[(0, Current(0)), (16, Current(12))],
                32,
                false,
            ),
            ("told too late", &[(30, Current(9))], 30, true),
            ("broken off", &[(0, Current(0)), (5, Interrupted)], 5, true),
            (
                "an event after it broke off",
                &[(0, Current(0)), (5, Interrupted), (6, Saw)],
                7,
                true,
            ),
            (
                "resumed",
                &[(0, Current(0)), (5, Interrupted), (6, Current(5))],
                7,
                false,
            ),
            (
                "invalidated",
                &[(0, Current(0)), (5, MarkAllStale)],
                6,
                true,
            ),
            (
                "as of before it was invalidated",
                &[(0, Current(0)), (5, MarkAllStale), (6, Current(4))],
                7,
                true,
            ),
            (
                "as of since it was invalidated",
                &[(0, Current(0)), (5, MarkAllStale), (6, Current(5))],
                7,
                false,
            ),
        ] {
            let start = Instant::now();
            let after = |seconds| start + Duration::from_secs(seconds);
            let mut certainty = Certainty::new(["pods", "nodes"], start);
            for (time, step) in steps {
                match step {
                    Saw => certainty.saw("pods", after(*time)),
                    Current(as_of) => {
                        certainty.current("pods", after(*as_of), after(*time));
                    }
                    Interrupted => certainty.interrupted("pods"),
                    MarkAllStale => certainty.mark_all_stale(after(*time)),
                }
            }
            assert_eq!(
                certainty.is_stale("pods", after(asked_at)),
                expected,
                "{name}"
            );
            assert!(certainty.stale(after(asked_at)).any(|kind| kind == "nodes"));
        }
    }

    #[test]
    fn a_view_that_becomes_current_says_once_how_long_it_was_stale() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut certainty = Certainty::new(["pods"], start);
        let mut current = |seconds| certainty.current("pods", after(seconds), after(seconds));
        assert_eq!(current(2), Some(Duration::from_secs(2)));
        certainty.saw("pods", after(10));
        certainty.interrupted("pods");
        certainty.saw("pods", after(12));
        assert_eq!(certainty.age("pods", after(14)), Duration::from_secs(4));
        let mut current = |seconds| certainty.current("pods", after(seconds), after(seconds));
        assert_eq!(current(15), Some(Duration::from_secs(5)));
        assert_eq!(current(16), None);
    }
}
