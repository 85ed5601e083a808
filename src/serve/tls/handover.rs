//! When another certificate may be served: not before clients have had time to hear of its CA. Pure.

use std::time::{Duration, Instant};

/// How long the API server may take to notice that it is to trust another CA.
const SETTLING: Duration = Duration::from_secs(3);

/// The certificate that is to take the place of the one in use.
#[derive(Debug)]
pub struct Handover<C> {
    /// The next one, and when this process first saw that its CA is known: whoever made that known did so before.
    next: Option<(C, Instant)>,
}

impl<C> Default for Handover<C> {
    fn default() -> Self {
        Self { next: None }
    }
}

impl<C: PartialEq + Clone> Handover<C> {
    /// How long to wait before `next`, whose CA is known to the API server now, takes the place of `current`. Nothing
    /// where there is none: whoever is not believed yet is no worse than nobody.
    pub fn wait(&mut self, current: Option<&C>, next: &C, now: Instant) -> Duration {
        if current.is_none_or(|current| current == next) {
            self.next = None;
            return Duration::ZERO;
        }
        let since = match &self.next {
            Some((known, since)) if known == next => *since,
            _ => now,
        };
        self.next = Some((next.clone(), since));
        SETTLING.saturating_sub(now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_waits_until_its_ca_has_been_known_for_a_while() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut handover = Handover::default();
        for (what, at, current, next, expected) in [
            ("the first one is served at once", 0, None, "a", 0),
            ("the one in use", 10, Some("a"), "a", 0),
            ("another one, whoever made it", 10, Some("a"), "b", 3),
            ("a moment later", 12, Some("a"), "b", 1),
            ("yet another one", 13, Some("a"), "c", 3),
            ("back to the one before", 14, Some("a"), "b", 3),
            ("in time", 17, Some("a"), "b", 0),
            ("in use", 18, Some("b"), "b", 0),
            ("the next round", 100, Some("b"), "c", 3),
        ] {
            let waits = handover.wait(current.as_ref(), &next, start + at * second);
            assert_eq!(waits, expected * second, "{what}");
        }
    }
}
