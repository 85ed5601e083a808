//! Leader election: the Lease, and one process's view of it. The product's own code decides.

use std::time::{Duration, Instant};

use nodegate_engine::election::{LEASE_DURATION, LeaseClaim, Renewal, Sighting, Sightings, Term};

use super::time::Time;

/// How often the leader renews the lease, and the others check it.
pub(super) const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// One life of a process: its instance, and how often that had been started before. Each life has its own identity.
pub(super) type Life = (usize, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Lease {
    holder: Option<Life>,
    /// Grows with every write.
    version: u64,
    /// How often it has been deleted.
    deletions: u64,
    is_gone: bool,
    /// A former holder that believes until this time that it still holds the lease.
    deceived: Option<(Life, Time)>,
}

impl Lease {
    /// Takes the lease from its holder, which does not notice until then.
    pub(super) fn betray(&mut self, until: Time) {
        if let Some(holder) = self.holder.take() {
            self.deceived = Some((holder, until));
            self.version += 1;
        }
    }

    /// Somebody deletes the Lease.
    pub(super) fn delete(&mut self) {
        self.holder = None;
        self.deletions += 1;
        self.is_gone = true;
    }

    /// Releases the lease, if this life holds it.
    pub(super) fn release(&mut self, life: Life) {
        if self.holder == Some(life) {
            self.holder = None;
            self.version += 1;
        }
    }

    fn is_deceived(&self, life: Life, now: Time) -> bool {
        self.deceived
            .is_some_and(|(deceived, until)| deceived == life && now < until)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// What this life has seen of the Lease.
    seen: Option<Sightings>,
    /// The term for which this process leads.
    pub term: Option<Term>,
}

impl Standing {
    /// Tries to take or renew the lease, at `now` by the cluster's clock and `clock` by the process's monotonic one.
    pub(super) fn attempt(
        &mut self,
        lease: &mut Lease,
        life: Life,
        now: Time,
        clock: Instant,
    ) -> Renewal {
        if lease.is_deceived(life, now) {
            return Renewal::Held { asked: clock };
        }
        let name = |(instance, life): Life| format!("{instance}-{life}");
        let sighting = |lease: &Lease| Sighting {
            uid: lease.deletions.to_string(),
            version: lease.version.to_string(),
            holder: lease.holder.map(name).unwrap_or_default(),
            duration: Some(LEASE_DURATION),
        };
        let seen = self.seen.get_or_insert_with(|| Sightings::new(name(life)));
        seen.see((!lease.is_gone).then(|| sighting(lease)), clock);
        let claim = seen.claim(clock);
        if claim == LeaseClaim::Wait || (self.term.is_some() && claim == LeaseClaim::Take) {
            return Renewal::Taken;
        }
        lease.holder = Some(life);
        lease.version += 1;
        lease.is_gone = false;
        seen.see(Some(sighting(lease)), clock);
        let counts = match self.term {
            None => seen.may_lead(clock),
            Some(_) => seen.held_before(clock),
        };
        if !counts {
            return Renewal::Failed;
        }
        Renewal::Held { asked: clock }
    }
}
