//! The queue for retries of refused writes. All nodes share one limit for that.
//!
//! A retry that is refused again halves how many may be under way at a time, and delays the others for a moment. One that
//! succeeds lets more through, since the cause may be gone for other nodes too ([`ClassLimit`]).
//!
//! The least refused goes first, so that one node's passing trouble does not wait behind ten thousand nodes that lack a
//! permission. First tries are free, unless the same has been refused on many nodes in a row. Then they are queued as well,
//! behind everything else, newest node first.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backoff::Pauses;
use super::limits::ClassLimit;
use crate::engine::map::Map;

/// The common pauses after retries that were refused again.
const PAUSES: Pauses = Pauses::between(Duration::from_millis(100), Duration::from_millis(600));
/// After this many refusals in a row the write is locked out: its first tries are queued as well.
const LOCKOUT: u32 = 64;

/// A node's place in the queue: whether its write is locked out, how often it was refused there, and when it was queued,
/// newest first.
type Place = (bool, u32, Reverse<u64>);

/// The limit on retries, and its queue.
#[derive(Debug)]
pub struct Retries {
    limit: ClassLimit,
    /// The nodes with a retry under way, and since when.
    under_way: Map<Arc<str>, Instant>,
    /// How often in a row each write was refused, over all nodes.
    in_a_row: Map<Arc<str>, u32>,
    waiting: BTreeSet<(Place, Arc<str>)>,
    places: Map<Arc<str>, Place>,
    came: u64,
}

impl Retries {
    /// An empty queue, for at most this many retries at a time.
    pub fn new(at_a_time: u16) -> Self {
        Self {
            limit: ClassLimit::new(at_a_time, PAUSES),
            under_way: Map::default(),
            in_a_row: Map::default(),
            waiting: BTreeSet::new(),
            places: Map::default(),
            came: 0,
        }
    }

    /// Whether this write may be tried on the node now, after this many refusals. If so, it counts as under way until it is
    /// answered. If not, the node waits for [`Self::next`].
    pub fn turn(&mut self, node: &Arc<str>, what: &str, refusals: u32, now: Instant) -> bool {
        let is_locked_out = self.is_locked_out(what);
        if refusals == 0 && !is_locked_out {
            return true;
        }
        self.came += 1;
        let place = (is_locked_out, refusals, Reverse(self.came));
        let is_next = self.waiting.first().is_none_or(|(first, _)| place < *first);
        if is_next && self.free(now) > 0 {
            self.forget(node);
            self.under_way.insert(node.clone(), now);
            return true;
        }
        if !self.places.contains_key(node) {
            self.places.insert(node.clone(), place);
            self.waiting.insert((place, node.clone()));
        }
        false
    }

    /// Whether this write was refused on many nodes in a row.
    pub fn is_locked_out(&self, what: &str) -> bool {
        let times = self.in_a_row.get(what);
        times.is_some_and(|times| *times >= LOCKOUT)
    }

    /// Takes the nodes that may retry now. Each of them has to call [`Self::turn`] again.
    pub fn next(&mut self, now: Instant) -> Vec<Arc<str>> {
        let free = self.free(now);
        let waiting = std::iter::from_fn(|| self.waiting.pop_first());
        let next: Vec<_> = waiting.take(free).map(|(_, node)| node).collect();
        for node in &next {
            self.places.remove(node);
        }
        next
    }

    /// When the next node may retry; `None` if the queue is empty, or if an answer must come first.
    pub fn next_turn(&self, now: Instant) -> Option<Instant> {
        let is_full = self.under_way.len() >= self.limit.at_a_time();
        if self.waiting.is_empty() || is_full {
            return None;
        }
        Some(self.limit.not_before(now).unwrap_or(now))
    }

    /// Forgets a node that is gone, or has nothing to retry any more.
    pub fn forget(&mut self, node: &Arc<str>) {
        self.under_way.remove(node);
        if let Some(place) = self.places.remove(node) {
            self.waiting.remove(&(place, node.clone()));
        }
    }

