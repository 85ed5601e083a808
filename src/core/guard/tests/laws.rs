//! Laws of the guard under random observations, times, limits and grants, compared with a simple model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::select;

use super::{at_home, waiting, zone};
use crate::api::NodeShare;
use crate::guard::zone::ZoneState;
use crate::guard::zone::zone_state;
use crate::guard::{Guard, Limits, Member, Report, Zones};
use crate::testing::moment;

const ZONES: [&str; 3] = ["", "a", "b"];
const NODES: usize = 14;

const LIMITS: [Limits; 3] = [
    Limits {
        eviction_rate: 0.1,
        secondary_eviction_rate: 0.01,
        unhealthy_zone_threshold: 0.55,
        large_cluster_size_threshold: 5,
        max_first_gated: NodeShare::Percent(100),
    },
    Limits {
        eviction_rate: 3.0,
        secondary_eviction_rate: 0.7,
        unhealthy_zone_threshold: 0.3,
        large_cluster_size_threshold: 0,
        max_first_gated: NodeShare::Percent(100),
    },
    Limits {
        eviction_rate: 0.3,
        secondary_eviction_rate: 0.0,
        unhealthy_zone_threshold: 1.0,
        large_cluster_size_threshold: 50,
        max_first_gated: NodeShare::Percent(100),
    },
];

type Seen = (&'static str, Option<Member>);

#[derive(Debug, Clone)]
enum Step {
    Observe(usize, Seen),
    /// This many milliseconds pass, then a grant is requested.
    Grant(u64),
    /// Time passes until the next grant.
    Wait,
    /// The granted nodes are gated.
    Gate,
    /// The granted nodes are gated, but not yet observed as gated.
    GateUnseen,
    StartOver,
    Limits(Limits),
}

fn any_member() -> impl Strategy<Value = Option<Member>> {
    prop_oneof![
        1 => Just(None),
        3 => Just(Some(Member::Met)),
        1 => Just(Some(Member::Held)),
        4 => (0..20_i64).prop_map(|since| Some(waiting(since))),
    ]
}

fn any_seen() -> impl Strategy<Value = Seen> {
    (select(&ZONES[..]), any_member())
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..NODES, any_seen()).prop_map(|(node, seen)| Step::Observe(node, seen)),
        4 => (0..20_000_u64).prop_map(Step::Grant),
        2 => Just(Step::Wait),
        3 => Just(Step::Gate),
        3 => Just(Step::GateUnseen),
        1 => Just(Step::StartOver),
        1 => select(&LIMITS[..]).prop_map(Step::Limits),
    ]
}

fn name(node: usize) -> Arc<str> {
    format!("node-{node}").into()
}

/// A model of the guard that counts by iteration.
struct Model {
    limits: Limits,
    nodes: BTreeMap<Arc<str>, (&'static str, Member)>,
}

impl Model {
    fn count(&self, zone: &str, is: impl Fn(Member) -> bool) -> usize {
        let nodes = self.nodes.values();
        nodes
            .filter(|(of, member)| *of == zone && is(*member))
            .count()
    }

    fn met(&self, zone: &str) -> usize {
        self.count(zone, |member| member == Member::Met)
    }

    fn unmet(&self, zone: &str) -> usize {
        self.count(zone, |member| member != Member::Met)
    }

    fn state(&self, zone: &str) -> ZoneState {
        let threshold = self.limits.unhealthy_zone_threshold;
        zone_state(self.met(zone), self.unmet(zone), threshold)
    }

