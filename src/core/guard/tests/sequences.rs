//! The guard over time.

use super::{guard, nodes, waiting, zone};
use crate::guard::{Limits, Member, Zones};
use crate::testing::moment;

#[test]
fn a_zone_that_turns_disrupted_takes_back_what_it_granted() {
    let mut guard = guard(Limits::default(), &[nodes("a", 5, 0, 5)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-met-0", "a", waiting(0));
    assert!(!guard.may_gate("a-waiting-0"), "at once");
    assert_eq!(guard.report().waiting, 6);
    assert_eq!(guard.granted(moment(1)), [""; 0]);
    guard.see("a-met-0", "a", Member::Met);
    assert_eq!(guard.granted(moment(2)), [""; 0]);
    assert!(!guard.may_gate("a-waiting-0"), "it has to be granted anew");
    assert_eq!(guard.granted(moment(12)), ["a-waiting-0"]);
}

#[test]
fn a_node_that_cannot_be_gated_makes_way_for_the_others_and_gets_another_turn() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 3)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    assert_eq!(guard.granted(moment(29)), [""; 0], "grants do not pile up");
    assert!(guard.may_gate("a-waiting-0"));
    assert_eq!(guard.next_grant(moment(29)), Some(moment(30)));
    assert_eq!(guard.granted(moment(30)), ["a-waiting-1"]);
    assert!(!guard.may_gate("a-waiting-0"));
    guard.see("a-waiting-1", "a", Member::Held);
    assert_eq!(guard.granted(moment(41)), ["a-waiting-2"]);
    guard.see("a-waiting-2", "a", Member::Held);
    assert_eq!(guard.granted(moment(52)), ["a-waiting-0"]);
    assert_eq!(guard.next_grant(moment(52)), None, "nobody else waits");
    assert_eq!(guard.granted(moment(600)), [""; 0]);
    assert!(guard.may_gate("a-waiting-0"), "so it may take its time");
}

#[test]
fn a_node_that_names_another_zone_counts_in_both_for_the_worse() {
    // Zones `a` and `b` with met and waiting nodes, and the nodes of `c` that have named `a`.
    #[rustfmt::skip]
    let cases = [
        ("a met node in a dead zone", (0, 8), (1, 0), "PartialDisruption (8 of 9 nodes unmet), nothing more"),
        ("many in one that is stopped", (2, 6), (9, 0), "PartialDisruption (6 of 8 nodes unmet), nothing more"),
        ("unmet nodes in a healthy one", (3, 2), (0, 2), "PartialDisruption (4 of 7 nodes unmet), nothing more"),
        ("too few of them", (3, 2), (0, 1), "Normal (2 of 5 nodes unmet), at most 0.1"),
        ("many in a small one that is stopped", (20, 30), (9, 9), "PartialDisruption (30 of 50 nodes unmet), nothing more"),
    ];
    for (name, (met, unmet), (named_by_met, named_by_unmet), expected) in cases {
        let mut guard = guard(Limits::default(), &[nodes("a", met, 0, unmet)]);
        let zones = Zones {
            home: zone("c"),
            other: Some(zone("a")),
        };
        let met = std::iter::repeat_n(Member::Met, named_by_met);
        let unmet = std::iter::repeat_n(Member::Held, named_by_unmet);
        // One node keeps the cluster from being disrupted as a whole.
        guard.see("c", "c", Member::Met);
        for (number, member) in met.chain(unmet).enumerate() {
            let node = format!("c-{number}").into();
            guard.observe(&node, zones.clone(), Some(member));
        }
        let report = guard.report();
        let found = report.zones[0].to_string();
        assert!(
            found.starts_with(&format!("zone a {expected}")),
            "{name}: {found}"
        );
    }
}

#[test]
fn zones_come_and_go_with_their_nodes() {
    let mut guard = guard(
        Limits::default(),
        &[nodes("a", 0, 0, 2), nodes("b", 1, 0, 0)],
    );
    assert!(!guard.report().all_zones_disrupted);
    assert!(guard.forget("b-met-0"));
    assert!(!guard.forget("b-met-0"));
    assert_eq!(guard.report().zones.len(), 1);
    assert!(guard.report().all_zones_disrupted, "b is no zone any more");
    assert_eq!(guard.granted(moment(0)), [""; 0]);
    assert!(guard.see("c", "c", Member::Met));
    assert_eq!(guard.granted(moment(0)), [""; 0]);
    assert_eq!(guard.granted(moment(10)), ["a-waiting-0"]);
}

#[test]
fn a_zone_that_comes_back_finds_its_bucket_as_it_was() {
    let mut guard = guard(
        Limits::default(),
        &[nodes("a", 0, 0, 1), nodes("b", 1, 0, 0)],
    );
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Held);
    guard.forget("a-waiting-0");
    assert_eq!(guard.granted(moment(1)), [""; 0]);
    guard.see("a-waiting-1", "a", waiting(2));
    assert_eq!(guard.granted(moment(2)), [""; 0]);
    assert_eq!(guard.granted(moment(11)), ["a-waiting-1"]);
}

#[test]
fn limits_that_change_hold_from_then_on() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 3)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Held);
    guard.limits = Limits {
        eviction_rate: 1.0,
        ..Limits::default()
    };
    assert_eq!(
        guard.granted(moment(5)),
        [""; 0],
        "half a token, at the old rate"
    );
    assert_eq!(guard.granted(moment(6)), ["a-waiting-1"]);
}

#[test]
fn a_granted_node_stays_granted_when_it_turns_out_to_have_waited_longer() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 2)]);
    assert_eq!(guard.granted(moment(5)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", waiting(-5));
    assert!(guard.may_gate("a-waiting-0"));
    guard.see("a-waiting-0", "a", Member::Met);
    assert_eq!(guard.granted(moment(5)), ["a-waiting-1"]);
}
