//! The guard over time.

use std::time::Instant;

use super::{Guard, guard, nodes, waiting};
use crate::guard::zone::ZoneState;
use crate::guard::{Limits, Member};
use crate::testing::moment;

/// Gates nodes as soon as they are granted, until no more are; returns when each was gated.
fn gate_all(guard: &mut Guard, zone: &str, start: Instant) -> Vec<(String, u64)> {
    let mut gated = Vec::new();
    let mut now = start;
    loop {
        for node in guard.granted(now) {
            let after = now.duration_since(start).as_secs();
            assert!(guard.may_gate(&node));
            guard.see(&node, zone, Member::Held);
            gated.push((node, after));
        }
        match guard.next_grant(now) {
            Some(next) => now = next,
            None => return gated,
        }
    }
}

#[test]
fn nodes_are_gated_one_by_one_at_the_rate_until_the_zone_is_disrupted() {
    let mut guard = guard(Limits::default(), &[nodes("a", 8, 0, 4)]);
    let names = [0, 10, 20, 30].map(|after| (format!("a-waiting-{}", after / 10), after));
    assert_eq!(gate_all(&mut guard, "a", moment(100)), names);
    let mut guard = super::guard(Limits::default(), &[nodes("a", 5, 0, 5)]);
    guard.granted(moment(100));
    guard.see("a-met-0", "a", waiting(100));
    assert_eq!(gate_all(&mut guard, "a", moment(100)), []);
    assert_eq!(guard.report().zones[0].state, ZoneState::PartialDisruption);
}

#[test]
fn the_time_for_the_next_grant_is_known() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 2)]);
    assert_eq!(guard.next_grant(moment(0)), Some(moment(0)));
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Held);
    let next = guard.next_grant(moment(0)).unwrap();
    assert_eq!((next - moment(0)).as_secs(), 10);
    assert_eq!(guard.granted(moment(9)), [""; 0]);
    assert_eq!(guard.granted(next), ["a-waiting-1"]);
    assert_eq!(guard.next_grant(next), None, "nothing waits any more");
}

#[test]
fn a_node_that_recovers_while_it_waits_is_never_gated() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 3)]);
    guard.see("a-waiting-0", "a", Member::Met);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-1"]);
    assert!(!guard.may_gate("a-waiting-0"));
}

#[test]
fn a_granted_node_that_recovers_gives_its_token_to_the_next() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 3)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Met);
    assert!(!guard.may_gate("a-waiting-0"));
    assert_eq!(guard.granted(moment(0)), ["a-waiting-1"]);
    guard.forget("a-waiting-1");
    assert_eq!(guard.granted(moment(0)), ["a-waiting-2"]);
}

#[test]
fn a_node_that_was_gated_keeps_its_token() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 2)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Held);
    guard.see("a-waiting-0", "a", Member::Met);
    assert_eq!(
        guard.granted(moment(0)),
        [""; 0],
        "releasing it gives nothing back"
    );
}

#[test]
fn a_node_that_is_met_again_by_the_time_it_is_held_has_spent_its_token() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 3)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.gated("a-waiting-0");
    assert!(
        !guard.may_gate("a-waiting-0"),
        "a second time takes a second token"
    );
    guard.see("a-waiting-0", "a", Member::Met);
    assert_eq!(guard.granted(moment(0)), [""; 0]);
    guard.see("a-waiting-0", "a", waiting(0));
    assert_eq!(guard.granted(moment(10)), ["a-waiting-0"]);
    guard.gated("a-waiting-0");
    guard.forget("a-waiting-0");
    assert_eq!(guard.granted(moment(19)), [""; 0], "nor is it given back");
    assert_eq!(guard.granted(moment(20)), ["a-waiting-1"]);
}

#[test]
fn only_a_granted_node_has_a_token_to_spend() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 2)]);
    guard.gated("nobody");
    guard.gated("a-waiting-1");
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.gated("a-waiting-1");
    assert!(guard.may_gate("a-waiting-0"));
}

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
fn when_one_zone_recovers_the_others_go_on() {
    let mut guard = guard(
        Limits::default(),
        &[nodes("a", 0, 0, 4), nodes("b", 0, 0, 4)],
    );
    assert!(guard.report().all_zones_disrupted);
    assert_eq!(
        (guard.granted(moment(0)), guard.next_grant(moment(0))),
        (vec![], None)
    );
    guard.see("b-waiting-3", "b", Member::Met);
    assert!(!guard.report().all_zones_disrupted);
    assert_eq!(
        guard.granted(moment(1)),
        [""; 0],
        "not before the rest had time to follow"
    );
    assert_eq!(
        guard.granted(moment(11)),
        ["a-waiting-0"],
        "b is partially disrupted"
    );
    guard.see("b-waiting-2", "b", Member::Met);
    assert_eq!(guard.granted(moment(12)), [""; 0]);
    assert_eq!(guard.granted(moment(22)), ["b-waiting-0"]);
}

