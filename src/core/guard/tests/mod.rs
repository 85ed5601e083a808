//! Tests of the guard: sequences, and laws over random ones.

mod laws;
mod sequences;
mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{Guard, Limits, Member, Zone};
use crate::testing::at;

/// A zone by its name; `""` for nodes without zone labels.
fn zone(name: &str) -> Zone {
    Zone::of(&BTreeMap::from([(
        "topology.kubernetes.io/zone".to_owned(),
        name.to_owned(),
    )]))
}

/// This many nodes of a zone.
struct Nodes {
    zone: &'static str,
    met: usize,
    held: usize,
    waiting: usize,
}

fn nodes(zone: &'static str, met: usize, held: usize, waiting: usize) -> Nodes {
    Nodes {
        zone,
        met,
        held,
        waiting,
    }
}

/// A guard that has seen these nodes. Waiting nodes are named `<zone>-waiting-<number>`; the lower the number, the longer they
/// have waited.
fn guard(limits: Limits, zones: &[Nodes]) -> Guard {
    let mut guard = Guard::new(limits);
    for nodes in zones {
        let mut add = |kind: &str, count: usize, member: &dyn Fn(i64) -> Member| {
            for number in 0..count {
                let node = format!("{}-{kind}-{number}", nodes.zone).into();
                let number = i64::try_from(number).unwrap();
                guard.observe(&node, zone(nodes.zone), Some(member(number)));
            }
        };
        add("met", nodes.met, &|_| Member::Met);
        add("held", nodes.held, &|_| Member::Held);
        add("waiting", nodes.waiting, &waiting);
    }
    guard
}

fn waiting(since: i64) -> Member {
    Member::Waiting { since: at(since) }
}

impl Guard {
    fn new(limits: Limits) -> Self {
        let mut guard = Self::default();
        guard.limits = limits;
        guard
    }

    /// The nodes granted now, by name.
    fn granted(&mut self, now: Instant) -> Vec<String> {
        self.grant(now).iter().map(ToString::to_string).collect()
    }

    fn see(&mut self, node: &str, in_zone: &str, member: Member) -> bool {
        self.observe(&Arc::from(node), zone(in_zone), Some(member))
    }
}
