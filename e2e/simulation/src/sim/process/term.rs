//! A process's part in the election, and its end.

use nodegate_engine::election::{LEASE_DURATION, Loss, Renewal, Term, may_stand};
use nodegate_engine::io::Input;

use super::flights::STORM;
use super::{Process, World};
use crate::sim::election::RETRY_PERIOD;
use crate::sim::fault::Trouble;
use crate::sim::time::{Time, s};

/// How long a process is down after it has lost the lease.
const RESTART: Time = s(1);

impl Process {
    pub(super) fn elect(&mut self, world: &mut World<'_>) {
        let now = world.cluster.now();
        let Some(engine) = &self.engine else { return };
        if world.instances == 1 || self.stopping.is_some() {
            self.attempt_at = Time::MAX;
            return;
        }
        let clock = self.clocks.now(now).monotonic;
        let shown_at = self.feeds.iter().map(|feed| feed.shown_at).max();
        let shown = self.clocks.now(shown_at.unwrap_or_default()).monotonic;
        let is_due = self.attempt_at <= now;
        let is_over = |term: &Term| term.ends() <= clock;
        if !is_due && !self.standing.term.as_ref().is_some_and(is_over) {
            return;
        }
        if is_due {
            self.attempt_at = now + RETRY_PERIOD;
        }
        let leads = self.standing.term.is_some();
        if !leads && !may_stand(engine.has_synced(), shown, clock) {
            return;
        }
        let is_refused = now < self.cut_off_until
            || (world
                .storm()
                .is_some_and(|trouble| trouble != Trouble::Conflict)
                && self.rng.chance(STORM));
        let attempt = if !is_due || is_refused {
            Renewal::Failed
        } else {
            let id = self.id();
            self.standing.attempt(&mut world.lease, id, now, clock)
        };
        match attempt {
            Renewal::Held { .. } => self.renewed_at = Some(now),
            Renewal::Taken => self.renewed_at = None,
            Renewal::Failed => {}
        }
        match (&mut self.standing.term, attempt) {
            (Some(term), attempt) => match term.after(attempt, shown, clock) {
                Ok(()) if matches!(attempt, Renewal::Held { .. }) => self.inputs.push(Input::Leads),
                Ok(()) => {}
                Err(Loss::Blind) => self.stop(now, RESTART),
                Err(Loss::Taken | Loss::RanOut) => self.die(world, RESTART),
            },
            (term @ None, Renewal::Held { asked }) => {
                *term = Some(Term::new(asked));
                self.inputs.push(Input::Leads);
                self.report.leads_since = Some(now);
                world.note(self.id(), || "leads".into());
            }
            (None, _) => {}
        }
        let term = self.standing.term.as_ref();
        self.report.leads_until = term.map(|it| now + it.ends().saturating_duration_since(clock));
    }

    /// Whether its lease has expired or another instance holds it, and it could know.
    pub(super) fn has_lost_its_lease(&self, world: &World<'_>) -> bool {
        let now = world.cluster.now();
        let is_good = self.renewed_at.is_some_and(|at| now <= at + LEASE_DURATION);
        world.instances > 1 && !is_good && self.woke_at != Some(now)
    }

    pub(super) fn end_if_stopped(&mut self, world: &mut World<'_>) {
        let now = world.cluster.now();
        let (Some((until, down)), Some(engine)) = (self.stopping, &self.engine) else {
            return;
        };
        if self.inputs.is_empty() && (engine.is_idle() || until <= now) {
            world.lease.release(self.id());
            self.die(world, down);
        }
    }
}
