//! What may be written while the API server is unreachable: one probe after each pause, which gates another node only if nothing
//! else is to be written. A state that only a write can end always permits one.

use std::time::Instant;

use nodegate_core::backoff::{Backoff, Pauses};

/// Whether the API server is reachable, as far as requests and watches show.
#[derive(Debug, Default)]
pub(super) struct Outage {
    state: Reachability,
    retry: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reachability {
    #[default]
    Reachable,
    Unreachable,
    Unproven,
}

impl Outage {
    /// Notes a request that did not reach the API server; returns whether the outage is new.
    pub(super) fn unreachable(&mut self, now: Instant) -> bool {
        // Requests that were under way together fail for the same reason.
        if self.state == Reachability::Reachable || self.retry.not_before(now).is_none() {
            self.retry.failed(Pauses::UNREACHABLE, now);
        }
        std::mem::replace(&mut self.state, Reachability::Unreachable) != Reachability::Unreachable
    }

    /// Notes an answer to one of our requests, even an error; returns whether it ends an outage.
    pub(super) fn answered(&mut self) -> bool {
        if self.state == Reachability::Reachable {
            return false;
        }
        self.retry = Backoff::default();
        std::mem::take(&mut self.state) == Reachability::Unreachable
    }

    /// Notes a sign of life on another connection: a watch event or a lease renewal. Returns whether it ends an outage.
    pub(super) fn on_sign_of_life(&mut self) -> bool {
        let is_news = self.state == Reachability::Unreachable;
        if is_news {
            self.state = Reachability::Unproven;
        }
        is_news
    }

    pub(super) fn is_on(&self) -> bool {
        self.state == Reachability::Unreachable
    }

    /// How many writes may be under way at a time, where `usual` is the limit without an outage.
    pub(super) fn permits(&self, usual: usize, now: Instant) -> usize {
        match (self.state, self.retry.not_before(now)) {
            (Reachability::Reachable, _) => usual,
            (_, None) => usual.min(1),
            (_, Some(_)) => 0,
        }
    }

    pub(super) fn next_try(&self, now: Instant) -> Option<Instant> {
        let next = self.retry.not_before(now);
        next.filter(|_| self.state != Reachability::Reachable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens in a case.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Unreachable,
        Answered,
        SignOfLife,
        Later,
    }
    use Event::{Answered, Later, SignOfLife, Unreachable};

    #[test]
    fn an_outage_ends_with_any_success_and_never_waits_for_a_write_alone() {
        // Events, whether the last one is news, whether the outage is on, writes allowed of 64.
        #[rustfmt::skip]
        let cases: &[(&str, &[Event], bool, bool, usize)] = &[
            ("at first", &[], false, false, 64),
            ("a write fails", &[Unreachable], true, true, 0),
            ("others that were under way", &[Unreachable, Unreachable], false, true, 0),
            ("after the pause one write tries", &[Unreachable, Later], false, true, 1),
            ("which fails too", &[Unreachable, Later, Unreachable], false, true, 0),
            ("or succeeds", &[Unreachable, Later, Answered], true, false, 64),
            ("a write that was late succeeds", &[Unreachable, Answered], true, false, 64),
            ("a watch shows something", &[Unreachable, SignOfLife], true, false, 0),
            ("and again", &[Unreachable, SignOfLife, SignOfLife], false, false, 0),
            ("writes still go one by one", &[Unreachable, SignOfLife, Later], false, false, 1),
            ("until one succeeds", &[Unreachable, SignOfLife, Later, Answered], false, false, 64),
            ("or fails", &[Unreachable, SignOfLife, Later, Unreachable], true, true, 0),
            ("nothing is wrong", &[SignOfLife, Answered], false, false, 64),
        ];
        for (name, events, news, is_on, permits) in cases {
            let mut outage = Outage::default();
            let mut now = Instant::now();
            let mut is_news = false;
            for event in *events {
                is_news = match event {
                    Unreachable => outage.unreachable(now),
                    Answered => outage.answered(),
                    SignOfLife => outage.on_sign_of_life(),
                    Later => {
                        now = outage.next_try(now).expect(name);
                        false
                    }
                };
            }
            let seen = (is_news, outage.is_on(), outage.permits(64, now));
            assert_eq!(seen, (*news, *is_on, *permits), "{name}");
        }
    }
}
