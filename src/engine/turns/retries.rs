//! Whose turn it is to try again what the API server has refused: all nodes together have one pace for that.
//!
//! | answer to a try | pace |
//! |---|---|
//! | what had been refused is carried out | doubles: the cause may be gone for others too |
//! | refused again | halves, down to two tries a second |
//!
//! What has been refused least often goes first, so that one node's passing trouble does not wait behind ten thousand
//! nodes that a missing permission holds up. A first try is free, unless the same has been refused on node after node: then
//! that waits as well, behind all else, and the newest node is the first to find out.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The slowest pace, in tries a second.
const SLOWEST: f64 = 2.0;
/// The fastest.
const FASTEST: f64 = 1024.0;
/// The pace before anything is known.
const FIRST: f64 = 16.0;
/// How many tries may come at once.
const BURST: f64 = 8.0;
/// What has been refused so often in a row is locked out: its first tries wait for their turn as well.
const LOCKOUT: u32 = 64;

/// Where a node stands in the queue: whether what it is about is locked out, how often it has been refused there, and when it
/// came, the newest first.
type Place = (bool, u32, Reverse<u64>);

/// The pace at which refused changes are tried again, and who waits for it.
#[derive(Debug)]
pub struct Retries {
    /// Tries a second.
    pace: f64,
    /// How many tries were free when one was last taken, and when that was.
    free: f64,
    taken: Option<Instant>,
    /// What has been refused on the last nodes on which it was tried, and on how many.
    in_a_row: HashMap<Arc<str>, u32>,
    waiting: BTreeSet<(Place, Arc<str>)>,
    places: HashMap<Arc<str>, Place>,
    came: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            pace: FIRST,
            free: BURST,
            taken: None,
            in_a_row: HashMap::new(),
            waiting: BTreeSet::new(),
            places: HashMap::new(),
            came: 0,
        }
    }
}

impl Retries {
    /// Whether this may be tried on the node now, which has refused it so often. If not, the node waits for
    /// [`Self::next`].
    pub fn turn(&mut self, node: &Arc<str>, what: &str, refusals: u32, now: Instant) -> bool {
        let is_locked_out = self.is_locked_out(what);
        if refusals == 0 && !is_locked_out {
            return true;
        }
        self.came += 1;
        let place = (is_locked_out, refusals, Reverse(self.came));
        let is_next = self.waiting.first().is_none_or(|(first, _)| place < *first);
        if is_next && self.take(now) {
            self.forget(node);
            return true;
        }
        if !self.places.contains_key(node) {
            self.places.insert(node.clone(), place);
            self.waiting.insert((place, node.clone()));
        }
        false
    }

    /// Whether this has been refused on node after node.
    #[must_use]
    pub fn is_locked_out(&self, what: &str) -> bool {
        self.in_a_row
            .get(what)
            .is_some_and(|times| *times >= LOCKOUT)
    }

    /// The node whose turn it is, if it is anyone's.
    pub fn next(&mut self, now: Instant) -> Option<Arc<str>> {
        if self.waiting.is_empty() || !self.take(now) {
            return None;
        }
        let (_, node) = self.waiting.pop_first()?;
        self.places.remove(&node);
        Some(node)
    }

