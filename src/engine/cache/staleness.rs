//! Freshness of the cache as of the last evaluation, which every decision goes by.

use std::collections::BTreeSet;
use std::time::Instant;

use jiff::Timestamp;

use crate::freshness::{Phase, WatchStates};
use crate::io::Now;
use nodegate_core::condition::Watch;
use nodegate_core::repair::Census;

/// Freshness of the cache at the last [`Self::assess`].
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    /// When that was.
    pub(super) at: Timestamp,
    /// The watches that are not known to be current.
    pub(super) stale: BTreeSet<Watch>,
    pub(super) nodes_as_of: Timestamp,
    /// As of when the rules are known; `None` while they are stale.
    pub(super) rules_as_of: Option<Instant>,
    /// Until when repair is postponed.
    pub(super) repair_after: Option<Timestamp>,
    /// The health of all nodes, once a late node was to be evaluated.
    pub(crate) census: Option<Census>,
    /// The same by the monotonic clock, as of now.
    postponed: Option<Instant>,
    /// Whether the clock was set since the nodes were last current: then it is unknown for how long they could not be seen.
    pub(super) clock_was_set: bool,
}

impl Freshness {
    /// Works out which watches are stale now, and until when repair is postponed. Must precede every decision.
    pub(crate) fn assess(&mut self, views: &WatchStates, now: Now) {
        let age = |at| now.monotonic.saturating_duration_since(at);
        let nodes_as_of = views.as_of(Watch::Nodes, now.monotonic);
        let nodes_as_of = nodes_as_of.and_then(|at| now.wall.checked_sub(age(at)).ok());
        let postponed = self.postponed.filter(|at| now.monotonic < *at);
        let repair_after = postponed.and_then(|at| now.wall.checked_add(at - now.monotonic).ok());
        *self = Self {
            at: now.wall,
            stale: views.stale(now.monotonic).collect(),
            nodes_as_of: nodes_as_of.unwrap_or(Timestamp::MIN),
            rules_as_of: views.as_of(Watch::Rules, now.monotonic),
            repair_after,
            census: None,
            ..*self
        };
    }

    pub(super) fn postpone_repair(&mut self, until: Instant) {
        self.postponed = self.postponed.max(Some(until));
    }

    /// When a node first seen now can have joined at the earliest: when nodes were last current; `None` if it may be older.
    pub(super) fn earliest_join(&self, views: &WatchStates, now: Now) -> Option<Timestamp> {
        let unseen = views.age(Watch::Nodes, now.monotonic);
        let joined = now.wall.checked_sub(unseen).unwrap_or(Timestamp::MIN);
        let is_known = !self.clock_was_set && views.phase(Watch::Nodes) == Some(Phase::Listed);
        is_known.then_some(joined)
    }
}