    fn rate(&self, zone: &str) -> f64 {
        let mut states = ZONES
            .iter()
            .filter(|zone| self.met(zone) + self.unmet(zone) > 0)
            .map(|zone| self.state(zone))
            .peekable();
        if states.peek().is_some() && states.all(|state| state == ZoneState::FullDisruption) {
            return 0.0;
        }
        self.limits
            .rate(self.state(zone), self.met(zone) + self.unmet(zone))
    }
}

/// A guard, its model, and the grants of each zone.
struct Run {
    guard: Guard,
    model: Model,
    now: Instant,
    /// Tokens that each zone's bucket has received so far, and its rate since the last grant.
    inflow: BTreeMap<&'static str, (f64, f64)>,
    granted: Vec<Granted>,
}

struct Granted {
    node: Arc<str>,
    zone: &'static str,
    /// Tokens that the bucket had received by then.
    inflow: f64,
    open: bool,
    given_back: bool,
}

impl Run {
    fn new() -> Self {
        Self {
            guard: Guard::new(LIMITS[0]),
            model: Model {
                limits: LIMITS[0],
                nodes: BTreeMap::new(),
            },
            now: moment(0),
            inflow: ZONES.map(|zone| (zone, (0.0, 0.0))).into(),
            granted: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Observe(node, seen) => self.observe(&name(*node), *seen),
            Step::Grant(milliseconds) => {
                let then = self.now + Duration::from_millis(*milliseconds);
                self.grant(then);
            }
            Step::Wait => {
                self.grant(self.now);
                if let Some(then) = self.guard.next_grant(self.now) {
                    assert_ne!(self.grant(then), 0, "nothing at the time told");
                } else {
                    let later = self.now + Duration::from_secs(3600);
                    assert_eq!(self.grant(later), 0, "a grant that was not told of");
                }
            }
            Step::Gate => {
                let open = self.granted.iter().filter(|granted| granted.open);
                let open: Vec<_> = open.map(|open| (open.node.clone(), open.zone)).collect();
                for (node, zone) in open {
                    if self.guard.may_gate(&node) {
                        self.observe(&node, (zone, Some(Member::Held)));
                    }
                }
            }
            Step::GateUnseen => {
                for granted in self.granted.iter_mut().filter(|granted| granted.open) {
                    if self.guard.may_gate(&granted.node) {
                        self.guard.gated(&granted.node);
                        granted.open = false;
                    }
                }
            }
            Step::StartOver => {
                self.guard.start_over();
                for granted in self.granted.iter_mut().filter(|granted| granted.open) {
                    granted.open = false;
                    granted.given_back = true;
                }
            }
            Step::Limits(limits) => {
                self.guard.limits = *limits;
                self.model.limits = *limits;
            }
        }
        self.check();
    }

    fn observe(&mut self, node: &Arc<str>, (in_zone, member): Seen) {
        let seen = member.map(|member| (in_zone, member));
        let before = match seen {
            Some(seen) => self.model.nodes.insert(node.clone(), seen),
            None => self.model.nodes.remove(node),
        };
        let changed = self.guard.observe(node, at_home(in_zone), member);
        assert_eq!(changed, before != seen, "{node}");
        for granted in &mut self.granted {
            let waits_still =
                matches!(seen, Some((zone, Member::Waiting { .. })) if zone == granted.zone);
            if granted.open && granted.node == *node && !waits_still {
                granted.open = false;
                granted.given_back = member != Some(Member::Held);
            }
        }
    }

    /// Requests grants at this time; returns how many there were.
    fn grant(&mut self, then: Instant) -> usize {
        let passed = then.duration_since(self.now).as_secs_f64();
        self.now = then;
        for (zone, (total, rate)) in &mut self.inflow {
            *total += passed * *rate;
            *rate = self.model.rate(zone);
        }
        let nodes = self.guard.grant(then);
        for granted in self.granted.iter_mut().filter(|granted| granted.open) {
            if !self.guard.may_gate(&granted.node) || nodes.contains(&granted.node) {
                granted.open = false;
                granted.given_back = self.model.rate(granted.zone) <= 0.0;
            }
        }
        let mut turns = Vec::new();
        for node in &nodes {
            let (zone, Member::Waiting { since }) = self.model.nodes[node] else {
                panic!("{node} does not wait");
            };
            assert!(self.model.rate(zone) > 0.0, "a grant at rate 0");
            assert!(self.guard.may_gate(node));
            turns.push((since, node));
            self.granted.push(Granted {
                node: node.clone(),
                zone,
                inflow: self.inflow[zone].0,
                open: true,
                given_back: false,
            });
        }
        assert!(turns.is_sorted(), "{turns:?}");
        nodes.len()
    }

