//! The events of the story, and their times. Pure.
//!
//! | seconds | event |
//! |---|---|
//! | 15, 50, 85 | twelve nodes join, and get their network and storage after a while; one never gets its network |
//! | 60 to 130 | a critical `DaemonSet` does not tolerate the taint of rule `gpu` |
//! | 121 to 156 | the driver fails on two nodes with GPUs |
//! | 125 | the uplink of five nodes of zone a fails |
//! | 140 | the uplink of the whole zone b fails |
//! | from 172 | the uplinks are repaired, node by node |
//! | 205 | the leader is stopped |

/// The length of the story, in seconds.
pub(super) const LENGTH: u32 = 240;

/// The number of nodes, and how many join together.
const NODES: u32 = 36;
const WAVE: u32 = 12;

/// When the first node joins, in tenths of seconds; the delays between groups and between nodes.
const FIRST: u32 = 150;
const NEXT: u32 = 350;
const APART: u32 = 7;

/// The node that never gets its network.
const HELD: u32 = 20;

const ZONES: [&str; 3] = ["a", "b", "c"];

/// One in this many nodes has GPUs.
const GPUS: u32 = 6;

/// A node, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member(u32);

impl Member {
    pub(super) fn name(self) -> String {
        format!("worker-{:02}", self.0)
    }

    pub(super) fn zone(self) -> &'static str {
        ZONES[self.0 as usize % ZONES.len()]
    }

    pub(super) fn has_gpus(self) -> bool {
        self.0.is_multiple_of(GPUS)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Join(Member),
    Network(Member),
    /// Its storage is ready.
    Storage(Member),
    /// Its uplink works, or fails.
    Uplink(Member, bool),
    /// Its driver's pod becomes Ready, or not Ready.
    Driver(Member, bool),
    /// A critical `DaemonSet` without the necessary toleration appears, or goes.
    Stray(bool),
    /// The leader is stopped.
    Handover,
}

/// All events in order, with their times in tenths of seconds.
pub(super) fn script() -> Vec<(u32, Change)> {
    let mut changes = vec![
        (600, Change::Stray(true)),
        (1300, Change::Stray(false)),
        (2050, Change::Handover),
    ];
    for member in (1..=NODES).map(Member) {
        let Member(number) = member;
        let (wave, place) = ((number - 1) / WAVE, (number - 1) % WAVE);
        let join = FIRST + wave * NEXT + place * APART;
        changes.push((join, Change::Join(member)));
        changes.push((join + 20 + number * 5 % 11 * 13, Change::Storage(member)));
        if number != HELD {
            changes.push((join + 40 + number * 7 % 9 * 10, Change::Network(member)));
        }
        if member.has_gpus() && number <= 2 * GPUS {
            changes.push((1180 + number * 5, Change::Driver(member, false)));
            changes.push((1500 + number * 5, Change::Driver(member, true)));
        }
        let broken = match member.zone() {
            "a" if number <= 15 => 1250,
            "b" => 1400,
            _ => continue,
        };
        changes.push((broken + place, Change::Uplink(member, false)));
        changes.push((1720 + number * 5, Change::Uplink(member, true)));
    }
    changes.sort_by_key(|(at, _)| *at);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of an event.
    fn when(change: Change) -> Option<u32> {
        let script = script();
        let mut found = script.iter().filter(|(_, it)| *it == change);
        let at = found.next().map(|(at, _)| *at);
        assert_eq!(found.next(), None, "{change:?}");
        at
    }

    #[test]
    fn every_node_joins_once_and_one_never_gets_its_network() {
        for member in (1..=NODES).map(Member) {
            let join = when(Change::Join(member));
            assert!(join.is_some(), "{member:?}");
            assert!(join < when(Change::Storage(member)), "{member:?}");
            match when(Change::Network(member)) {
                None => assert_eq!(member, Member(HELD)),
                network => assert!(join < network, "{member:?}"),
            }
        }
    }

    #[test]
    fn what_breaks_is_mended_after_all_nodes_have_joined() {
        let last = (1..=NODES).filter_map(|number| when(Change::Network(Member(number))));
        let last = last.max();
        let mut zones = std::collections::BTreeMap::new();
        for member in (1..=NODES).map(Member) {
            let Some(broken) = when(Change::Uplink(member, false)) else {
                continue;
            };
            *zones.entry(member.zone()).or_insert(0) += 1;
            assert!(Some(broken) > last, "{member:?}");
            assert!(Some(broken) < when(Change::Uplink(member, true)));
        }
        assert_eq!(zones.into_iter().collect::<Vec<_>>(), [("a", 5), ("b", 12)]);
    }

    #[test]
    fn all_of_it_happens_in_order_and_in_time() {
        let script = script();
        assert!(script.is_sorted_by_key(|(at, _)| *at));
        assert!(script.iter().all(|(at, _)| *at < LENGTH * 10));
    }
}