    /// When it is somebody's turn; `None` while nobody waits.
    #[must_use]
    pub fn next_turn(&self, now: Instant) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        let missing = (1.0 - self.free(now)).max(0.0);
        Some(now + Duration::from_secs_f64(missing / self.pace))
    }

    /// Forgets a node that is gone, or has nothing to try any more.
    pub fn forget(&mut self, node: &Arc<str>) {
        if self.places.is_empty() {
            return;
        }
        if let Some(place) = self.places.remove(node) {
            self.waiting.remove(&(place, node.clone()));
        }
    }

    /// Notes that the API server has refused this on a node where it had been refused so often before.
    pub fn refused(&mut self, what: &str, before: u32, now: Instant) {
        if let Some(times) = self.in_a_row.get_mut(what) {
            *times = times.saturating_add(1);
        } else {
            self.in_a_row.insert(what.into(), 1);
        }
        if before > 0 || self.is_locked_out(what) {
            self.set_pace(self.pace / 2.0, now);
        }
    }

    /// Notes that this has been carried out on a node where it had been refused so often before.
    pub fn carried_out(&mut self, what: &str, refusals: u32, now: Instant) {
        let was_refused = self.in_a_row.remove(what).is_some();
        if refusals > 0 || (was_refused && !self.waiting.is_empty()) {
            self.set_pace(self.pace * 2.0, now);
        }
    }

    fn set_pace(&mut self, pace: f64, now: Instant) {
        self.free = self.free(now);
        self.taken = Some(now);
        self.pace = pace.clamp(SLOWEST, FASTEST);
    }

    fn free(&self, now: Instant) -> f64 {
        let passed = self
            .taken
            .map_or(Duration::ZERO, |taken| now.duration_since(taken));
        (self.free + passed.as_secs_f64() * self.pace).min(BURST)
    }

    fn take(&mut self, now: Instant) -> bool {
        // What is short of a whole by the error of adding up fractions counts as whole.
        let free = self.free(now);
        let is_free = free > 1.0 - 1e-6;
        if is_free {
            self.free = free - 1.0;
            self.taken = Some(now);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);
    const WHAT: &str = "readiness.k8s.io/gate";

    fn name(index: usize) -> Arc<str> {
        format!("node-{index}").into()
    }

    /// Nodes whose changes are refused for as long as `refused` says so, each with pauses of its own of a second; answers
    /// the tries of each second.
    fn tries(nodes: usize, seconds: u64, refused: impl Fn(u64) -> bool) -> Vec<usize> {
        let start = Instant::now();
        let mut retries = Retries::default();
        let mut refusals = vec![0_u32; nodes];
        let mut ready_at: Vec<Option<Instant>> = vec![Some(start); nodes];
        let mut counts = Vec::new();
        let index = |name: &str| name["node-".len()..].parse::<usize>().unwrap();
        for second in 0..seconds {
            let mut count = 0;
            for millisecond in 0..1000 {
                let now = start + Duration::from_millis(second * 1000 + millisecond);
                let mut turns: Vec<usize> = Vec::new();
                if millisecond % 50 == 0 {
                    for node in 0..nodes {
                        if ready_at[node].is_some_and(|at| at <= now) {
                            ready_at[node] = None;
                            if retries.turn(&name(node), WHAT, refusals[node], now) {
                                turns.push(node);
                            }
                        }
                    }
                }
                while let Some(node) = retries.next(now) {
                    turns.push(index(&node));
                }
                count += turns.len();
                for node in turns {
                    if refused(second) {
                        retries.refused(WHAT, refusals[node], now);
                        refusals[node] += 1;
                        ready_at[node] = Some(now + S);
                    } else {
                        retries.carried_out(WHAT, refusals[node], now);
                    }
                }
            }
            counts.push(count);
        }
        counts
    }

    #[test]
    fn a_lasting_refusal_costs_a_few_tries_a_second_however_many_nodes_there_are() {
        let counts = tries(2000, 20, |_| true);
        // The first tries of all are made at once.
        assert!(counts[0] >= 2000, "{counts:?}");
        assert!(counts[5..].iter().all(|count| *count <= 3), "{counts:?}");
    }

    #[test]
    fn when_the_cause_is_gone_all_are_through_within_seconds() {
        let counts = tries(2000, 40, |second| second < 20);
        let after: usize = counts[20..].iter().sum();
        assert_eq!(after, 2000, "{counts:?}");
        assert!(counts[20..30].iter().sum::<usize>() == 2000, "{counts:?}");
    }

    #[test]
    fn a_few_nodes_hardly_notice() {
        let counts = tries(3, 10, |_| true);
        assert!(counts.iter().sum::<usize>() >= 18, "{counts:?}");
    }

    #[test]
    fn what_has_been_refused_least_goes_first() {
        let now = Instant::now();
        let mut retries = Retries::default();
        while retries.turn(&name(0), WHAT, 1, now) {}
        for (node, refusals) in [(1, 9), (2, 1), (3, 9), (4, 2), (5, 9)] {
            assert!(!retries.turn(&name(node), WHAT, refusals, now));
        }
        retries.forget(&name(3));
        let later = now + 60 * S;
        let order: Vec<_> = std::iter::from_fn(|| retries.next(later)).collect();
        assert_eq!(order, [2, 0, 4, 5, 1].map(name));
        assert_eq!(retries.next_turn(later), None);
    }

    /// Something that becomes of a try.
    type Step = fn(&mut Retries, Instant);

    /// How long the next try takes to come while one waits.
    fn pace_of(retries: &Retries, now: Instant) -> Duration {
        let mut retries = Retries {
            free: 0.0,
            taken: Some(now),
            pace: retries.pace,
            ..Retries::default()
        };
        assert!(!retries.turn(&name(0), WHAT, 1, now));
        retries.next_turn(now).unwrap() - now
    }

    #[test]
    fn the_pace_follows_what_becomes_of_tries() {
        let now = Instant::now();
        let usual = S / 16;
        let waiting = |retries: &mut Retries| while retries.turn(&name(9), "other", 1, now) {};
        let refused_first: Step = |retries, now| retries.refused(WHAT, 0, now);
        let refused_again: Step = |retries, now| retries.refused(WHAT, 1, now);
        let done_first: Step = |retries, now| retries.carried_out(WHAT, 0, now);
        let done_again: Step = |retries, now| retries.carried_out(WHAT, 1, now);
        for (what, steps, others_wait, pace) in [
            ("nothing", &[][..], false, usual),
            ("a first refusal", &[refused_first], false, usual),
            (
                "a second one",
                &[refused_first, refused_again],
                false,
                usual * 2,
            ),
            ("no slower than that", &[refused_again; 20], false, S / 2),
            ("done at the first try", &[done_first], true, usual),
            ("done at the second", &[done_again], false, usual / 2),
            ("no faster than that", &[done_again; 20], false, S / 1024),
            (
                "what was refused elsewhere is done here, and others wait",
                &[refused_first, done_first],
                true,
                usual / 2,
            ),
            (
                "and nobody waits",
                &[refused_first, done_first],
                false,
                usual,
            ),
        ] {
            let mut retries = Retries::default();
            if others_wait {
                waiting(&mut retries);
            }
            for step in steps {
                step(&mut retries, now);
            }
            let seen = pace_of(&retries, now);
            let difference = seen.abs_diff(pace);
            assert!(difference < Duration::from_micros(1), "{what}: {seen:?}");
        }
    }

    #[test]
    fn who_has_been_refused_less_than_all_that_wait_need_not_wait_behind_them() {
        let start = Instant::now();
        let mut retries = Retries::default();
        while retries.turn(&name(0), WHAT, 5, start) {}
        // As many could be tried now as are saved up.
        let later = start + 60 * S;
        assert!(!retries.turn(&name(1), WHAT, 9, later));
        assert!(retries.turn(&name(2), WHAT, 1, later));
        assert_eq!(retries.next(later), Some(name(0)));
        // Who waits and has its turn by itself waits no more.
        assert!(retries.turn(&name(1), WHAT, 9, later));
        assert_eq!(retries.next(later), None);
    }

    #[test]
    fn the_next_turn_comes_when_a_whole_try_is_saved_up() {
        let start = Instant::now();
        let mut retries = Retries::default();
        assert_eq!(retries.next_turn(start), None);
        while retries.turn(&name(0), WHAT, 1, start) {}
        for passed in [Duration::ZERO, S / 32, S / 16] {
            let next = retries.next_turn(start + passed).unwrap();
            let difference = next.duration_since(start).abs_diff(S / 16);
            assert!(difference < Duration::from_micros(1), "{passed:?}");
        }
        let late = start + S;
        assert_eq!(retries.next_turn(late), Some(late));
        assert_eq!(retries.next(start + S / 32), None);
    }

    #[test]
    fn what_is_saved_up_is_a_burst() {
        let now = Instant::now();
        let mut retries = Retries::default();
        let mut burst = |now| (0..100).take_while(|_| retries.take(now)).count();
        assert_eq!(burst(now), 8);
        assert_eq!(burst(now + S / 16), 1);
        assert_eq!(burst(now + 3600 * S), 8);
    }

    #[test]
    fn what_is_refused_on_node_after_node_waits_behind_all_else() {
        const OTHER: &str = "readiness.k8s.io/other";
        let now = Instant::now();
        let mut retries = Retries::default();
        assert!(retries.turn(&name(0), WHAT, 0, now));
        for _ in 0..LOCKOUT {
            retries.refused(WHAT, 0, now);
        }
        let at_once = (0..100).filter(|node| retries.turn(&name(*node), WHAT, 0, now));
        assert!(at_once.count() <= 8);
        let next = retries.next_turn(now).expect("nodes that wait");
        assert!(next > now && next <= now + 500 * MS);
        // A first try of something else is free, and the second comes before all that is locked out.
        assert!(retries.turn(&name(200), OTHER, 0, now));
        assert!(!retries.turn(&name(201), OTHER, 3, now));
        assert_eq!(retries.next(next), Some(name(201)));
        // Of what is locked out, the newest node finds out whether it still is.
        assert!(!retries.turn(&name(202), WHAT, 0, next));
        assert_eq!(retries.next(next + 500 * MS), Some(name(202)));
        // One that is carried out is enough.
        retries.carried_out(WHAT, 0, next);
        assert!(retries.turn(&name(203), WHAT, 0, next));
    }
}
