//! Staleness of the caches, and what restarts after they were stale.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tracing::{debug, warn};

use super::{Cache, Freshness};
use crate::condition::Watch;
use crate::engine::error::RequestError;
use crate::engine::freshness::{MAX_AGE, Restored};
use crate::engine::io::Now;
use crate::object::Version;

/// A gap of up to this length in the watch of nodes hides no missed heartbeat: the silence still shows afterwards.
const BLINK: Duration = Duration::from_secs(5);

impl Cache {
    /// Notes that a watch is current as of this time.
    pub(super) fn current(&mut self, watch: Watch, as_of: Instant, now: Now) {
        let blind = self.views.current(watch, as_of, now.monotonic);
        if self.views.is_stale(watch, now.monotonic) {
            return;
        }
        if watch == Watch::Nodes {
            self.clock_was_set = false;
        }
        for name in std::mem::take(&mut self.withheld) {
            self.mark(&name);
        }
        let Some(blind) = blind else { return };
        debug!(watch = %watch.name(), ?blind, "what was seen is certain again");
        self.repair_after = self.repair_after.max(Some(now.monotonic + blind));
        self.outage_ended |= blind > MAX_AGE;
        if blind > BLINK && watch == Watch::Nodes {
            self.restart_heartbeats(now.wall);
            for entry in self.entries.values_mut() {
                entry.missed_changes(now.wall);
            }
        }
    }

    /// Takes in the version that a consistent read for a watch returned which was asked for at this time.
    pub fn read_version(
        &mut self,
        watch: Watch,
        asked: Instant,
        version: &Result<Version, RequestError>,
        now: Now,
    ) {
        match self.views.read(watch, asked, version, now.monotonic) {
            Ok(Some(as_of)) => {
                self.current(watch, as_of, now);
                self.update_named(watch);
            }
            Ok(None) => {}
            Err(Restored) => self.restored(now),
        }
    }

    /// Has everything listed again, because the cluster was restored from a backup.
    pub fn restored(&mut self, now: Now) {
        warn!(
            "versions go backwards: the cluster was restored from a backup; everything is listed again"
        );
        self.views.restart_all(now.monotonic);
    }

    /// Whether an outage has ended since the last call: a kind is current again after longer than a working watch is silent.
    pub fn take_outage(&mut self) -> bool {
        std::mem::take(&mut self.outage_ended)
    }

    /// The earliest time at which a node that is seen for the first time can have joined: when the nodes were last current.
    /// `None` if it may always have been there.
    pub(super) fn earliest_join(&self, now: Now) -> Option<Timestamp> {
        let unseen = if self.views.is_stale(Watch::Nodes, now.monotonic) {
            self.views.age(Watch::Nodes, now.monotonic)
        } else {
            Duration::ZERO
        };
        let joined = now.wall.checked_sub(unseen).unwrap_or(Timestamp::MIN);
        let is_known = !self.clock_was_set && self.views.has_listed(Watch::Nodes);
        is_known.then_some(joined)
    }

    /// Works out which watches are stale now, and until when repair is postponed. Must precede every decision.
    pub fn assess_freshness(&mut self, now: Now) {
        let repair_after = self.repair_after.filter(|at| now.monotonic < *at);
        let repair_after = repair_after.and_then(|at| {
            let pause = at.saturating_duration_since(now.monotonic);
            now.wall.checked_add(pause).ok()
        });
        self.freshness = Freshness {
            at: now.wall,
            stale: self.views.stale(now.monotonic).collect(),
            nodes_as_of: self
                .views
                .as_of(Watch::Nodes, now.monotonic)
                .and_then(|at| {
                    let age = now.monotonic.saturating_duration_since(at);
                    now.wall.checked_sub(age).ok()
                })
                .unwrap_or(Timestamp::MIN),
            rules_as_of: self.views.as_of(Watch::Rules, now.monotonic),
            repair_after,
            census: None,
        };
    }

    /// Notes that a stale kind kept the controller from acting on a node, so that the node is evaluated again afterwards.
    pub fn withhold(&mut self, name: &Arc<str>) {
        self.withheld.insert(name.clone());
    }

    /// Restarts all measurements by the wall clock, which was set forward or back by `step`.
    pub fn measure_anew(&mut self, now: Timestamp, step: SignedDuration) {
        for entry in self.entries.values_mut() {
            entry.joined = None;
            entry.observations.measure_anew(now, step);
        }
        self.clock_was_set = true;
        self.mark_all();
    }

    /// Trusts reporters about their last heartbeats, and rebooted nodes about their boot times, for callers that read nodes
    /// once.
    pub fn trust_reporters(&mut self, now: Timestamp) {
        for entry in self.entries.values_mut() {
            if let Some(node) = &entry.node {
                entry.observations.trust_reporters(node, now);
            }
        }
    }

    /// Counts the silence of every reporter from now on, because its heartbeats could not be seen for a while.
    pub fn restart_heartbeats(&mut self, now: Timestamp) {
        if self.rule_set.followed.is_empty() {
            return;
        }
        for entry in self.entries.values_mut() {
            entry.observations.restart(now);
        }
        self.mark_all();
    }
}