    fn check(&self) {
        let Report {
            zones,
            unmet,
            waiting,
            all_zones_disrupted,
        } = self.guard.report();
        let held = |zone: Option<&str>| {
            let nodes = self.model.nodes.iter();
            nodes
                .filter(|(_, (of, _))| zone.is_none_or(|zone| zone == *of))
                .filter(|(node, (_, member))| {
                    matches!(member, Member::Waiting { .. }) && !self.guard.may_gate(node)
                })
                .count()
        };
        let found: Vec<_> = zones
            .iter()
            .map(|found| {
                let counts = (found.met, found.unmet, found.waiting);
                (found.zone.clone(), found.state, found.rate, counts)
            })
            .collect();
        let expected: Vec<_> = ZONES
            .iter()
            .filter(|name| self.model.met(name) + self.model.unmet(name) > 0)
            .map(|name| {
                let counts = (
                    self.model.met(name),
                    self.model.unmet(name),
                    held(Some(name)),
                );
                (
                    zone(name),
                    self.model.state(name),
                    self.model.rate(name),
                    counts,
                )
            })
            .collect();
        assert_eq!(found, expected);
        let met: usize = ZONES.iter().map(|zone| self.model.met(zone)).sum();
        assert_eq!(met + unmet, self.model.nodes.len());
        assert_eq!(waiting, held(None));
        assert_eq!(all_zones_disrupted, met == 0 && unmet > 0);
        for (node, (zone, member)) in &self.model.nodes {
            let waits = matches!(member, Member::Waiting { .. });
            let may_gate = self.guard.may_gate(node);
            assert!(
                !may_gate || (waits && self.model.rate(zone) > 0.0),
                "{node}"
            );
        }
    }

    /// In no span of time has a zone gated more nodes than its burst of one plus the tokens received meanwhile.
    fn check_rates(&self) {
        for zone in ZONES {
            let kept: Vec<f64> = self
                .granted
                .iter()
                .filter(|granted| granted.zone == zone && !granted.given_back)
                .map(|granted| granted.inflow)
                .collect();
            for (first, start) in kept.iter().enumerate() {
                for (more, end) in kept[first..].iter().enumerate() {
                    #[expect(clippy::cast_precision_loss, reason = "a few")]
                    let more = more as f64;
                    assert!(more <= end - start + 1e-6, "{more} in {}", end - start);
                }
            }
        }
    }
}

/// The guard's report after these observations, and which nodes it grants when.
fn verdict(seen: &[(usize, Seen)]) -> (Report, Vec<(Instant, Arc<str>)>) {
    let mut guard = Guard::new(LIMITS[0]);
    for (node, (in_zone, member)) in seen {
        guard.observe(&name(*node), at_home(in_zone), *member);
    }
    let report = guard.report();
    let mut granted = Vec::new();
    let mut now = moment(0);
    for _ in 0..NODES {
        for node in guard.grant(now) {
            let (in_zone, _) = seen.iter().rfind(|(of, _)| name(*of) == node).unwrap().1;
            guard.observe(&node, at_home(in_zone), Some(Member::Held));
            granted.push((now, node));
        }
        now = guard.next_grant(now).unwrap_or(now);
    }
    (report, granted)
}

proptest! {
    #[test]
    fn counts_are_exact_and_rates_are_kept(steps in prop::collection::vec(any_step(), 0..80)) {
        let mut run = Run::new();
        for step in &steps {
            run.step(step);
        }
        run.check_rates();
    }

    #[test]
    fn no_zone_that_a_node_names_has_more_nodes_gated(
        seen in prop::collection::vec((any_seen(), prop::option::of(select(&ZONES[..]))), NODES),
        mover in 0..NODES,
        to in select(&ZONES[..]),
        limits in select(&LIMITS[..]),
    ) {
        let rates = |moved: Option<&'static str>| {
            let mut guard = Guard::new(limits);
            for (node, ((home, member), other)) in seen.iter().enumerate() {
                let other = if node == mover { moved } else { *other };
                let other = other.filter(|it| it != home).map(zone);
                let zones = Zones { home: zone(home), other };
                guard.observe(&name(node), zones, *member);
            }
            guard.rates()
        };
        let (before, after) = (rates(None), rates(Some(to)));
        prop_assert!(before.keys().eq(after.keys()), "{:?} {:?}", before, after);
        for (zone, rate) in &after {
            prop_assert!(*rate <= before[zone], "{}: {:?} {:?}", zone, before, after);
        }
    }

    #[test]
    fn the_order_of_observations_does_not_matter(
        (seen, shuffled) in prop::collection::vec(any_seen(), NODES).prop_flat_map(|seen| {
            let seen: Vec<_> = seen.into_iter().enumerate().collect();
            (Just(seen.clone()), Just(seen).prop_shuffle())
        }),
        history in prop::collection::vec((0..NODES, any_seen()), 0..30),
    ) {
        let known = verdict(&seen);
        prop_assert_eq!(&verdict(&shuffled), &known);
        prop_assert_eq!(&verdict(&[history, seen].concat()), &known, "nor what was before");
    }
}
