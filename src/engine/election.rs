//! Leader election: when a lease may be taken, how long its holder may write, and when it gives the lease up.
//!
//! The rules are those of `k8s.io/client-go/tools/leaderelection`. A lease expires once the object has not changed for its whole
//! duration, by the observer's clock (never compared with another's), and a holder that cannot renew it stops well before. In
//! addition, an instance whose watches show nothing neither takes nor keeps the lease, and exits after minutes.

use std::time::{Duration, Instant};

use super::freshness::MAX_AGE;

/// The lease's duration, counted from its renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long after its last renewal a holder may write.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How long an instance runs without watch events. In an outage of the API server a leader ends sooner: it cannot renew the lease.
const BLIND: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseClaim {
    Renew,
    /// No one holds it, or its holder has not renewed it in time.
    Take,
    Wait,
}

impl LeaseClaim {
    /// What the instance `own` does about a Lease with this holder (empty for none) that has been `unchanged` for so long.
    pub fn of(own: &str, holder: &str, duration: Option<Duration>, unchanged: Duration) -> Self {
        if holder == own {
            Self::Renew
        } else if holder.is_empty() || unchanged >= duration.unwrap_or(LEASE_DURATION) {
            Self::Take
        } else {
            Self::Wait
        }
    }
}

/// Whether an instance may stand for election: it has synced, and a watch has shown something since bookmarks were last due.
pub fn may_stand(has_synced: bool, seen: Instant, now: Instant) -> bool {
    has_synced && now.saturating_duration_since(seen) <= MAX_AGE
}

/// Whether an instance with its last watch event at `seen` must exit: its connection may rely on an outdated CA, token or address.
pub fn is_blind(seen: Instant, now: Instant) -> bool {
    now.saturating_duration_since(seen) > BLIND
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lease is ours, as of when the renewal was requested.
    Held {
        asked: Instant,
    },
    Taken,
    /// The outcome is unknown.
    Failed,
}

/// Why a leader stops leading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Another instance has the lease. No more writes.
    Taken,
    /// The lease could not be renewed in time. No more writes.
    RanOut,
    /// The lease is ours, but no watch has shown anything for minutes. Requests under way may end; another instance may see more.
    Blind,
}

#[derive(Debug, Clone, Copy)]
pub struct Term {
    renewed: Instant,
}

impl Term {
    /// A term whose lease was requested at this time.
    pub fn new(asked: Instant) -> Self {
        Self { renewed: asked }
    }

    /// Until when the leader may write without another renewal.
    pub fn ends(&self) -> Instant {
        self.renewed + RENEW_DEADLINE
    }

    /// Takes in an attempt to renew the lease, and says why the term is over, if it is. `seen` is the time of the last watch event.
    pub fn after(&mut self, attempt: Renewal, seen: Instant, now: Instant) -> Result<(), Loss> {
        match attempt {
            Renewal::Taken => return Err(Loss::Taken),
            Renewal::Held { asked } => self.renewed = asked,
            Renewal::Failed => {}
        }
        if now >= self.ends() {
            Err(Loss::RanOut)
        } else if is_blind(seen, now) {
            Err(Loss::Blind)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_lease_is_taken_only_when_no_holder_renews_it() {
        #[rustfmt::skip]
        let cases = [
            ("ours", "me", Some(15), 0, LeaseClaim::Renew),
            ("ours, though run out", "me", Some(15), 60, LeaseClaim::Renew),
            ("released", "", Some(1), 0, LeaseClaim::Take),
            ("never held", "", None, 0, LeaseClaim::Take),
            ("another's", "other", Some(15), 14, LeaseClaim::Wait),
            ("another's, run out", "other", Some(15), 15, LeaseClaim::Take),
            ("another's, for longer", "other", Some(60), 15, LeaseClaim::Wait),
            ("another's, without a duration", "other", None, 15, LeaseClaim::Take),
        ];
        for (name, holder, duration, unchanged, expected) in cases {
            let (duration, unchanged) = (duration.map(Duration::from_secs), unchanged * SECOND);
            let claim = LeaseClaim::of("me", holder, duration, unchanged);
            assert_eq!(claim, expected, "{name}");
        }
    }

    #[test]
    fn only_an_instance_with_current_watches_stands_for_election() {
        let now = Instant::now();
        for (name, has_synced, silent, expected) in [
            ("everything seen once, and something lately", true, 20, true),
            ("not everything has been seen", false, 0, false),
            ("nothing lately", true, 21, false),
        ] {
            let later = now + silent * SECOND;
            assert_eq!(may_stand(has_synced, now, later), expected, "{name}");
        }
    }

    #[test]
    fn a_term_lasts_as_long_as_the_lease_is_renewed_and_something_is_seen() {
        let start = Instant::now();
        let held = |at: u32| Renewal::Held {
            asked: start + at * SECOND,
        };
        #[rustfmt::skip]
        let cases = [
            ("renewed", held(2), 2, 3, Ok(()), 12),
            ("failed once", Renewal::Failed, 7, 7, Ok(()), 10),
            ("failed for too long", Renewal::Failed, 9, 10, Err(Loss::RanOut), 10),
            // The term counts from the request.
            ("renewed, and heard of too late", held(2), 2, 12, Err(Loss::RanOut), 12),
            ("another's", Renewal::Taken, 2, 2, Err(Loss::Taken), 10),
            ("nothing seen for two minutes", held(119), 0, 120, Ok(()), 129),
            ("nor after", held(120), 0, 121, Err(Loss::Blind), 130),
        ];
        for (name, attempt, seen, now, expected, ends) in cases {
            let mut term = Term::new(start);
            let result = term.after(attempt, start + seen * SECOND, start + now * SECOND);
            assert_eq!(result, expected, "{name}");
            assert_eq!(term.ends(), start + ends * SECOND, "{name}");
        }
    }
}
