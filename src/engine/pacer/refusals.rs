//! What the API server refused of one node's changes. After a refusal of the whole plan, each taint is written alone, so that
//! the others go through and the refusal is attributed to the right one.

use std::time::Instant;

use super::slot::{AfterWrite, WriteSlot};
use crate::engine::error::RequestError;

/// The refusals on one node; `T` identifies the taint.
#[derive(Debug)]
pub(crate) struct Refusals<T> {
    /// The whole plan was refused, because of an unknown part of it.
    is_split: bool,
    refused: Vec<(T, WriteSlot)>,
}

impl<T> Default for Refusals<T> {
    fn default() -> Self {
        Self {
            is_split: false,
            refused: Vec::new(),
        }
    }
}

impl<T: PartialEq> Refusals<T> {
    /// Whether the whole plan may be written at once.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_split && self.refused.is_empty()
    }

    /// Notes that a plan of several parts was refused.
    pub(crate) fn split(&mut self) {
        self.is_split = true;
    }

    /// Handles the end of a write of one part. If it was refused, it waits until this time at least.
    pub(crate) fn ended(
        &mut self,
        what: T,
        error: Option<&RequestError>,
        not_before: Option<Instant>,
        now: Instant,
    ) -> AfterWrite {
        let known = self.refused.iter().position(|(known, _)| *known == what);
        if error.is_none() {
            known.map(|known| self.refused.swap_remove(known));
            return AfterWrite::Done;
        }
        let known = known.unwrap_or_else(|| {
            self.refused.push((what, WriteSlot::default()));
            self.refused.len() - 1
        });
        let slot = &mut self.refused[known].1;
        let verdict = slot.judge(error, now);
        if let Some(at) = not_before {
            slot.wait_until(at);
        }
        verdict
    }

    /// Lets all parts be retried at this time.
    pub(crate) fn retry_at(&mut self, at: Instant) {
        for (_, slot) in &mut self.refused {
            slot.retry_at(at);
        }
    }

    /// Forgets all but these parts, the only ones that are still to be written. If there is just one, it is the whole plan.
    pub(crate) fn retain(&mut self, parts: &[T]) {
        self.refused.retain(|(what, _)| parts.contains(what));
        self.is_split &= parts.len() > 1;
    }

    /// When this part may be retried; `None` for now.
    pub(crate) fn not_before(&self, what: &T, now: Instant) -> Option<Instant> {
        self.find(what)?.not_before(now)
    }

    /// How often in a row this part was refused.
    pub(crate) fn times(&self, what: &T) -> u32 {
        self.find(what).map_or(0, WriteSlot::refusals)
    }

    fn find(&self, what: &T) -> Option<&WriteSlot> {
        let mut refused = self.refused.iter();
        refused.find(|(it, _)| it == what).map(|(_, known)| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn refused(refusals: &mut Refusals<&'static str>, what: &'static str, now: Instant) -> u32 {
        let error = RequestError::Failed("no".into());
        match refusals.ended(what, Some(&error), None, now) {
            AfterWrite::Refused { before, .. } => before,
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn a_refused_part_holds_up_itself_alone() {
        let now = Instant::now();
        let mut refusals = Refusals::default();
        assert!(refusals.is_empty());
        refusals.split();
        assert!(!refusals.is_empty());
        for part in ["a", "b"] {
            assert_eq!(refusals.not_before(&part, now), None);
        }
        assert_eq!(refused(&mut refusals, "a", now), 0);
        assert_eq!(refusals.ended("b", None, None, now), AfterWrite::Done);
        assert!(refusals.not_before(&"a", now).is_some());
        assert_eq!(refusals.not_before(&"b", now), None);
        // One part is left, so it is the whole plan, with its own pauses.
        refusals.retain(&["a"]);
        assert!(!refusals.is_empty());
        let later = now + Duration::from_secs(1);
        assert_eq!(refusals.not_before(&"a", later), None);
        assert_eq!(refused(&mut refusals, "a", later), 1);
        assert_eq!(refusals.times(&"a"), 2);
        assert_eq!(refusals.ended("a", None, None, later), AfterWrite::Done);
        assert!(refusals.is_empty());
    }

    #[test]
    fn what_is_not_to_be_written_any_more_is_forgotten() {
        let now = Instant::now();
        let mut refusals = Refusals::default();
        refusals.split();
        refused(&mut refusals, "a", now);
        refusals.retain(&["b", "c"]);
        assert_eq!(refusals.times(&"a"), 0);
        assert!(!refusals.is_empty(), "b or c may be what was refused");
        refusals.retain(&[]);
        assert!(refusals.is_empty());
    }
}
