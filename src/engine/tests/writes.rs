//! Which part of a node's plan is written after a refusal, and what guards hold back.

use serde_json::{Value, json};

use super::{Bench, Input};
use crate::RequestError;
use crate::io::Request;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, node, rule};
use nodegate_core::condition::Watch;

const OTHER: &str = "readiness.k8s.io/other";

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn other() -> RuleBuilder {
    rule("other").waits_for("Disk").taint(OTHER, "NoSchedule")
}

fn forbidden() -> RequestError {
    RequestError::Failed("forbidden".into())
}

/// Refuses every write of a node.
fn refuses_nodes(request: &Request) -> Option<RequestError> {
    matches!(request, Request::PatchNode(..)).then(forbidden)
}

/// Refuses writes that touch the taint of [`gate`].
fn refuses_gate(request: &Request) -> Option<RequestError> {
    match request {
        Request::PatchNode(_, patch) => json!(patch).to_string().contains(GATE).then(forbidden),
        _ => None,
    }
}

fn condition(bench: &mut Bench, name: &str, kind: &str, status: &str) {
    bench.change(name, |node| {
        node["status"]["conditions"] = json!([{ "type": kind, "status": status }]);
    });
}

fn failures(bench: &Bench, rule: &str) -> i64 {
    bench.status(rule)["nodegate"]["failedNodeCount"]
        .as_i64()
        .unwrap()
}

#[test]
fn a_rule_that_has_nothing_to_do_any_more_has_not_failed_though_another_still_does() {
    let mut bench = Bench::refusing(&[gate(), other()], &[node("n")], refuses_nodes);
    bench.wait(3000);
    assert_eq!((failures(&bench, "r"), failures(&bench, "other")), (1, 1));
    condition(&mut bench, "n", "Net", "True");
    bench.wait(3000);
    assert_eq!((failures(&bench, "r"), failures(&bench, "other")), (0, 1));
}

#[test]
fn what_several_rules_want_of_a_node_is_one_write() {
    let mut bench = Bench::new(&[gate(), other()], &[node("n")]);
    let mut taints = bench.taints("n");
    taints.sort_unstable();
    assert_eq!(taints, [GATE, OTHER]);
    assert_eq!(bench.asked(), ["node n"]);
    bench.change("n", |node| {
        let met = |kind| json!({ "type": kind, "status": "True" });
        node["status"]["conditions"] = json!([met("Net"), met("Disk")]);
    });
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(bench.asked(), ["node n"]);
}

#[test]
fn what_is_refused_of_one_taint_alone_is_blamed_on_its_rule_at_once() {
    let mut bench = Bench::refusing(&[gate()], &[node("n")], refuses_nodes);
    assert_eq!(bench.refused, 2, "with its record, and alone");
    let failed = ["AddTaintError r", "EvaluationError r"];
    assert!(bench.counted().ends_with(&failed.map(str::to_owned)));
    bench.wait(60_000);
    assert!(bench.refused > 2);
    let told = "AddTaintError n: Rule 'r' failed to add taint: forbidden";
    assert_eq!(bench.told(), [told], "once, however often it is tried");
}

#[test]
fn what_is_refused_of_several_is_tried_one_by_one_at_once() {
    let mut bench = Bench::refusing(&[gate(), other()], &[node("n")], refuses_gate);
    assert_eq!(bench.taints("n"), [OTHER]);
    assert_eq!(
        bench.refused, 3,
        "together, one by one, and without its record"
    );
    bench.wait(30_000);
    let tries = bench.refused;
    assert!((6..20).contains(&tries), "{tries} in half a minute");
    bench.refusal = |_| None;
    bench.wait(30_000);
    assert_eq!(bench.taints("n"), [OTHER, GATE]);
}

/// Refuses every write that changes annotations, as if there were no room for any.
fn refuses_records(request: &Request) -> Option<RequestError> {
    let Request::PatchNode(_, patch) = request else {
        return None;
    };
    let is_record = |it: &Value| {
        let path = it["path"].as_str().unwrap();
        it["op"] != "test" && path.starts_with("/metadata/annotations")
    };
    let operations = json!(patch);
    let mut operations = operations.as_array().unwrap().iter();
    operations.any(is_record).then(forbidden)
}

