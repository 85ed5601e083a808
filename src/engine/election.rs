//! Who leads: when a lease may be taken, how long its holder may write, and when it gives the lease up.
//!
//! The rules are those of `k8s.io/client-go/tools/leaderelection`: a holder's lease runs out when the object has not
//! changed for its whole duration, by the clock of the one who watches it, and a holder that cannot renew it stops
//! well before. Clocks of different machines are never compared. What is added: an instance that sees nothing neither
//! takes the lease nor keeps it, and ends after minutes.

use std::time::{Duration, Instant};

use super::certainty::MAX_AGE;

/// How long a lease is good for after it was renewed.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long after its last renewal a holder goes on writing.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How long an instance that sees nothing goes on. An API server that is away for longer ends a leader anyway: then the lease
/// cannot be renewed either.
const BLIND: Duration = Duration::from_secs(120);

/// A Lease as it was read.
#[derive(Debug, Clone, Copy)]
pub struct LeaseReading<'a> {
    /// Whose it is; empty for nobody's.
    pub holder: &'a str,
    /// How long it is good for, if it says so.
    pub duration: Option<Duration>,
    /// For how long it has been as it is.
    pub unchanged: Duration,
}

/// What is to be done about a Lease that somebody may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseClaim {
    /// It is ours.
    Renew,
    /// Nobody holds it, or whoever did has not renewed it in time.
    Take,
    /// It is another's.
    Wait,
}

impl LeaseReading<'_> {
    /// Decides what is to be done about it.
    #[must_use]
    pub fn claim(self, identity: &str) -> LeaseClaim {
        if self.holder == identity {
            LeaseClaim::Renew
        } else if self.holder.is_empty()
            || self.unchanged >= self.duration.unwrap_or(LEASE_DURATION)
        {
            LeaseClaim::Take
        } else {
            LeaseClaim::Wait
        }
    }
}

/// Whether an instance may stand for election: it has seen everything once, and something since bookmarks were last due.
#[must_use]
pub fn may_stand(has_synced: bool, seen: Instant, now: Instant) -> bool {
    has_synced && now.saturating_duration_since(seen) <= MAX_AGE
}

/// Whether an instance that last saw something at `seen` sees nothing any more. What it reaches the API server by may be stale:
/// a CA, a token, an address.
#[must_use]
pub fn is_blind(seen: Instant, now: Instant) -> bool {
    now.saturating_duration_since(seen) > BLIND
}

/// What came of an attempt to renew the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It is ours, as of when it was asked for.
    Held {
        /// When that was.
        asked: Instant,
    },
    /// It is another's.
    Taken,
    /// Nobody knows.
    Failed,
}

/// Why a leader stops leading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Another instance has the lease. Nothing may be written any more.
    Taken,
    /// The lease could not be renewed in time. Nothing may be written any more.
    RanOut,
    /// The lease is ours, but no watch has shown anything for minutes. What is under way may end; then another instance may
    /// see more.
    Blind,
}

/// The time for which an instance leads.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    renewed: Instant,
}

impl Term {
    /// One that begins with a lease that was asked for then.
    #[must_use]
    pub fn new(asked: Instant) -> Self {
        Self { renewed: asked }
    }

    /// Until when may be written without another renewal.
    #[must_use]
    pub fn ends(&self) -> Instant {
        self.renewed + RENEW_DEADLINE
    }

    /// Takes in an attempt to renew the lease, where a watch last showed something at `seen`; answers whether the term is
    /// over.
    ///
    /// # Errors
    /// When it is: why.
    pub fn after(&mut self, attempt: Attempt, seen: Instant, now: Instant) -> Result<(), Loss> {
        match attempt {
            Attempt::Taken => return Err(Loss::Taken),
            Attempt::Held { asked } => self.renewed = asked,
            Attempt::Failed => {}
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
    fn a_lease_is_taken_only_when_nobody_keeps_it() {
        for (name, holder, duration, unchanged, expected) in [
            ("ours", "me", Some(15), 0, LeaseClaim::Renew),
            (
                "ours, though run out",
                "me",
                Some(15),
                60,
                LeaseClaim::Renew,
            ),
            ("released", "", Some(1), 0, LeaseClaim::Take),
            ("never held", "", None, 0, LeaseClaim::Take),
            ("another's", "other", Some(15), 14, LeaseClaim::Wait),
            (
                "another's, run out",
                "other",
                Some(15),
                15,
                LeaseClaim::Take,
            ),
            (
                "another's, for longer",
                "other",
                Some(60),
                15,
                LeaseClaim::Wait,
            ),
            (
                "another's, without a duration",
                "other",
                None,
                15,
                LeaseClaim::Take,
            ),
        ] {
            let reading = LeaseReading {
                holder,
                duration: duration.map(Duration::from_secs),
                unchanged: Duration::from_secs(unchanged),
            };
            assert_eq!(reading.claim("me"), expected, "{name}");
        }
    }

    #[test]
    fn only_who_sees_stands_for_election() {
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
        let held = |at: u32| Attempt::Held {
            asked: start + at * SECOND,
        };
        for (name, attempt, seen, now, expected, ends) in [
            ("renewed", held(2), 2, 3, Ok(()), 12),
            ("failed once", Attempt::Failed, 7, 7, Ok(()), 10),
            (
                "failed for too long",
                Attempt::Failed,
                9,
                10,
                Err(Loss::RanOut),
                10,
            ),
            // It counts from when it was asked for.
            (
                "renewed, and heard of too late",
                held(2),
                2,
                12,
                Err(Loss::RanOut),
                12,
            ),
            ("another's", Attempt::Taken, 2, 2, Err(Loss::Taken), 10),
            (
                "nothing seen for two minutes",
                held(119),
                0,
                120,
                Ok(()),
                129,
            ),
            ("nor after", held(120), 0, 121, Err(Loss::Blind), 130),
        ] {
            let mut term = Term::new(start);
            let result = term.after(attempt, start + seen * SECOND, start + now * SECOND);
            assert_eq!(result, expected, "{name}");
            assert_eq!(term.ends(), start + ends * SECOND, "{name}");
        }
    }
}
