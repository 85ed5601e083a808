//! The nodes' evaluations.

use serde_json::{Value, json};

use super::{Bench, Refusal, settings};
use crate::engine::io::{EvaluationWrite, Request};
use crate::engine::kind::Watch;
use crate::engine::{RequestError, Settings};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, node, rule};

fn waiting() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn met() -> NodeBuilder {
    node("n").condition("Net", "True")
}

fn with_evaluations() -> Settings {
    Settings {
        node_readiness_evaluation: true,
        ..settings()
    }
}

fn refusing(rules: &[RuleBuilder], nodes: &[NodeBuilder], refusal: Refusal) -> Bench {
    let mut bench = Bench::of(with_evaluations());
    bench.refusal = refusal;
    bench.begin(rules, nodes);
    bench
}

/// An engine that writes evaluations, after its first reaction.
fn bench(rules: &[RuleBuilder], nodes: &[NodeBuilder]) -> Bench {
    refusing(rules, nodes, |_| None)
}

/// The requests about evaluations since the last call.
fn asked(bench: &mut Bench) -> Vec<String> {
    let mut asked = bench.asked();
    asked.retain(|it| it.contains("evaluation"));
    asked
}

fn evaluation<'a>(bench: &'a Bench, name: &str) -> Option<&'a Value> {
    bench.cluster.get(Watch::Evaluations, name)
}

fn state(bench: &Bench) -> &str {
    let evaluation = evaluation(bench, "n");
    evaluation.map_or("none", |it| {
        it["status"]["state"].as_str().unwrap_or("empty")
    })
}

fn set(bench: &mut Bench, status: &str) {
    let conditions = json!([{"type": "Net", "status": status}]);
    bench.change("n", |node| node["status"]["conditions"] = conditions);
}

#[test]
fn a_node_has_one_that_follows_it_and_is_written_only_when_it_changes() {
    let mut bench = bench(&[waiting()], &[node("n")]);
    bench.wait(900);
    assert_eq!(asked(&mut bench), [""; 0], "a moment later");
    bench.wait(200);
    assert_eq!(asked(&mut bench), ["create evaluation n", "evaluation n"]);
    assert_eq!(state(&bench), "NotReady");
    let owner = &evaluation(&bench, "n").unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["uid"]),
        (&json!("Node"), &json!("n-uid"))
    );
    for beat in 0..10 {
        bench.change("n", |node| {
            let heartbeat = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": format!("2026-01-01T00:0{beat}:00Z")});
            node["status"]["conditions"] = json!([heartbeat]);
        });
        bench.wait(10_000);
    }
    assert_eq!(asked(&mut bench), [""; 0]);
    set(&mut bench, "True");
    bench.wait(2000);
    assert_eq!(asked(&mut bench), ["evaluation n"]);
    assert_eq!(state(&bench), "Ready");
    let written = evaluation(&bench, "n").unwrap().clone();
    let rule = &written["status"]["rules"][0];
    assert_eq!(rule["ruleRef"], json!({"name": "r", "uid": "r-uid"}));
    assert!(rule["taintRemovedAt"].is_string() && rule["taintAddedAt"].is_string());

    // Another process finds it.
    let mut next = Bench::of(with_evaluations());
    next.cluster.put(Watch::Evaluations, written.clone());
    next.begin(&[waiting()], &[met()]);
    next.wait(60_000);
    assert_eq!(asked(&mut next), [""; 0]);
    assert_eq!(evaluation(&next, "n").unwrap()["status"], written["status"]);
}

#[test]
fn what_changes_back_within_a_moment_is_not_written() {
    let mut bench = bench(&[waiting()], &[met()]);
    bench.wait(2000);
    assert_eq!(state(&bench), "Ready");
    asked(&mut bench);
    let opened = waiting().spec("gracePeriod: 1m");
    bench.sees_rule(&opened);
    set(&mut bench, "False");
    bench.wait(500);
    set(&mut bench, "True");
    bench.wait(10_000);
    assert_eq!(asked(&mut bench), [""; 0]);
}

