//! Which part of a node's plan is written after a refusal, and what guards hold back.

use serde_json::{Value, json};

use super::{Bench, Input};
use crate::condition::Watch;
use crate::engine::RequestError;
use crate::engine::io::Request;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, node, rule};

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
fn a_bootstrap_that_is_completed_beside_something_refused_is_counted() {
    let done = other().bootstrap_only();
    let tainted = node("n")
        .condition("Disk", "True")
        .taint(OTHER, "NoSchedule");
    let mut bench = Bench::refusing(&[gate(), done], &[tainted], refuses_gate);
    bench.wait(3000);
    assert_eq!(bench.taints("n"), [""; 0]);
    let counted = bench.counted();
    let completed = "BootstrapCompleted other since Some(0)".to_owned();
    assert!(counted.contains(&completed), "{counted:?}");
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

#[test]
fn a_write_that_names_the_wrong_thing_is_not_blamed_on_a_rule_that_only_changes_with_it() {
    // The first write gates the node for one rule and records another rule's completion.
    let done = rule("done")
        .waits_for("Disk")
        .taint(OTHER, "NoSchedule")
        .bootstrap_only();
    let mut bench = Bench::refusing(
        &[gate(), done],
        &[node("n").condition("Disk", "True")],
        |request| match request {
            Request::PatchNode(_, patch) => {
                let patch = json!(patch).to_string();
                patch.contains("bootstrap-completed").then(forbidden)
            }
            _ => None,
        },
    );
    assert_eq!(bench.taints("n"), [GATE]);
    let counted = bench.counted();
    assert!(
        !counted.contains(&"AddTaintError r".to_owned()),
        "{counted:?}"
    );
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
fn a_node_is_gated_and_released_without_the_records_that_it_has_no_room_for() {
    const COMPLETED: &str = "readiness.k8s.io/bootstrap-completed-r-uid";
    for (rule, completed) in [
        (gate(), Value::Null),
        (gate().bootstrap_only(), json!(r#"{"rule-name":"r"}"#)),
    ] {
        let mut bench = Bench::refusing(&[rule], &[node("n")], refuses_records);
        assert_eq!(bench.taints("n"), [GATE]);
        bench.wait(30_000);
        assert!(bench.refused < 20, "{} times", bench.refused);
        assert_eq!(failures(&bench, "r"), 0);
        let refused = bench.refused;
        condition(&mut bench, "n", "Net", "True");
        assert_eq!(bench.taints("n"), [""; 0]);
        assert_eq!(bench.refused, refused, "at once");
        bench.refusal = |_| None;
        bench.wait(60_000);
        let annotations = &bench.node("n")["metadata"]["annotations"];
        assert_eq!(annotations[COMPLETED], completed);
        assert_eq!(
            annotations["nodegate.dev/taint-added-by-r-uid"],
            Value::Null
        );
        let failed = bench.told().into_iter().find(|it| it.contains("Error"));
        assert_eq!(failed, None);
    }
}

#[test]
fn each_of_two_taints_is_put_on_without_the_records_that_the_node_has_no_room_for() {
    const SECOND: &str = "readiness.k8s.io/second";
    let second = rule("s").waits_for("Net").taint(SECOND, "NoSchedule");
    let mut bench = Bench::refusing(&[gate(), second], &[node("n")], refuses_records);
    bench.wait(1000);
    assert_eq!(bench.taints("n"), [GATE, SECOND]);
}

#[test]
fn a_taint_is_changed_without_its_record_where_writing_both_fails_again_and_again() {
    let mut bench = Bench::refusing(&[gate()], &[node("n")], |request| {
        refuses_records(request).map(|_| broken())
    });
    assert_eq!(bench.taints("n"), [""; 0], "it may pass");
    bench.wait(1000);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.wait(2000);
    assert_eq!(failures(&bench, "r"), 0);
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
fn a_taint_is_on_record_once_what_refuses_all_writes_is_over() {
    let mut bench = Bench::refusing(&[gate()], &[node("n")], refuses_nodes);
    bench.wait(20_000);
    assert_eq!(failures(&bench, "r"), 1);
    bench.refusal = |_| None;
    bench.wait(60_000);
    assert_eq!(bench.taints("n"), [GATE]);
    let annotations = &bench.node("n")["metadata"]["annotations"];
    assert_ne!(
        annotations["nodegate.dev/taint-added-by-r-uid"],
        Value::Null
    );
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

#[test]
fn what_is_refused_on_many_nodes_is_retried_ten_times_a_second_and_soon_once_one_goes_through() {
    let names: Vec<String> = (0..500).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
    let mut bench = Bench::refusing(&[gate()], &nodes, refuses_nodes);
    bench.wait(20_000);
    let before = bench.refused;
    bench.wait(10_000);
    let tries = bench.refused - before;
    assert!((20..=150).contains(&tries), "{tries} in ten seconds");
    // Other writes of the same nodes are not delayed.
    bench.refusal = refuses_gate;
    bench.sees_rule(&other());
    bench.wait(5000);
    let with_other = names.iter().filter(|name| bench.taints(name) == [OTHER]);
    assert_eq!(with_other.count(), 500);
    bench.refusal = |_| None;
    bench.wait(60_000);
    let with_both = names.iter().filter(|name| bench.taints(name).len() == 2);
    assert_eq!(with_both.count(), 500);
}

#[test]
fn a_node_that_goes_while_it_waits_to_be_tried_again_is_forgotten() {
    let names: Vec<String> = (0..20).map(|index| format!("n-{index}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
    let mut bench = Bench::refusing(&[gate()], &nodes, refuses_nodes);
    bench.wait(5000);
    for name in &names {
        bench.gone(name);
    }
    let refused = bench.refused;
    bench.wait(60_000);
    assert_eq!(bench.refused, refused);
    assert_eq!(bench.status("r")["nodegate"]["matchedNodes"], json!(0));
    assert_eq!(failures(&bench, "r"), 0);
}

#[test]
fn an_annotation_that_somebody_keeps_restoring_is_followed_ever_more_slowly() {
    const LEFT: &str = "nodegate.dev/ready-deadline-r-uid";
    let mut bench = Bench::new(&[gate()], &[met("n")]);
    bench.asked();
    for _ in 0..600 {
        bench.change("n", |node| {
            node["metadata"]["annotations"][LEFT] = json!("never");
        });
        bench.wait(1000);
    }
    let asked = bench.asked();
    let writes = asked.iter().filter(|it| **it == "node n").count();
    assert!((6..20).contains(&writes), "{writes} in ten minutes");
    condition(&mut bench, "n", "Net", "False");
    bench.wait(2000);
    assert_eq!(bench.taints("n"), [GATE], "nothing else is held up");
    bench.wait(600_000);
    assert_eq!(
        bench.node("n")["metadata"]["annotations"][LEFT],
        json!(null)
    );
}

#[test]
fn what_the_answer_says_to_be_gone_is_tried_again_after_a_pause() {
    let mut bench = Bench::refusing(&[gate()], &[node("n")], |request| {
        matches!(request, Request::PatchNode(..)).then_some(RequestError::Gone)
    });
    bench.wait(3000);
    assert!((4..12).contains(&bench.refused), "{} times", bench.refused);
    bench.wait(1000);
    assert_eq!(failures(&bench, "r"), 0, "nobody has refused it");
    bench.refusal = |_| None;
    bench.wait(10_000);
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn an_answer_that_a_watch_has_overtaken_changes_nothing() {
    let mut bench = Bench::new(&[gate()], &[]);
    bench.held_up = |request| matches!(request, Request::PatchNode(..));
    bench.sees(&node("n"));
    let (id, request) = bench.pending.remove(0);
    let answer = bench.answer(request);
    condition(&mut bench, "n", "Net", "True");
    bench.held_up = |_| false;
    bench.change("n", |node| node["spec"]["taints"] = json!([]));
    bench.asked();
    bench.take(vec![Input::Answered(id, answer)]);
    assert_eq!(
        bench.asked(),
        ["node n"],
        "what is left of it on record goes"
    );
    assert_eq!(bench.taints("n"), [""; 0]);
}

#[test]
fn an_answer_about_an_earlier_node_of_the_name_says_nothing_of_the_new_one() {
    let mut bench = Bench::new(&[gate()], &[]);
    bench.held_up = |request| matches!(request, Request::PatchNode(..));
    bench.sees(&node("n"));
    let (id, request) = bench.pending.remove(0);
    let answer = bench.answer(request);
    bench.gone("n");
    bench.sees(&node("n").uid("another"));
    bench.held_up = |_| false;
    bench.take(vec![Input::Answered(id, answer)]);
    assert_eq!(bench.taints("n"), [GATE]);
    assert_eq!(bench.asked(), ["node n", "node n"]);
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
fn a_node_that_goes_does_not_count_for_a_guard_any_more() {
    let mut bench = Bench::new(&[careful()], &["a", "b", "c", "d"].map(met));
    bench.wait(3000);
    assert_eq!(bench.guarded(), (4, 0, 0));
    bench.gone("a");
    bench.change("b", |node| node["metadata"]["labels"] = json!({}));
    assert_eq!(bench.guarded(), (2, 0, 0));
}
