//! When repair resumes after a period of stale evidence.
//!
//! A node may have become ready meanwhile, or the outage that hid it may have kept it from that. So after a period of stale
//! evidence of any kind, repair stays postponed for as long again. Callers must also postpone it while evidence is stale.

use std::time::{Duration, Instant};

/// Until when repair is postponed after stale evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Settling {
    until: Option<Instant>,
}

impl Settling {
    /// Notes that a kind of evidence is current again after having been stale for this long.
    pub(crate) fn sees_again(&mut self, blind: Duration, now: Instant) {
        self.until = self.until.max(Some(now + blind));
    }

    /// Until when repair is postponed, if it is at this time.
    pub(crate) fn not_before(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::{Certainty, MAX_AGE};

    #[test]
    fn overdue_nodes_are_left_alone_for_as_long_as_the_longest_interruption() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut settling = Settling::default();
        assert_eq!(settling.not_before(start), None, "nothing was interrupted");
        settling.sees_again(Duration::from_secs(60), after(60));
        settling.sees_again(Duration::from_secs(5), after(65));
        assert_eq!(settling.not_before(after(119)), Some(after(120)));
        assert_eq!(settling.not_before(after(120)), None);
        settling.sees_again(Duration::from_secs(5), after(130));
        assert_eq!(settling.not_before(after(131)), Some(after(135)));
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Saw,
        Current,
        Interrupted,
        StoodStill,
    }

    fn step() -> impl Strategy<Value = Step> {
        use Step::{Current, Interrupted, Saw, StoodStill};
        prop_oneof![
            3 => Just(Saw),
            4 => Just(Current),
            2 => Just(Interrupted),
            1 => Just(StoodStill),
        ]
    }

    proptest! {
        #[test]
        fn no_node_is_repaired_while_evidence_is_stale_nor_for_as_long_again(
            steps in proptest::collection::vec((0..3_usize, step(), 0..30_u64), 1..80),
        ) {
            let mut now = Instant::now();
            let kinds = [0, 1, 2];
            let mut certainty = Certainty::new(kinds, now);
            let mut settling = Settling::default();
            // When each kind was last current, and from when on nodes may be repaired.
            let mut seen = [None; 3];
            let mut judged_from = now;
            for (kind, step, seconds) in steps {
                now += Duration::from_secs(seconds);
                match step {
                    Step::Saw => certainty.saw(kind, now),
                    Step::Interrupted => certainty.interrupted(kind),
                    Step::StoodStill => certainty.mark_all_stale(now),
                    Step::Current => {
                        let was_stale = certainty.is_stale(kind, now);
                        if let Some(blind) = certainty.current(kind, now, now) {
                            settling.sees_again(blind, now);
                        }
                        if let Some(seen) = seen[kind].filter(|_| was_stale) {
                            judged_from = judged_from.max(now + (now - seen));
                        }
                    }
                }
                if !certainty.is_stale(kind, now) {
                    seen[kind] = Some(now);
                }
                let is_certain = certainty.stale(now).next().is_none();
                if is_certain && settling.not_before(now).is_none() {
                    prop_assert!(now >= judged_from);
                    let is_recent = |at: Option<Instant>| at.is_some_and(|at| now - at <= MAX_AGE);
                    prop_assert!(seen.into_iter().all(is_recent));
                }
            }
        }
    }
}
