//! One rule's guard over all zones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::limits::Limits;
use super::member::Member;
use super::nodes::ZoneNodes;
use super::report::{Report, ZoneReport};
use super::zone::Zone;

/// One rule's guard over all nodes that count for it.
///
/// Call [`Self::grant`] after every change of nodes or limits, and at the time of [`Self::next_grant`]: time passes only there.
/// An observation costs O(log n) in nodes; operations on all nodes cost O(n) in zones.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    limits: Limits,
    members: HashMap<Arc<str>, (Zone, Member)>,
    zones: BTreeMap<Zone, ZoneNodes>,
    /// How many nodes in all zones have met conditions.
    met: usize,
    /// Whether the next [`Self::grant`] empties all buckets first.
    starts_over: bool,
}

impl Guard {
    /// A guard without nodes.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            members: HashMap::new(),
            zones: BTreeMap::new(),
            met: 0,
            starts_over: false,
        }
    }

    /// Changes the limits, effective from the next [`Self::grant`].
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Starts over from zero: takes back what was granted, and lets the zones fill their buckets anew from the next
    /// [`Self::grant`] on.
    pub(crate) fn start_over(&mut self) {
        self.starts_over = true;
        self.zones.values_mut().for_each(ZoneNodes::withdraw);
    }

    /// Notes a node's zone and how it counts; `None` if it does not count, because it is joining or no longer selected. Returns
    /// whether that is new.
    pub(crate) fn observe(&mut self, node: &Arc<str>, zone: Zone, member: Option<Member>) -> bool {
        let Some(member) = member else {
            return self.forget(node);
        };
        match (self.members.get(node).cloned(), member) {
            (Some((old_zone, old)), _) if old_zone == zone && old == member => return false,
            (Some((old_zone, Member::Waiting { since: was })), Member::Waiting { since })
                if old_zone == zone =>
            {
                self.nodes_of(&zone).correct(node, was, since);
            }
            (old, _) => {
                if member == Member::Closed {
                    self.closed(node);
                }
                if let Some((old_zone, old)) = old {
                    self.take_out(node, &old_zone, old);
                }
                self.met += usize::from(member == Member::Met);
                self.nodes_of(&zone).add(node, member);
            }
        }
        self.members.insert(node.clone(), (zone, member));
        true
    }

    /// Notes that a node is gone or does not count any more. Returns whether it counted.
    pub(crate) fn forget(&mut self, node: &str) -> bool {
        let Some((node, (zone, member))) = self.members.remove_entry(node) else {
            return false;
        };
        self.take_out(&node, &zone, member);
        true
    }

    /// Notes that a node was closed, which spends its token. To be closed again, it needs another token, whatever it is
    /// observed as next.
    pub(crate) fn closed(&mut self, node: &str) {
        if let Some((zone, _)) = self.members.get(node)
            && let Some(nodes) = self.zones.get_mut(zone)
        {
            nodes.spend(node);
        }
    }

    /// The nodes that may be closed from now on and might not before, longest-waiting first. Each has taken a token of its
    /// zone. The token is spent once the node is [`Self::closed`], or observed as [`Member::Closed`]; a node that is observed
    /// as anything else, and was not closed in between, returns it.
    ///
    /// A zone has one such node at a time. One that is not closed within half a minute goes behind the others.
    pub(crate) fn grant(&mut self, now: Instant) -> Vec<Arc<str>> {
        let (limits, halted) = (self.limits, self.is_halted());
        if std::mem::take(&mut self.starts_over) {
            for nodes in self.zones.values_mut() {
                nodes.empty(now, nodes.rate(&limits, halted));
            }
        }
        let mut granted: Vec<(Timestamp, Arc<str>)> = self
            .zones
            .values_mut()
            .filter_map(|nodes| nodes.grant(now, nodes.rate(&limits, halted)))
            .collect();
        self.zones.retain(|_, nodes| !nodes.is_forgettable());
        granted.sort();
        granted.into_iter().map(|(_, node)| node).collect()
    }

    /// Whether this node has been granted, and may still be closed.
    pub(crate) fn may_close(&self, node: &str) -> bool {
        self.zone_of(node)
            .is_some_and(|(_, _, nodes)| nodes.may_close(node, self.rate(nodes)))
    }

    /// When [`Self::grant`] may return a node although nothing has changed; `None` if no node waits or none of them may be
    /// closed.
    pub(crate) fn next_grant(&self, now: Instant) -> Option<Instant> {
        self.zones
            .values()
            .filter_map(|nodes| nodes.next_grant(now, self.rate(nodes)))
            .min()
    }

    /// The state of every zone.
    pub(crate) fn report(&self) -> Report {
        let zones: Vec<ZoneReport> = self
            .zones
            .iter()
            .filter(|(_, nodes)| nodes.len() > 0)
            .map(|(zone, nodes)| {
                let rate = self.rate(nodes);
                ZoneReport {
                    zone: zone.clone(),
                    state: nodes.state(&self.limits),
                    met: nodes.met,
                    unmet: nodes.unmet,
                    waiting: nodes.held(rate),
                    rate,
                }
            })
            .collect();
        Report {
            met: self.met,
            unmet: self.members.len() - self.met,
            waiting: zones.iter().map(|zone| zone.waiting).sum(),
            all_zones_disrupted: self.is_halted(),
            zones,
        }
    }

    /// Whether every zone is fully disrupted: no node anywhere meets its conditions (`handleDisruption`).
    fn is_halted(&self) -> bool {
        self.met == 0 && !self.members.is_empty()
    }

    fn rate(&self, nodes: &ZoneNodes) -> f64 {
        nodes.rate(&self.limits, self.is_halted())
    }

    fn zone_of(&self, node: &str) -> Option<(&Zone, Member, &ZoneNodes)> {
        let (zone, member) = self.members.get(node)?;
        Some((zone, *member, self.zones.get(zone)?))
    }

    fn nodes_of(&mut self, zone: &Zone) -> &mut ZoneNodes {
        self.zones
            .entry(zone.clone())
            .or_insert_with(ZoneNodes::new)
    }

    fn take_out(&mut self, node: &Arc<str>, zone: &Zone, member: Member) {
        self.met -= usize::from(member == Member::Met);
        let nodes = self.nodes_of(zone);
        nodes.remove(node, member);
        if nodes.is_forgettable() {
            self.zones.remove(zone);
        }
    }
}