#[test]
fn a_node_is_not_given_up_without_the_record_that_says_so_since_it_would_be_gated_again_at_once() {
    let repair = "repair: {readinessTTL: 1m, action: Release, maxUnhealthy: 100%}";
    let rule = gate().bootstrap_only().nodegate(repair);
    let mut bench = Bench::new(&[rule], &[node("n")]);
    bench.refusal = refuses_records;
    bench.wait(90_000);
    assert_eq!(bench.taints("n"), [GATE]);
    assert_eq!(failures(&bench, "r"), 1);
    assert!(bench.refused < 20, "{} times", bench.refused);
    bench.refusal = |_| None;
    bench.wait(60_000);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(failures(&bench, "r"), 0);
}

#[test]
fn a_deleted_rule_does_not_wait_for_ever_for_records_that_cannot_be_removed() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    bench.refusal = refuses_records;
    bench.sees_rule(&gate().deleting());
    assert_eq!(bench.taints("n"), [""; 0]);
    bench.wait(2000);
    assert_ne!(bench.rule("r")["metadata"]["finalizers"], Value::Null);
    bench.wait(60_000);
    assert_eq!(bench.rule("r")["metadata"]["finalizers"], Value::Null);
    bench.shows_gone(Watch::Rules, "r");
    bench.refusal = |_| None;
    bench.wait(60_000);
    let annotations = &bench.node("n")["metadata"]["annotations"];
    assert_eq!(
        annotations["nodegate.dev/taint-added-by-r-uid"],
        Value::Null
    );
}

fn broken() -> RequestError {
    RequestError::Broken("etcdserver: request is too large".into())
}

#[test]
fn a_node_whose_writes_fail_slows_no_other_however_often_it_changes() {
    let mut bench = Bench::refusing(&[gate()], &[node("huge")], |request| match request {
        Request::PatchNode(name, _) if **name == *"huge" => Some(broken()),
        _ => None,
    });
    for round in 0..60 {
        let status = if round % 2 == 0 { "True" } else { "False" };
        condition(&mut bench, "huge", "Net", status);
        let other = format!("n-{round}");
        bench.sees(&node(&other));
        assert_eq!(bench.taints(&other), [GATE], "at once");
        bench.wait(150);
    }
    assert!((4..20).contains(&bench.refused), "{} times", bench.refused);
}

#[test]
fn a_status_says_within_a_second_that_every_write_of_nodes_fails() {
    let names: Vec<String> = (0..20).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
    let mut bench = Bench::refusing(&[gate()], &nodes, |request| {
        refuses_nodes(request).map(|_| broken())
    });
    bench.wait(1000);
    let failed = bench.status("r")["failedNodes"].as_array();
    assert_eq!(failed.map(Vec::len), Some(10), "as many as it lists");
}

fn careful() -> RuleBuilder {
    gate().nodegate("disruption: {}")
}

fn met(name: &str) -> NodeBuilder {
    node(name).condition("Net", "True")
}

#[test]
fn a_guards_grant_is_spent_though_the_taint_was_removed_before_the_next_evaluation() {
    let mut bench = Bench::new(&[careful()], &["a", "b", "c"].map(met));
    bench.wait(20_000);
    bench.held_up = |request| matches!(request, Request::PatchNode(..));
    condition(&mut bench, "a", "Net", "False");
    let (id, request) = bench.pending.remove(0);
    let answer = bench.answer(request);
    bench.change("a", |node| node["spec"]["taints"] = json!([]));
    bench.held_up = |_| false;
    bench.take(vec![Input::Answered(id, answer)]);
    assert_eq!(bench.taints("a"), [""; 0]);
    bench.wait(8000);
    assert_eq!(bench.taints("a"), [""; 0]);
    bench.wait(3000);
    assert_eq!(
        bench.taints("a"),
        [GATE],
        "ten seconds after the first turn"
    );
}

#[test]
fn a_guard_wakes_the_engine_when_it_lets_another_node_go() {
    let mut bench = Bench::new(&[careful()], &["a", "b", "c"].map(met));
    bench.wait(20_000);
    for name in ["a", "b"] {
        condition(&mut bench, name, "Net", "False");
    }
    bench.wait(9700);
    let wake = bench.engine.next_wake().unwrap() - bench.now.monotonic;
    assert!((290..=301).contains(&wake.as_millis()), "{wake:?}");
    assert_eq!(bench.taints("b"), [""; 0]);
    bench.wait(301);
    assert_eq!(bench.taints("b"), [GATE]);
}

