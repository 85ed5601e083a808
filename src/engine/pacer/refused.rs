//! The writes that the API server refuses. Each is retried at its own growing pause, longer the more there are, so that all take
//! some ten tries a second. Once one goes through, the others are tried again, evenly spaced: what refused them may be gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Class;
use crate::map::hash;

/// The least pause of a refused write for each one that is refused at the time...
const PAUSE_FOR_EACH: Duration = Duration::from_millis(100);
/// ...from this many refusals in a row on. Before, it is a node's passing trouble, and waits for no others.
const FEW: u32 = 3;
/// Between two retries after one of them went through.
const SPACING: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub struct RefusedWrites {
    writes: BTreeSet<(Class, Arc<str>)>,
    /// Before this time, one that goes through has no others tried again.
    tried_again: Option<Instant>,
    /// The writes that are tried again, each with its time.
    pub retries: Vec<(Instant, Class, Arc<str>)>,
}

impl RefusedWrites {
    /// Notes that a write was refused, this often in a row before. Returns when it may be retried at the earliest.
    #[allow(clippy::cast_possible_truncation, reason = "half of a hash is one")]
    pub fn refused(
        &mut self,
        class: Class,
        node: &Arc<str>,
        before: u32,
        now: Instant,
    ) -> Option<Instant> {
        self.writes.insert((class, node.clone()));
        // Those that were refused together are not retried together.
        let share = f64::from(hash(node) as u32) / f64::from(u32::MAX);
        (before >= FEW).then(|| now + self.pause().mul_f64(0.5 + share))
    }

    /// Notes that nothing of the kind is refused on the node any more.
    pub fn forget(&mut self, class: Class, node: &Arc<str>) -> bool {
        !self.writes.is_empty() && self.writes.remove(&(class, node.clone()))
    }

    pub fn went_through(&mut self, class: Class, node: &Arc<str>, now: Instant) {
        if !self.forget(class, node) || self.tried_again.is_some_and(|until| now < until) {
            return;
        }
        self.tried_again = Some(now + self.pause());
        let writes = (0..).zip(&self.writes);
        let retries =
            writes.map(|(index, (class, node))| (now + SPACING * index, *class, node.clone()));
        self.retries = retries.collect();
    }

    fn pause(&self) -> Duration {
        PAUSE_FOR_EACH * u32::try_from(self.writes.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(
        writes: &mut RefusedWrites,
        count: u32,
        before: u32,
        now: Instant,
    ) -> Option<Instant> {
        (0..count)
            .map(|index| writes.refused(Class::Node, &index.to_string().into(), before, now))
            .last()?
    }

    #[test]
    fn the_pause_of_a_refused_write_grows_with_the_number_of_refused_writes() {
        let now = Instant::now();
        let mut writes = RefusedWrites::default();
        assert_eq!(refuse(&mut writes, 1000, 0, now), None);
        assert_eq!(refuse(&mut writes, 1000, FEW - 1, now), None);
        let pause = refuse(&mut writes, 1000, FEW, now).unwrap() - now;
        assert!((50..=150).contains(&pause.as_secs()), "{pause:?}");
    }

    #[test]
    fn a_write_that_goes_through_has_the_refused_ones_retried_once_in_their_pause() {
        let now = Instant::now();
        let mut writes = RefusedWrites::default();
        refuse(&mut writes, 5, 9, now);
        writes.went_through(Class::Node, &"new".into(), now);
        assert_eq!(
            std::mem::take(&mut writes.retries),
            [],
            "it had not been refused"
        );
        writes.went_through(Class::Node, &"0".into(), now);
        let retries = std::mem::take(&mut writes.retries);
        assert_eq!(retries.len(), 4);
        assert_eq!(retries[3].0, now + 3 * SPACING);
        writes.went_through(Class::Node, &"1".into(), now);
        assert_eq!(std::mem::take(&mut writes.retries), []);
        writes.went_through(Class::Node, &"2".into(), now + 4 * PAUSE_FOR_EACH);
        assert_eq!(std::mem::take(&mut writes.retries).len(), 2);
    }
}
