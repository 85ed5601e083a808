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
    /// It is ours; or it was, and is gone: it is made again.
    Renew,
    /// No one holds it, or its holder has not renewed it in time.
    Take,
    /// Someone else holds it, or held it until it was deleted.
    Wait,
}

/// A Lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub uid: String,
    /// New with every write.
    pub version: String,
    /// Empty if no one holds it.
    pub holder: String,
    pub duration: Option<Duration>,
}

/// What the instance `own` has seen of the Lease.
#[derive(Debug, Clone)]
pub struct Sightings {
    own: String,
    /// The last one, and since when it has been unchanged.
    last: Option<(Sighting, Instant)>,
    is_gone: bool,
    /// Since when this instance has held it, if it does, without a break in which another one could.
    held_since: Option<Instant>,
    /// Until when to leave it to the holder of a Lease that is gone; it may make it again, unseen, even later.
    former: Option<Instant>,
}

impl Sightings {
    pub fn new(own: String) -> Self {
        Self {
            own,
            last: None,
            is_gone: false,
            held_since: None,
            former: None,
        }
    }

    /// Notes the Lease as it is now; `None` if there is none.
    pub fn see(&mut self, lease: Option<Sighting>, now: Instant) {
        let known = self.last.as_ref().filter(|_| !self.is_gone);
        let known = known.map(|(known, _)| known);
        let is_same = (known.zip(lease.as_ref())).is_some_and(|(known, it)| known.uid == it.uid);
        let was_ours = known.is_some_and(|it| it.holder == self.own);
        let is_ours = lease.as_ref().is_some_and(|it| it.holder == self.own);
        if let Some(known) = known
            && !is_same
            && !was_ours
            && !known.holder.is_empty()
        {
            self.former = Some(now + known.duration.unwrap_or(LEASE_DURATION));
        } else if is_same && is_ours && !was_ours {
            // It was handed over, or has run out.
            self.former = None;
        }
        let held_since = self.held_since.filter(|_| is_same && was_ours);
        self.held_since = is_ours.then(|| held_since.unwrap_or(now));
        self.is_gone = lease.is_none();
        if let Some(lease) = lease
            && self.last.as_ref().is_none_or(|(known, _)| *known != lease)
        {
            self.last = Some((lease, now));
        }
    }

    /// Whether this instance, which holds the Lease, may begin to lead. One that it made in place of another's must have lasted as
    /// long as that one may go on after its last renewal.
    pub fn may_lead(&self, now: Instant) -> bool {
        let lasts = |since: Instant| since + RENEW_DEADLINE <= now;
        self.former.is_none() || self.held_since.is_some_and(lasts)
    }

    /// Whether this instance has held the Lease since before this time. Only then it was renewed, and not made again.
    pub fn held_before(&self, asked: Instant) -> bool {
        self.held_since.is_some_and(|since| since < asked)
    }

    /// Who holds the Lease, or held it last if it is gone; empty for no one.
    pub fn holder(&self) -> &str {
        self.last.as_ref().map_or("", |(lease, _)| &lease.holder)
    }

    /// What to do now.
    pub fn claim(&self, now: Instant) -> LeaseClaim {
        let runs_out = self
            .last
            .as_ref()
            .filter(|_| !self.is_gone)
            .map(|(lease, since)| *since + lease.duration.unwrap_or(LEASE_DURATION));
        let is_held = !self.holder().is_empty() && runs_out.is_some_and(|until| now < until);
        if self.holder() == self.own {
            LeaseClaim::Renew
        } else if is_held || self.former.is_some_and(|until| now < until) {
            LeaseClaim::Wait
        } else {
            LeaseClaim::Take
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

    /// The Lease with this UID, in its first version.
    fn lease(uid: &str, holder: &str, duration: Option<u64>) -> Sighting {
        Sighting {
            uid: uid.into(),
            version: "1".into(),
            holder: holder.into(),
            duration: duration.map(Duration::from_secs),
        }
    }

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
        let start = Instant::now();
        for (name, holder, duration, unchanged, expected) in cases {
            let mut seen = Sightings::new("me".into());
            for second in [0, unchanged] {
                seen.see(Some(lease("1", holder, duration)), start + second * SECOND);
            }
            assert_eq!(seen.claim(start + unchanged * SECOND), expected, "{name}");
        }
    }

    #[test]
    fn whoever_saw_another_hold_a_lease_waits_for_that_one_whatever_becomes_of_the_lease() {
        let (other, ours) = (lease("1", "other", Some(15)), lease("1", "me", Some(15)));
        let again = |holder| Some(lease("2", holder, Some(15)));
        #[rustfmt::skip]
        let cases = [
            ("never seen", None, None, 0, LeaseClaim::Take),
            ("deleted", Some(&other), None, 14, LeaseClaim::Wait),
            ("deleted, and not made again in time", Some(&other), None, 15, LeaseClaim::Take),
            ("made again without a holder", Some(&other), again(""), 14, LeaseClaim::Wait),
            ("made again without a holder, long ago", Some(&other), again(""), 15, LeaseClaim::Take),
            ("made again by a third", Some(&other), again("third"), 14, LeaseClaim::Wait),
            ("ours, deleted", Some(&ours), None, 0, LeaseClaim::Renew),
            ("ours, and made again by another", Some(&ours), again("other"), 0, LeaseClaim::Wait),
            ("ours, and made again without a holder", Some(&ours), again(""), 0, LeaseClaim::Take),
        ];
        let start = Instant::now();
        for (name, before, after, later, expected) in cases {
            let mut seen = Sightings::new("me".into());
            seen.see(before.cloned(), start);
            // The holder may have renewed it just before it went: what counts is when it is first seen to be gone.
            let gone = start + 5 * SECOND;
            seen.see(after.clone(), gone);
            seen.see(after, gone + later * SECOND);
            assert_eq!(seen.claim(gone + later * SECOND), expected, "{name}");
        }
    }

    #[test]
    fn who_takes_a_lease_that_is_gone_leads_once_it_has_held_it_without_a_break() {
        let start = Instant::now();
        let mut seen = Sightings::new("me".into());
        seen.see(Some(lease("1", "other", Some(15))), start);
        // Somebody deletes it again between two looks, however often it is made.
        for second in 1..=16 {
            seen.see(None, start + second * SECOND);
        }
        assert_eq!(seen.claim(start + 16 * SECOND), LeaseClaim::Take);
        #[rustfmt::skip]
        let looks = [
            (16, Some("8"), false, false),
            (18, Some("8"), false, true),
            (20, None, false, false),
            (20, Some("9"), false, false),
            (29, Some("9"), false, true),
            (30, Some("9"), true, true),
        ];
        for (second, uid, may_lead, is_renewed) in looks {
            let now = start + second * SECOND;
            seen.see(uid.map(|uid| lease(uid, "me", Some(15))), now);
            assert_eq!(seen.claim(now), LeaseClaim::Renew);
            assert_eq!(seen.may_lead(now), may_lead, "{second}");
            assert_eq!(seen.held_before(now), is_renewed, "{second}");
        }
        // One that was handed over is led by at once, whatever was before.
        seen = Sightings::new("me".into());
        for (uid, holder) in [("1", "other"), ("2", "other"), ("2", ""), ("2", "me")] {
            seen.see(Some(lease(uid, holder, Some(15))), start);
        }
        assert!(seen.may_lead(start));
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
