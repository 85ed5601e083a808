//! Whether what the watches have shown is certain, and what begins anew where it was not.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::{Cache, Watch};
use crate::plan::Doubts;

impl Cache {
    /// Finds out what is in doubt at this time. Nothing is decided before that is known.
    pub fn weigh(&mut self, now: Instant) {
        let mut doubts = Doubts::default();
        self.is_certain = true;
        for kind in self.certainty.in_doubt(now) {
            self.is_certain = false;
            match kind {
                Watch::Nodes => doubts.nodes = true,
                Watch::CsiNodes => doubts.csi_nodes = true,
                Watch::Rules => doubts.rules = true,
                Watch::Pods(class) | Watch::DaemonSets(class) => doubts.add_class(class),
                Watch::NodeClaims | Watch::NodePools => {}
            }
        }
        self.doubts = doubts;
    }

    /// Whether nothing was in doubt when it was last asked, Karpenter's objects included.
    pub fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Until when overdue nodes are left alone at this time, because something could not be seen.
    pub fn settles_at(&self, now: Instant) -> Option<Instant> {
        self.settling.not_before(now)
    }

    /// Doubts everything until the watches give this confirmation.
    pub fn doubt_all(&mut self, confirmation: u64) {
        self.confirmation = confirmation;
        self.certainty.doubt_all();
    }

    /// Notes that something was not done for a node because of a doubt, so that it is evaluated again when that ends.
    pub fn withhold(&mut self, name: &Arc<str>) {
        self.withheld.insert(name.clone());
    }

    /// Has everything that was measured by the clock begin anew: it was set.
    pub fn measure_anew(&mut self, now: Timestamp) {
        for entry in self.entries.values_mut() {
            entry.joined = None;
            entry.sightings.measure_anew(now);
        }
        self.mark_all();
    }

    /// Counts every reporter's silence from now on, since nothing could be seen of them for a while.
    pub fn restart_heartbeats(&mut self, now: Timestamp) {
        if self.rule_set.followed().is_empty() {
            return;
        }
        for entry in self.entries.values_mut() {
            entry.sightings.restart(now);
        }
        self.mark_all();
    }
}
