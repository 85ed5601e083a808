//! How faults act on a process.

use jiff::SignedDuration;
use nodegate_core::condition::Watch;
use nodegate_engine::election::LEASE_DURATION;
use nodegate_engine::io::Input;

use super::flights::Stage;
use super::{Process, Sleep, World};
use crate::sim::election::Standing;
use crate::sim::fault::Incident;
use crate::sim::law::Report;
use crate::sim::time::{Time, s};

/// How long a stopped process has to finish its requests.
const STOPPING: Time = s(5);

impl Process {
    /// Kills the process; it restarts after a while. Its requests under way may arrive or not.
    pub(crate) fn die(&mut self, world: &mut World<'_>, down: Time) {
        let now = world.cluster.now();
        if self.engine.take().is_none() {
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

    pub(super) fn stop(&mut self, now: Time, down: Time) {
        if self.engine.is_some() && self.stopping.is_none() {
            self.stopping = Some((now + STOPPING, down));
            self.inputs.push(Input::Stop);
        }
    }

    /// Suffers what goes wrong now, if it concerns this process.
    pub(crate) fn suffer(&mut self, what: Incident, lasts: Time, world: &mut World<'_>) {
        let now = world.cluster.now();
        let until = now + lasts;
        let instance = self.instance;
        match what {
            Incident::Stop(it) if it == instance => self.stop(now, lasts),
            Incident::ClockStep(it, by) if it == instance => {
                self.clocks.step(SignedDuration::from_secs(by));
            }
            Incident::Suspend(it) | Incident::Freeze(it)
                if it == instance && self.engine.is_some() && self.asleep.is_none() =>
            {
                self.asleep = Some(Sleep {
                    since: now,
                    until,
                    is_suspended: matches!(what, Incident::Suspend(_)),
                });
            }
            Incident::Partition(it) if it == instance => {
                self.cut_off_until = self.cut_off_until.max(until);
                for feed in &mut self.feeds {
                    feed.stand_still(now, until);
                }
            }
            Incident::StaleStart(_) if self.leads() => self.die(world, LEASE_DURATION + lasts),
            Incident::Stale(watch) => self.stand_still(watch, now, until),
            Incident::Lagging(watch) => {
                if let Some(feed) = self.feed(watch) {
                    feed.lag(world.cluster.revision(), until);
                }
            }
            Incident::WatchDelay(watch, by) => {
                if let Some(feed) = self.feed(watch) {
                    feed.be_late(until, by);
                }
            }
            Incident::SilentDeath(watch) => {
                if let Some(feed) = self.feed(watch) {
                    feed.die();
                }
            }
            Incident::Expired(watch) if self.engine.is_some() => {
                if let Some(feed) = self.feed(watch) {
                    feed.expire(now);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn stand_still(&mut self, watch: Watch, from: Time, until: Time) {
        if let Some(feed) = self.feed(watch) {
            feed.stand_still(from, until);
        }
    }
}
