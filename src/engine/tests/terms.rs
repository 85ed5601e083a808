//! When an instance starts and stops to act, and how it copes with jumps of the clock.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{Bench, Input, Seen, settings};
use crate::io::Request;
use crate::survey::LEADER;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};
use nodegate_core::condition::Watch;

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

/// A follower that has seen a rule and a node.
fn follower() -> Bench {
    let mut bench = Bench::of(&settings());
    for (watch, object) in [
        (Watch::Rules, gate().json().clone()),
        (Watch::Nodes, node("n").json().clone()),
    ] {
        bench.cluster.put(watch, object);
    }
    let listed = bench.listed();
    bench.take(listed);
    bench
}

#[test]
fn an_instance_that_does_not_lead_does_nothing() {
    let mut bench = follower();
    bench.wait(10_000);
    assert!(bench.engine.has_synced() && bench.engine.is_idle());
    assert_eq!(bench.asked(), [""; 0]);
    assert_eq!(bench.gauge(&LEADER, &[]), Some(0));
    bench.take(vec![Input::Leads]);
    assert_eq!(bench.gauge(&LEADER, &[]), Some(1));
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn nothing_is_decided_before_every_watch_has_shown_all_there_is() {
    for missing in [Watch::Nodes, Watch::Rules] {
        let mut bench = Bench::of(&settings());
        bench.cluster.put(Watch::Rules, gate().json().clone());
        bench.cluster.put(Watch::Nodes, node("n").json().clone());
        let mut inputs = vec![Input::Leads];
        let is_missing = |input: &Input| matches!(input, Input::Seen(Seen::InitDone(watch)) if *watch == missing);
        inputs.extend(
            bench
                .listed()
                .into_iter()
                .filter(|input| !is_missing(input)),
        );
        bench.take(inputs);
        bench.wait(1000);
        assert!(!bench.engine.has_synced(), "{missing:?}");
        assert_eq!(bench.asked(), [""; 0], "{missing:?}");
        bench.take(vec![Input::Seen(Seen::InitDone(missing))]);
        assert_eq!(bench.taints("n"), [GATE], "{missing:?}");
    }
}

#[test]
fn an_instance_that_stops_begins_nothing_and_tells_what_has_been_done() {
    let mut bench = Bench::new(&[gate()], &[]);
    bench.wait(1000);
    bench.held_up = |request| matches!(request, Request::PatchNode(..));
    bench.sees(&node("n"));
    bench.asked();
    bench.take(vec![Input::Stop]);
    bench.sees(&node("m"));
    bench.sees_rule(&rule("s").waits_for("Net").without_finalizer());
    bench.wait(5000);
    assert_eq!(bench.pending.len(), 1);
    assert_eq!(bench.asked(), [""; 0], "no status either");
    assert!(!bench.engine.is_idle());
    bench.counted();
    bench.answers();
    assert_eq!(bench.asked(), ["node n"]);
    assert_eq!(bench.counted(), ["Added r"]);
    assert_eq!(bench.told().len(), 1);
    assert!(bench.engine.is_idle());
    bench.wait(5000);
    assert_eq!(bench.asked(), [""; 0]);
}

#[test]
fn what_was_seen_before_an_instance_led_or_the_process_stood_still_gates_no_node() {
    for (name, seconds, rests, gates) in [
        ("for a moment", 2, false, true),
        ("for long", 4, false, false),
        ("at work for long", 4, true, true),
    ] {
        let mut bench = Bench::new(&[gate()], &[node("n").condition("Net", "True")]);
        bench.wait(1000);
        bench.silent = bench.watches.clone();
        bench.now.monotonic += Duration::from_secs(seconds);
        bench.now.wall += Duration::from_secs(seconds);
        if rests {
            bench.engine.rest(bench.now.monotonic);
        }
        bench.take(Vec::new());
        bench.change("n", |node| {
            node["status"]["conditions"][0]["status"] = json!("False");
        });
        assert_eq!(bench.taints("n") == [GATE], gates, "{name}");
        assert_eq!(bench.restarts == 0, gates, "{name}");
        bench.silent.clear();
        let confirmed = bench.confirmed();
        bench.take(confirmed);
        assert_eq!(bench.taints("n"), [GATE], "{name}");
    }
}

#[test]
fn a_new_leader_lists_at_once_what_is_one_page_instead_of_waiting_for_quiet_watches() {
    let mut bench = follower();
    bench.wait(6000);
    bench.take(vec![Input::Leads]);
    bench.change("n", |_| {});
    assert_eq!(bench.taints("n"), [""; 0], "it may have missed something");
    assert_eq!(bench.restarts, bench.watches.len());
    let listed = bench.lists_of(&bench.watches);
    bench.take(listed);
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn a_grace_period_begins_anew_where_the_clock_was_set() {
    let patient = gate().nodegate("gracePeriod: 30s");
    for (name, is_set, gated_after) in [("even", false, 10), ("set", true, 30)] {
        let mut bench = Bench::new(
            std::slice::from_ref(&patient),
            &[node("n").condition("Net", "True")],
        );
        bench.wait(10_000);
        bench.change("n", |node| {
            node["status"]["conditions"][0]["status"] = json!("False");
        });
        bench.wait(20_000);
        let mut ahead = Duration::ZERO;
        if is_set {
            ahead = Duration::from_secs(3600);
        }
        let mut passed = 0;
        while bench.taints("n").is_empty() {
            bench.now.monotonic += Duration::from_secs(1);
            passed += 1;
            bench.now.wall = at(130 + passed) + ahead;
            let confirmed = bench.confirmed();
            bench.take(confirmed);
            assert!(passed < 100);
        }
        assert!(
            (gated_after..=gated_after + 1).contains(&passed),
            "{name}: {passed}"
        );
    }
}

#[test]
fn a_silence_counts_from_when_nodes_can_be_seen_again() {
    let beating = gate().nodegate("heartbeatTimeout: 1m");
    let beat = |bench: &Bench| {
        let now = bench.now.wall;
        let net = json!({"type": "Net", "status": "True", "lastHeartbeatTime": now});
        node("n").condition_with(net)
    };
    for (name, watch, unseen, gated_after) in [
        ("a blink", Watch::Nodes, 4, 60),
        ("for long", Watch::Nodes, 30, 90),
        ("rules alone", Watch::Rules, 30, 60),
    ] {
        let mut bench = Bench::new(std::slice::from_ref(&beating), &[]);
        let first = beat(&bench);
        bench.sees(&first);
        bench.wait(1000);
        let first = beat(&bench);
        bench.sees(&first);
        assert_eq!(bench.taints("n"), [""; 0], "{name}");
        bench.silent = vec![watch];
        bench.wait(unseen * 1000);
        bench.silent.clear();
        let mut passed = unseen;
        while bench.taints("n").is_empty() {
            bench.wait(1000);
            passed += 1;
            assert!(passed < 200);
        }
        assert!(
            (gated_after..=gated_after + 15).contains(&passed),
            "{name}: after {passed} s"
        );
    }
}

/// A node on which the network's reporter wrote its condition first, and now again, at these times.
fn written(name: &str, first: Timestamp, again: Timestamp) -> NodeBuilder {
    node(name).condition_with(json!({
        "type": "Net", "status": "True", "lastTransitionTime": first, "lastHeartbeatTime": again,
    }))
}

#[test]
fn a_reporter_that_is_first_heard_while_nodes_are_stale_may_fall_silent() {
    let mut bench = Bench::new(&[gate().nodegate("heartbeatTimeout: 1m")], &[]);
    bench.wait(1000);
    bench.silent = vec![Watch::Nodes];
    bench.wait(29_000);
    bench.sees(&written("m", at(0), bench.now.wall));
    bench.wait(3000);
    bench.sees(&written("n", at(0), bench.now.wall));
    bench.wait(1000);
    bench.silent.clear();
    bench.wait(80_000);
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn a_condition_that_is_written_once_is_believed_until_a_reporter_of_it_beats_on_any_node() {
    let once = |name: &str| written(name, at(90), at(91));
    let rule = gate().nodegate("heartbeatTimeout: 1m");
    let mut bench = Bench::new(&[rule], &["a", "b", "c"].map(once));
    bench.wait(300_000);
    bench.sees(&written("a", bench.now.wall, bench.now.wall));
    bench.wait(300_000);
    let waits = |bench: &Bench| {
        bench
            .status("r")
            .to_string()
            .contains("HeartbeatTimeoutWaits")
    };
    assert!(waits(&bench), "a reporter that starts again writes it anew");
    for name in ["a", "b", "c"] {
        assert_eq!(bench.taints(name), [""; 0], "{name}");
    }
    let wrote = bench.now.wall;
    bench.wait(10_000);
    bench.sees(&written("a", wrote, bench.now.wall));
    bench.wait(10_000);
    assert!(!waits(&bench));
    assert_eq!(bench.taints("a"), [""; 0]);
    assert_eq!(bench.taints("b"), [GATE], "its reporter has died");
}