#[test]
fn it_goes_when_no_rule_selects_the_node_and_is_left_to_the_garbage_collector_when_the_node_goes() {
    let selected = || met().label("pool", "a");
    let mut bench = bench(&[waiting().selects("pool", "a")], &[selected()]);
    bench.wait(2000);
    asked(&mut bench);
    bench.sees(&met());
    bench.wait(20_000);
    assert_eq!(asked(&mut bench), ["delete evaluation n"]);
    bench.sees(&selected());
    bench.wait(2000);
    assert_eq!(asked(&mut bench), ["create evaluation n", "evaluation n"]);
    bench.sees(&selected().deleting());
    bench.wait(20_000);
    bench.gone("n");
    bench.wait(20_000);
    assert_eq!(asked(&mut bench), [""; 0]);
    // A node that comes again before it has been collected.
    bench.sees(&selected().uid("another"));
    bench.wait(5000);
    let expected = ["delete evaluation n", "create evaluation n", "evaluation n"];
    assert_eq!(asked(&mut bench), expected);
    let owner = &evaluation(&bench, "n").unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], "another");
}

#[test]
fn who_overwrites_or_deletes_it_is_followed_slowly() {
    let mut bench = bench(&[waiting()], &[met()]);
    bench.wait(2000);
    asked(&mut bench);
    for _ in 0..100 {
        let mut other = evaluation(&bench, "n").unwrap().clone();
        other["status"]["state"] = json!("NotReady");
        bench.shows(Watch::Evaluations, other);
        bench.wait(1000);
    }
    let writes = asked(&mut bench).len();
    assert!((8..=11).contains(&writes), "{writes} in 100 seconds");
    for _ in 0..100 {
        if evaluation(&bench, "n").is_some() {
            bench.shows_gone(Watch::Evaluations, "n");
        }
        bench.wait(1000);
    }
    let writes = asked(&mut bench).len();
    assert!((8..=22).contains(&writes), "{writes} in 100 seconds");
    bench.wait(12_000);
    assert_eq!(state(&bench), "Ready");
}

#[test]
fn nothing_is_written_while_anything_is_stale() {
    let mut bench = bench(&[waiting()], &[met()]);
    bench.wait(2000);
    asked(&mut bench);
    for silent in [Watch::Evaluations, Watch::CsiNodes] {
        bench.silent = vec![silent];
        bench.wait(25_000);
        let status = if state(&bench) == "Ready" {
            "False"
        } else {
            "True"
        };
        set(&mut bench, status);
        bench.wait(60_000);
        assert_eq!(asked(&mut bench), [""; 0], "{silent:?}");
        bench.silent.clear();
        bench.wait(5000);
        assert_eq!(asked(&mut bench), ["evaluation n"], "{silent:?}");
    }
}

#[test]
fn what_is_refused_is_tried_again_and_holds_nothing_else_up() {
    let mut bench = refusing(&[waiting()], &[node("n")], |request| match request {
        Request::WriteEvaluation {
            write: EvaluationWrite::Create(_),
            ..
        } => Some(RequestError::Failed("forbidden".into())),
        _ => None,
    });
    bench.wait(20_000);
    set(&mut bench, "True");
    bench.wait(5000);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert!((4..40).contains(&bench.refused), "{} times", bench.refused);
    bench.refusal = |_| None;
    bench.wait(60_000);
    assert_eq!(state(&bench), "Ready");
}

#[test]
fn without_the_feature_gate_there_is_none() {
    let mut bench = Bench::new(&[waiting()], &[node("n")]);
    bench.wait(5000);
    set(&mut bench, "True");
    bench.wait(5000);
    assert_eq!(asked(&mut bench), [""; 0]);
    assert!(
        !bench
            .survey()
            .objects
            .iter()
            .any(|(kind, _)| *kind == "evaluations")
    );
}
