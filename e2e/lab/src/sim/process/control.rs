//! What is done to a process: it is killed, told to stop, frozen, suspended and cut off.

use jiff::SignedDuration;
use nodegate::engine::io::Input;
use nodegate::engine::kind::Watch;

use super::flights::Stage;
use super::{Process, Sleep, World};
use crate::sim::election::Standing;
use crate::sim::law::Report;
use crate::sim::time::{Time, s};

/// How long what is under way may take to end, once a process has been told to stop.
const STOPPING: Time = s(5);

impl Process<'_> {
    /// The process dies now, and starts anew after a while. What is under way may arrive or not.
    pub fn die(&mut self, world: &mut World<'_>, down: Time) {
        let now = world.cluster.now();
        if self.machine.take().is_none() {
            return;
        }
        let life = self.life;
        world.note(self.id(), || "ends".into());
        self.life += 1;
        self.starts_at = now + down;
        world.trouble_until(self.starts_at);
        self.standing = Standing::default();
        self.renewed_at = None;
        self.inputs.clear();
        self.stopping = None;
        self.was_told_to_stop = false;
        if let Some(Sleep {
            since,
            is_suspended: true,
            ..
        }) = self.asleep.take()
        {
            self.clocks.suspended(now.saturating_sub(since));
        }
        let rng = &mut self.rng;
        self.flights.retain(|flight| {
            flight.life != life || (matches!(flight.stage, Stage::Sent(_)) && rng.chance(50))
        });
        self.report = Report::default();
    }

    /// Tells it to stop.
    pub fn stop(&mut self, now: Time, down: Time) {
        if self.machine.is_some() && self.stopping.is_none() {
            self.stopping = Some((now + STOPPING, down));
            self.inputs.push(Input::Stop);
        }
    }

    /// It stands still until then.
    pub fn sleep(&mut self, now: Time, until: Time, is_suspended: bool) {
        if self.machine.is_some() && self.asleep.is_none() {
            self.asleep = Some(Sleep {
                since: now,
                until,
                is_suspended,
            });
        }
    }

    /// Sets its wall clock.
    pub fn set_clock(&mut self, by: SignedDuration) {
        self.clocks.step(by);
    }

    /// It cannot reach the API server until then.
    pub fn cut_off(&mut self, now: Time, until: Time) {
        self.cut_off_until = self.cut_off_until.max(until);
        for feed in &mut self.feeds {
            feed.stand_still(now, until);
        }
    }

    /// One of its watches stands still from then until then.
    pub fn stand_still(&mut self, watch: Watch, from: Time, until: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.stand_still(from, until);
        }
    }

    /// One of its watches shows everything later by this, until then.
    pub fn be_late(&mut self, watch: Watch, until: Time, by: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.be_late(until, by);
        }
    }

    /// The API server's view of what one of its watches is about stands at this revision until then.
    pub fn lag(&mut self, watch: Watch, revision: u64, until: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.lag(revision, until);
        }
    }

    /// The connection of one of its watches dies without a word.
    pub fn lose(&mut self, watch: Watch) {
        if let Some(feed) = self.feed(watch) {
            feed.die();
        }
    }

    /// The API server cannot go on with one of its watches.
    pub fn expire(&mut self, watch: Watch, now: Time) {
        let mut seen = Vec::new();
        if self.machine.is_some()
            && let Some(feed) = self.feed(watch)
        {
            feed.expire(now, &mut seen);
        }
        self.inputs.extend(seen.into_iter().map(Input::Seen));
    }
}