#[test]
fn a_node_that_goes_does_not_count_for_a_guard_any_more() {
    let mut bench = Bench::new(&[careful()], &["a", "b", "c", "d"].map(met));
    bench.wait(3000);
    assert_eq!(bench.guarded(), (4, 0, 0));
    bench.gone("a");
    bench.change("b", |node| node["metadata"]["labels"] = json!({}));
    assert_eq!(bench.guarded(), (2, 0, 0));
}

#[test]
fn a_taint_that_somebody_takes_off_when_it_may_go_is_put_on_again_at_once() {
    let patient = other().nodegate("gracePeriod: 1h");
    let tainted = node("n").taint("dedicated", "NoSchedule");
    let mut bench = Bench::new(&[gate(), patient], &[tainted.condition("Disk", "True")]);
    for round in 0..10 {
        assert_eq!(bench.taints("n"), ["dedicated", GATE], "{round}");
        bench.change("n", |node| {
            node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
            node["spec"]["taints"] = json!([{ "key": "dedicated", "effect": "NoSchedule" }]);
        });
        bench.wait(100);
        assert_eq!(bench.taints("n"), ["dedicated"], "{round}");
        let records = &bench.node("n")["metadata"]["annotations"];
        assert_eq!(records, &json!({}), "{round}");
        condition(&mut bench, "n", "Net", "False");
    }
}

#[test]
fn the_guard_of_a_rule_that_a_process_takes_over_starts_from_zero() {
    for (what, rule, at_once) in [
        ("a new rule", careful().without_finalizer(), true),
        ("taken over", careful(), false),
    ] {
        let mut bench = Bench::new(&[rule], &["a", "b", "c"].map(met));
        condition(&mut bench, "a", "Net", "False");
        bench.wait(1000);
        assert_eq!(bench.taints("a") == [GATE], at_once, "{what}");
        bench.wait(10_000);
        assert_eq!(bench.taints("a"), [GATE], "{what}");
    }
}

#[test]
fn what_a_guard_holds_back_is_told_again_when_a_zone_gets_into_another_state() {
    let limited = |bench: &mut Bench| {
        let told = bench.told();
        let is_about_it = |it: &&String| it.starts_with("DisruptionLimited");
        told.iter().filter(is_about_it).count()
    };
    let nodes = ["a", "b", "c", "d", "e"].map(met);
    let mut bench = Bench::new(&[careful()], &nodes);
    bench.wait(20_000);
    for name in ["a", "b"] {
        condition(&mut bench, name, "Net", "False");
    }
    bench.wait(2000);
    assert_eq!(limited(&mut bench), 1);
    bench.sees(&met("f"));
    bench.wait(2000);
    assert_eq!(limited(&mut bench), 0, "the zone is as it was");
    for name in ["c", "d", "e", "f"] {
        condition(&mut bench, name, "Net", "False");
    }
    bench.wait(2000);
    assert_eq!(limited(&mut bench), 1, "all are disrupted");
    for again in ["in another state", "in the same"] {
        for name in ["a", "b", "c", "d", "e", "f"] {
            condition(&mut bench, name, "Net", "True");
        }
        bench.wait(20_000);
        assert_eq!(
            limited(&mut bench),
            0,
            "that it has ended is seen in the status"
        );
        for name in ["a", "b"] {
            condition(&mut bench, name, "Net", "False");
        }
        bench.wait(2000);
        assert_eq!(limited(&mut bench), 1, "{again}");
    }
}

#[test]
fn nodes_whose_writes_take_long_leave_room_for_another_nodes_first_reaction() {
    let names: Vec<String> = (0..70).map(|index| format!("slow-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
    let mut bench = Bench::new(&[gate()], &[]);
    bench.held_up =
        |request| matches!(request, Request::PatchNode(name, _) if name.starts_with("slow"));
    for node in &nodes {
        bench.sees(node);
    }
    for begun in [64, 6] {
        assert_eq!(bench.pending.len(), begun);
        bench.wait(9000);
        bench.answers();
    }
    for name in &names {
        condition(&mut bench, name, "Net", "True");
    }
    bench.wait(3000);
    assert_eq!(bench.pending.len(), 48);
    bench.sees(&node("other"));
    assert_eq!(bench.taints("other"), [GATE], "at once");
    for _ in 0..2 {
        bench.answers();
        bench.wait(3000);
    }
    assert_eq!(bench.taints("slow-69"), [""; 0]);
}
