//! How faults act on a process.

use jiff::SignedDuration;
use nodegate::engine::io::Input;
use nodegate::engine::kind::Watch;

use super::flights::Stage;
use super::{Process, Sleep, World};
use crate::sim::election::Standing;
use crate::sim::law::Report;
use crate::sim::time::{Time, s};

/// How long a stopped process has to finish its requests.
const STOPPING: Time = s(5);

impl Process<'_> {
    /// Kills the process; it restarts after a while. Its requests under way may arrive or not.
    pub(crate) fn die(&mut self, world: &mut World<'_>, down: Time) {
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

    /// Asks the process to stop.
    pub(crate) fn stop(&mut self, now: Time, down: Time) {
        if self.machine.is_some() && self.stopping.is_none() {
            self.stopping = Some((now + STOPPING, down));
            self.inputs.push(Input::Stop);
        }
    }

    /// Suspends or freezes the process until then.
    pub(crate) fn sleep(&mut self, now: Time, until: Time, is_suspended: bool) {
        if self.machine.is_some() && self.asleep.is_none() {
            self.asleep = Some(Sleep {
                since: now,
                until,
                is_suspended,
            });
        }
    }

    pub(crate) fn set_clock(&mut self, by: SignedDuration) {
        self.clocks.step(by);
    }

    /// Cuts it off from the API server until then.
    pub(crate) fn cut_off(&mut self, now: Time, until: Time) {
        self.cut_off_until = self.cut_off_until.max(until);
        for feed in &mut self.feeds {
            feed.stand_still(now, until);
        }
    }

    /// Stalls one of its watches.
    pub(crate) fn stand_still(&mut self, watch: Watch, from: Time, until: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.stand_still(from, until);
        }
    }

    /// Delays the events of one of its watches by this, until then.
    pub(crate) fn be_late(&mut self, watch: Watch, until: Time, by: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.be_late(until, by);
        }
    }

    /// Stalls the API server's view of one watch's kind at this revision until then.
    pub(crate) fn lag(&mut self, watch: Watch, revision: u64, until: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.lag(revision, until);
        }
    }

    /// Kills the connection of one of its watches silently.
    pub(crate) fn lose(&mut self, watch: Watch) {
        if let Some(feed) = self.feed(watch) {
            feed.die();
        }
    }

    /// Expires one of its watches: the API server cannot continue it.
    pub(crate) fn expire(&mut self, watch: Watch, now: Time) {
        let mut seen = Vec::new();
        if self.machine.is_some()
            && let Some(feed) = self.feed(watch)
        {
            feed.expire(now, &mut seen);
        }
        self.inputs.extend(seen.into_iter().map(Input::Seen));
    }
}
