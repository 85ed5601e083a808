//! Named corner cases of the Kubernetes node lifecycle controller.

use super::{Nodes, guard, nodes};
use crate::guard::zone::ZoneState::{self, FullDisruption, Normal, PartialDisruption};
use crate::guard::{Limits, Report};
use crate::testing::moment;

struct Case {
    name: &'static str,
    zones: Vec<Nodes>,
    /// State and rate of each zone, ordered by name.
    states: Vec<(ZoneState, f64)>,
    /// The nodes granted at once.
    granted: &'static [&'static str],
}

fn case(
    name: &'static str,
    zones: impl Into<Vec<Nodes>>,
    states: impl Into<Vec<(ZoneState, f64)>>,
    granted: &'static [&'static str],
) -> Case {
    Case {
        name,
        zones: zones.into(),
        states: states.into(),
        granted,
    }
}

fn states(report: &Report) -> Vec<(ZoneState, f64)> {
    let zones = report.zones.iter();
    zones.map(|zone| (zone.state, zone.rate)).collect()
}

fn check(limits: Limits, cases: Vec<Case>) {
    for case in cases {
        let mut guard = guard(limits, &case.zones);
        assert_eq!(states(&guard.report()), case.states, "{}", case.name);
        assert_eq!(guard.granted(moment(100)), case.granted, "{}", case.name);
    }
}

#[test]
fn a_single_zone_is_treated_as_kubernetes_treats_it() {
    check(
        Limits::default(),
        vec![
            case("no nodes", [], [], &[]),
            case("all well", [nodes("a", 3, 0, 0)], [(Normal, 0.1)], &[]),
            case(
                "one of many: at once",
                [nodes("a", 9, 0, 1)],
                [(Normal, 0.1)],
                &["a-waiting-0"],
            ),
            case(
                "a few: one at a time",
                [nodes("a", 9, 0, 3)],
                [(Normal, 0.1)],
                &["a-waiting-0"],
            ),
            case(
                "most of a small zone",
                [nodes("a", 8, 0, 12)],
                [(PartialDisruption, 0.0)],
                &[],
            ),
            case(
                "held nodes are unmet ones too",
                [nodes("a", 8, 11, 1)],
                [(PartialDisruption, 0.0)],
                &[],
            ),
            case(
                "exactly 55 %",
                [nodes("a", 9, 0, 11)],
                [(PartialDisruption, 0.0)],
                &[],
            ),
            case(
                "half",
                [nodes("a", 10, 0, 10)],
                [(Normal, 0.1)],
                &["a-waiting-0"],
            ),
            case(
                "a zone of 50 nodes is small",
                [nodes("a", 20, 29, 1)],
                [(PartialDisruption, 0.0)],
                &[],
            ),
            case(
                "a zone of 51 nodes is large",
                [nodes("a", 20, 30, 1)],
                [(PartialDisruption, 0.01)],
                &["a-waiting-0"],
            ),
            case(
                "one zone that is all zones",
                [nodes("a", 0, 0, 3)],
                [(FullDisruption, 0.0)],
                &[],
            ),
            case(
                "one node that is all nodes",
                [nodes("a", 0, 0, 1)],
                [(FullDisruption, 0.0)],
                &[],
            ),
            case(
                "two nodes, one unmet",
                [nodes("a", 1, 0, 1)],
                [(Normal, 0.1)],
                &["a-waiting-0"],
            ),
            case(
                "two nodes, both unmet",
                [nodes("a", 0, 0, 2)],
                [(FullDisruption, 0.0)],
                &[],
            ),
            case(
                "two of three are not more than two",
                [nodes("a", 1, 0, 2)],
                [(Normal, 0.1)],
                &["a-waiting-0"],
            ),
        ],
    );
}

#[test]
fn several_zones_are_treated_as_kubernetes_treats_them() {
    check(
        Limits::default(),
        vec![
            case(
                "each zone has its own token, and who waited longest comes first",
                [nodes("b", 9, 0, 1), nodes("a", 9, 0, 1)],
                [(Normal, 0.1), (Normal, 0.1)],
                &["a-waiting-0", "b-waiting-0"],
            ),
            case(
                "small and large are about a zone, not the cluster",
                [nodes("a", 8, 0, 12), nodes("b", 100, 0, 0)],
                [(PartialDisruption, 0.0), (Normal, 0.1)],
                &[],
            ),
            case(
                "a fully disrupted zone beside a healthy one",
                [nodes("a", 0, 0, 20), nodes("b", 20, 0, 0)],
                [(FullDisruption, 0.1), (Normal, 0.1)],
                &["a-waiting-0"],
            ),
            case(
                "a fully disrupted zone beside a partially disrupted one",
                [nodes("a", 0, 0, 20), nodes("b", 1, 0, 19)],
                [(FullDisruption, 0.1), (PartialDisruption, 0.0)],
                &["a-waiting-0"],
            ),
            case(
                "all zones fully disrupted",
                [nodes("a", 0, 0, 20), nodes("b", 0, 20, 0)],
                [(FullDisruption, 0.0), (FullDisruption, 0.0)],
                &[],
            ),
            case(
                "a zone of one node",
                [nodes("a", 0, 0, 1), nodes("b", 1, 0, 0)],
                [(FullDisruption, 0.1), (Normal, 0.1)],
                &["a-waiting-0"],
            ),
            case(
                "nodes without a zone are in one zone together",
                [nodes("", 3, 0, 1), nodes("a", 0, 0, 1)],
                [(Normal, 0.1), (FullDisruption, 0.1)],
                &["-waiting-0", "a-waiting-0"],
            ),
        ],
    );
}

#[test]
fn a_secondary_rate_of_zero_stops_large_zones_too() {
    let limits = Limits {
        secondary_eviction_rate: 0.0,
        ..Limits::default()
    };
    check(
        limits,
        vec![case(
            "a large zone",
            [nodes("a", 20, 0, 80), nodes("b", 1, 0, 0)],
            [(PartialDisruption, 0.0), (Normal, 0.1)],
            &[],
        )],
    );
}

#[test]
fn a_large_cluster_size_threshold_of_zero_makes_every_zone_large() {
    let limits = Limits {
        large_cluster_size_threshold: 0,
        ..Limits::default()
    };
    check(
        limits,
        vec![case(
            "a small zone",
            [nodes("a", 1, 0, 3)],
            [(PartialDisruption, 0.01)],
            &["a-waiting-0"],
        )],
    );
}