    /// Notes a refusal on a node where the write was refused this often before.
    pub fn refused(&mut self, node: &Arc<str>, what: &str, before: u32, now: Instant) {
        let made = self.under_way.remove(node).unwrap_or(now);
        if let Some(times) = self.in_a_row.get_mut(what) {
            *times = times.saturating_add(1);
        } else {
            self.in_a_row.insert(what.into(), 1);
        }
        if before > 0 || self.is_locked_out(what) {
            self.limit.overloaded(made, None, now);
        }
    }

    /// Notes a success on a node where the write was refused this often before.
    pub fn carried_out(&mut self, node: &Arc<str>, what: &str, refusals: u32, now: Instant) {
        let made = self.under_way.remove(node).unwrap_or(now);
        let was_refused = self.in_a_row.remove(what).is_some();
        if refusals > 0 || (was_refused && !self.waiting.is_empty()) {
            self.limit.dealt_with(made);
        }
    }

    /// Notes that a try was neither carried out nor refused.
    pub fn failed(&mut self, node: &Arc<str>) {
        self.under_way.remove(node);
    }

    /// Clears the queue.
    pub fn stop(&mut self) {
        self.waiting.clear();
        self.places.clear();
    }

    /// How many more may be tried now.
    fn free(&self, now: Instant) -> usize {
        if self.limit.not_before(now).is_some() {
            return 0;
        }
        let at_a_time = self.limit.at_a_time();
        at_a_time.saturating_sub(self.under_way.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);
    const WHAT: &str = "readiness.k8s.io/gate";
    const OTHER: &str = "readiness.k8s.io/other";

    fn name(index: usize) -> Arc<str> {
        format!("node-{index}").into()
    }

    /// Nodes whose writes are refused while `refused` says so, each with pauses of one second; an answer takes 10 milliseconds.
    /// Returns the number of answers in each second.
    fn answers(nodes: usize, seconds: u64, refused: impl Fn(u64) -> bool) -> Vec<usize> {
        let start = Instant::now();
        let mut retries = Retries::new(64);
        let mut refusals = vec![0_u32; nodes];
        let mut ready_at: Vec<Option<Instant>> = vec![Some(start); nodes];
        let mut under_way: Vec<usize> = Vec::new();
        let mut counts = Vec::new();
        let index = |name: &str| name["node-".len()..].parse::<usize>().unwrap();
        for second in 0..seconds {
            let mut count = 0;
            for hundredth in 0..100 {
                let now = start + Duration::from_millis(second * 1000 + hundredth * 10);
                count += under_way.len();
                for node in std::mem::take(&mut under_way) {
                    if refused(second) {
                        retries.refused(&name(node), WHAT, refusals[node], now);
                        refusals[node] += 1;
                        ready_at[node] = Some(now + S);
                    } else {
                        retries.carried_out(&name(node), WHAT, refusals[node], now);
                    }
                }
                let turns = retries.next(now);
                let ready = (0..nodes).filter(|node| ready_at[*node].is_some_and(|at| at <= now));
                let asking: Vec<_> = turns.iter().map(|it| index(it)).chain(ready).collect();
                for node in asking {
                    ready_at[node] = None;
                    if retries.turn(&name(node), WHAT, refusals[node], now) {
                        under_way.push(node);
                    }
                }
            }
            counts.push(count);
        }
        counts
    }

    #[test]
    fn a_lasting_refusal_costs_a_few_tries_a_second_however_many_nodes_there_are() {
        let counts = answers(2000, 20, |_| true);
        // All first tries are made at once.
        assert!(counts[0] >= 2000, "{counts:?}");
        assert!(counts[5..].iter().all(|count| *count <= 4), "{counts:?}");
    }

    #[test]
    fn when_the_cause_is_gone_all_are_through_within_seconds() {
        let counts = answers(2000, 40, |second| second < 20);
        let after: usize = counts[20..25].iter().sum();
        assert_eq!(after, 2000, "{counts:?}");
    }

    #[test]
    fn a_few_nodes_hardly_notice() {
        let counts = answers(3, 10, |_| true);
        assert!(counts.iter().sum::<usize>() >= 18, "{counts:?}");
    }

    /// Retries with a limit of one, and a node whose retry is under way.
    fn one_at_a_time(now: Instant) -> Retries {
        let mut retries = Retries::new(1);
        assert!(retries.turn(&name(0), WHAT, 1, now));
        retries
    }

    #[test]
    fn what_has_been_refused_least_goes_first() {
        let now = Instant::now();
        let mut retries = one_at_a_time(now);
        for (node, refusals) in [(1, 9), (2, 1), (3, 9), (4, 2), (5, 9)] {
            assert!(!retries.turn(&name(node), WHAT, refusals, now));
        }
        assert!(retries.next(now).is_empty());
        retries.forget(&name(3));
        retries.failed(&name(0));
        for node in [2, 4, 5, 1] {
            assert_eq!(retries.next(now), [name(node)]);
        }
        assert_eq!(retries.next_turn(now), None);
    }

    #[test]
    fn who_has_been_refused_less_than_all_that_wait_need_not_wait_behind_them() {
        let now = Instant::now();
        let mut retries = one_at_a_time(now);
        assert!(!retries.turn(&name(1), WHAT, 5, now));
        retries.failed(&name(0));
        assert!(!retries.turn(&name(2), WHAT, 9, now));
        assert!(retries.turn(&name(3), WHAT, 1, now));
        retries.failed(&name(3));
        assert_eq!(retries.next(now), [name(1)]);
    }

    #[test]
    fn a_try_that_is_refused_again_makes_the_others_wait_and_one_that_is_carried_out_does_not() {
        let now = Instant::now();
        for (refused, before, waits) in [(true, 0, false), (true, 1, true), (false, 1, false)] {
            let mut retries = one_at_a_time(now);
            assert!(!retries.turn(&name(1), WHAT, 1, now));
            assert_eq!(retries.next_turn(now), None, "an answer is waited for");
            if refused {
                retries.refused(&name(0), WHAT, before, now);
            } else {
                retries.carried_out(&name(0), WHAT, before, now);
            }
            let next = retries.next_turn(now).expect("a turn");
            assert_eq!(next > now, waits, "{refused} {before}");
            assert!(next <= now + 100 * MS);
            assert_eq!(retries.next(now).is_empty(), waits);
            assert!(!waits || retries.next(next) == [name(1)]);
        }
    }

    #[test]
    fn what_was_never_refused_says_nothing_of_the_cause_by_which_others_wait() {
        let now = Instant::now();
        let mut retries = Retries::new(4);
        for node in 0..4 {
            assert!(retries.turn(&name(node), WHAT, 1, now));
        }
        for node in 0..4 {
            retries.refused(&name(node), WHAT, 1, now);
        }
        let later = now + S;
        let at_once = (0..4).filter(|node| retries.turn(&name(*node), WHAT, 2, later));
        assert_eq!(at_once.count(), 1);
        for node in 4..14 {
            assert!(retries.turn(&name(node), OTHER, 0, later));
            retries.carried_out(&name(node), OTHER, 0, later);
        }
        assert_eq!(retries.next_turn(later), None);
        retries.carried_out(&name(14), WHAT, 0, later);
        assert_eq!(retries.next(later).len(), 1, "the cause is gone");
    }

    #[test]
    fn what_is_refused_on_node_after_node_waits_behind_all_else() {
        let now = Instant::now();
        let mut retries = Retries::new(4);
        assert!(retries.turn(&name(0), WHAT, 0, now));
        for _ in 0..LOCKOUT {
            retries.refused(&name(0), WHAT, 0, now);
        }
        let next = now + 600 * MS;
        let mut at_once = (0..100).filter(|node| retries.turn(&name(*node), WHAT, 0, next));
        let under_way: Vec<_> = at_once.by_ref().take(5).collect();
        assert!(under_way.len() <= 4, "{under_way:?}");
        // A first try of another write is free, and a second goes before everything that is locked out.
        assert!(retries.turn(&name(200), OTHER, 0, next));
        assert!(!retries.turn(&name(201), OTHER, 3, next));
        // Of the locked-out writes, the newest node goes first.
        assert!(!retries.turn(&name(202), WHAT, 0, next));
        for node in under_way {
            retries.failed(&name(node));
        }
        let order = retries.next(next);
        assert_eq!(order[..], [201, 202].map(name)[..order.len().min(2)]);
        // One success is enough.
        retries.carried_out(&name(202), WHAT, 0, next);
        assert!(retries.turn(&name(203), WHAT, 0, next));
    }
}