#[test]
fn nothing_is_saved_up_while_the_rate_is_zero() {
    let mut guard = guard(Limits::default(), &[nodes("a", 5, 0, 5)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Held);
    guard.see("a-met-0", "a", waiting(0));
    assert_eq!(guard.granted(moment(0)), [""; 0]);
    guard.see("a-met-0", "a", Member::Met);
    assert_eq!(guard.granted(moment(3600)), [""; 0]);
    let next = guard.next_grant(moment(3600)).unwrap();
    assert_eq!((next - moment(0)).as_secs(), 3610);
}

#[test]
fn a_restarted_guard_gates_nothing_until_its_buckets_have_refilled() {
    let mut guard = guard(
        Limits::default(),
        &[nodes("a", 9, 0, 2), nodes("b", 9, 0, 1)],
    );
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0", "b-waiting-0"]);
    guard.start_over();
    assert!(!guard.may_gate("a-waiting-0"), "it was not gated in time");
    assert_eq!(guard.granted(moment(100)), [""; 0]);
    let next = guard.next_grant(moment(100)).unwrap();
    assert_eq!((next - moment(100)).as_secs(), 10);
    assert_eq!(guard.granted(next), ["a-waiting-0", "b-waiting-0"]);
    guard.see("a-waiting-0", "a", Member::Held);
    assert_eq!(guard.granted(moment(115)), [""; 0]);
    assert_eq!(guard.granted(moment(121)), ["a-waiting-1"]);
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
fn a_node_that_moves_to_another_zone_is_counted_there_alone() {
    let mut guard = guard(
        Limits::default(),
        &[nodes("a", 9, 0, 2), nodes("b", 9, 0, 0)],
    );
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    assert!(guard.see("a-waiting-0", "b", waiting(0)));
    let counts = guard.report().zones.into_iter();
    let counts: Vec<_> = counts
        .map(|zone| (zone.met, zone.unmet, zone.waiting))
        .collect();
    assert_eq!(counts, [(9, 1, 1), (9, 1, 1)]);
    assert!(!guard.may_gate("a-waiting-0"), "b has not granted it");
    assert_eq!(
        guard.granted(moment(0)),
        ["a-waiting-0", "a-waiting-1"],
        "a has its token back"
    );
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
    guard.set_limits(Limits {
        eviction_rate: 1.0,
        ..Limits::default()
    });
    assert_eq!(
        guard.granted(moment(5)),
        [""; 0],
        "half a token, at the old rate"
    );
    assert_eq!(guard.granted(moment(6)), ["a-waiting-1"]);
}

#[test]
fn an_unchanged_observation_is_no_news() {
    let mut guard = guard(Limits::default(), &[nodes("a", 1, 0, 1)]);
    assert!(!guard.see("a-met-0", "a", Member::Met));
    assert!(!guard.see("a-waiting-0", "a", waiting(0)));
    assert!(guard.see("a-waiting-0", "a", waiting(1)));
    assert!(guard.see("a-waiting-0", "b", waiting(1)));
    let node = "a-waiting-0".into();
    assert!(guard.observe(&node, super::zone("a"), None));
    assert!(!guard.observe(&node, super::zone("a"), None));
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

#[test]
fn a_missed_turn_is_forgotten_once_the_node_does_not_wait_any_more() {
    let mut guard = guard(Limits::default(), &[nodes("a", 9, 0, 3)]);
    assert_eq!(guard.granted(moment(0)), ["a-waiting-0"]);
    assert_eq!(guard.granted(moment(30)), ["a-waiting-1"]);
    guard.see("a-waiting-0", "a", Member::Met);
    guard.see("a-waiting-1", "a", Member::Held);
    guard.see("a-waiting-0", "a", waiting(0));
    assert_eq!(guard.granted(moment(40)), ["a-waiting-0"]);
}
