//! Tests of the guard: sequences, and laws over random ones.

mod laws;
mod sequences;
mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{Guard, Limits, Member, Zone, Zones};
use crate::testing::at;

/// A zone by its name; `""` for nodes without zone labels.
fn zone(name: &str) -> Zone {
    let label = ("topology.kubernetes.io/zone".to_owned(), name.to_owned());
    Zone::of(None, &BTreeMap::from([label]))
}

/// The zones of a node that has never named another than this.
fn at_home(name: &str) -> Zones {
    Zones {
        home: zone(name),
        other: None,
    }
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
                guard.observe(&node, at_home(nodes.zone), Some(member(number)));
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

    /// The rate of each zone, by name.
    fn rates(&self) -> BTreeMap<String, f64> {
        let zones = self.report().zones.into_iter();
        zones.map(|it| (it.zone.to_string(), it.rate)).collect()
    }

    fn see(&mut self, node: &str, in_zone: &str, member: Member) -> bool {
        self.observe(&Arc::from(node), at_home(in_zone), Some(member))
    }
}
