//! What the guard does, for people: why a node is held back, and how every zone does. One wording for status, events,
//! logs and the dry run.

use std::cmp::Reverse;
use std::fmt;

use super::zone::{Zone, ZoneState};

/// How many zones a summary names: it has to fit into an event's note of 1024 bytes.
const NAMED_ZONES: usize = 3;

/// Why a node that ought to be closed is held back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Held<'a> {
    /// Every zone is fully disrupted. That all nodes broke is less likely than that whoever reports on them did.
    AllZones {
        /// How many nodes there are, all unmet.
        unmet: usize,
    },
    /// The node's zone may not lose any more nodes, or not yet.
    Zone {
        /// The zone.
        zone: &'a Zone,
        /// The state it is in.
        state: ZoneState,
        /// How many of its nodes meet their conditions.
        met: usize,
        /// How many do not.
        unmet: usize,
        /// Nodes a second that may be closed there; 0 or more.
        rate: f64,
    },
}

/// For example `held back by the disruption limit: zone a PartialDisruption (12 of 20 nodes unmet), nothing more is
/// closed there until it recovers`.
impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "held back by the disruption limit: {}", Why(*self))
    }
}

/// The part of a [`Held`] that differs.
struct Why<'a>(Held<'a>);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (zone, state, met, unmet, rate) = match self.0 {
            Held::AllZones { unmet } => {
                let state = ZoneState::FullDisruption;
                return write!(
                    f,
                    "all zones {state} ({unmet} of {unmet} nodes unmet), nothing more is closed until one recovers"
                );
            }
            Held::Zone {
                zone,
                state,
                met,
                unmet,
                rate,
            } => (zone, state, met, unmet, rate),
        };
        if !zone.is_none() {
            f.write_str("zone ")?;
        }
        write!(
            f,
            "{zone} {state} ({unmet} of {} nodes unmet), ",
            met + unmet
        )?;
        if rate > 0.0 {
            write!(f, "at most {rate} nodes a second are closed there")
        } else {
            f.write_str("nothing more is closed there until it recovers")
        }
    }
}

/// How every zone does, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The zones that have nodes, in order.
    pub zones: Vec<ZoneReport>,
    /// How many nodes meet their conditions.
    pub met: usize,
    /// How many do not.
    pub unmet: usize,
    /// How many of those are held back.
    pub waiting: usize,
    /// Whether every zone is fully disrupted, so that nothing more is closed.
    pub all_zones_disrupted: bool,
}

/// How one zone does.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneReport {
    /// The zone.
    pub zone: Zone,
    /// The state it is in.
    pub state: ZoneState,
    /// How many of its nodes meet their conditions.
    pub met: usize,
    /// How many do not.
    pub unmet: usize,
    /// How many of those are held back.
    pub waiting: usize,
    /// Nodes a second that may be closed there; 0 when every zone is fully disrupted.
    pub rate: f64,
}

impl ZoneReport {
    /// Why those that are held back are, unless it is because of all zones.
    fn why(&self) -> Why<'_> {
        Why(Held::Zone {
            zone: &self.zone,
            state: self.state,
            met: self.met,
            unmet: self.unmet,
            rate: self.rate,
        })
    }
}

/// One line: how many nodes are held back, and why. Of the zones it names those where nothing may be closed first, then
/// those where most nodes wait, and never more than three.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.waiting == 0 {
            return f.write_str("no node is held back by the disruption limit");
        }
        let nodes = if self.waiting == 1 { "node" } else { "nodes" };
        write!(
            f,
            "{} {nodes} held back by the disruption limit: ",
            self.waiting
        )?;
        if self.all_zones_disrupted {
            return Why(Held::AllZones { unmet: self.unmet }).fmt(f);
        }
        let mut zones: Vec<&ZoneReport> =
            self.zones.iter().filter(|zone| zone.waiting > 0).collect();
        zones.sort_by_key(|zone| (zone.rate > 0.0, Reverse(zone.waiting)));
        for (index, zone) in zones.iter().take(NAMED_ZONES).enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            zone.why().fmt(f)?;
        }
        match zones.len().saturating_sub(NAMED_ZONES) {
            0 => Ok(()),
            1 => f.write_str("; and 1 more zone"),
            more => write!(f, "; and {more} more zones"),
        }
    }
}
