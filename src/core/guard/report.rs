//! Why nodes are held back, and the state of every zone: one wording for status, events, logs and dry runs.

use std::cmp::Reverse;
use std::fmt;

use super::zone::{Zone, ZoneState};
use crate::text::counted;

/// How many zones a summary names, to fit into an event's note of 1024 bytes.
const NAMED_ZONES: usize = 3;

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The zones that have nodes, in order.
    pub zones: Vec<ZoneReport>,
    pub unmet: usize,
    pub waiting: usize,
    /// Whether every zone is fully disrupted, so that nothing more is gated.
    pub all_zones_disrupted: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ZoneReport {
    pub zone: Zone,
    pub state: ZoneState,
    pub met: usize,
    pub unmet: usize,
    pub waiting: usize,
    /// Nodes a second that may be gated there; 0 when every zone is fully disrupted.
    pub rate: f64,
}

/// For example `zone a PartialDisruption (12 of 20 nodes unmet), nothing more is gated there until it recovers`.
impl fmt::Display for ZoneReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (zone, state, rate) = (&self.zone, self.state, self.rate);
        if !zone.is_none() {
            f.write_str("zone ")?;
        }
        let (unmet, all) = (self.unmet, self.met + self.unmet);
        write!(f, "{zone} {state} ({unmet} of {all} nodes unmet), ")?;
        if rate > 0.0 {
            write!(f, "at most {rate} nodes a second are gated there")
        } else {
            f.write_str("nothing more is gated there until it recovers")
        }
    }
}

/// How many nodes are held back, and why: at most three zones, those where none may be gated first, then by waiting nodes.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.waiting == 0 {
            return f.write_str("no node is held back by the disruption limit");
        }
        let nodes = counted(self.waiting, "node");
        write!(f, "{nodes} held back by the disruption limit: ")?;
        if self.all_zones_disrupted {
            let (state, unmet) = (ZoneState::FullDisruption, self.unmet);
            return write!(
                f,
                "all zones {state} ({unmet} of {unmet} nodes unmet), nothing more is gated until one recovers"
            );
        }
        let mut zones: Vec<&ZoneReport> = self.zones.iter().filter(|it| it.waiting > 0).collect();
        zones.sort_by_key(|zone| (zone.rate > 0.0, Reverse(zone.waiting)));
        let named = zones.iter().take(NAMED_ZONES).map(ToString::to_string);
        f.write_str(&named.collect::<Vec<_>>().join("; "))?;
        match zones.len().saturating_sub(NAMED_ZONES) {
            0 => Ok(()),
            more => write!(f, "; and {}", counted(more, "more zone")),
        }
    }
}
