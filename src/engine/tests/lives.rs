//! The lifecycle of rules, with their finalizers, and what remains of deleted rules on nodes.

use serde_json::{Value, json};

use super::{Bench, Input, Seen, object};
use crate::RequestError;
use crate::io::Request;
use crate::survey::{NODES_BY_STATE, RULES};
use crate::testing::{Builder, GATE, RuleBuilder, at, node, rule};
use nodegate_core::condition::Watch;

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn finalizers(bench: &Bench) -> Value {
    bench.rule("r")["metadata"]["finalizers"].clone()
}

fn forbidden() -> RequestError {
    RequestError::Failed("forbidden".into())
}

fn writes_a_node(request: &Request) -> bool {
    matches!(request, Request::PatchNode(..))
}

#[test]
fn a_rule_is_counted_when_it_comes_and_when_it_goes() {
    let mut bench = Bench::new(&[], &[]);
    bench.counted();
    bench.sees_rule(&gate().waits_for("Disk"));
    bench.sees_rule(&gate().waits_for("Disk").label("a", "b"));
    assert_eq!(bench.counted(), ["Came r"]);
    assert_eq!(bench.gauge(&RULES, &[]), Some(1));
    bench.shows_gone(Watch::Rules, "r");
    assert_eq!(bench.counted(), ["Went r"]);
    assert_eq!(bench.gauge(&RULES, &[]), Some(0));
}

#[test]
fn a_usable_rule_gets_its_finalizer_before_it_gates_any_node() {
    let broken = || gate().taint("node.kubernetes.io/gate", "NoSchedule");
    for (name, rule, asked) in [
        ("in force", gate(), &["rule r", "node n", "status of r"][..]),
        ("not usable", broken(), &[]),
        ("being deleted", gate().deleting(), &[]),
        ("a dry run", gate().dry_run(), &["status of r"]),
    ] {
        let mut bench = Bench::new(&[rule.without_finalizer()], &[node("n")]);
        bench.wait(3000);
        let mut seen = bench.asked();
        seen.retain(|it| name != "not usable" || it != "status of r");
        assert_eq!(seen, asked, "{name}");
    }
}

#[test]
fn others_finalizers_stay() {
    let mut guarded = gate().without_finalizer();
    guarded.json()["metadata"]["finalizers"] = json!(["example.com/other"]);
    let mut bench = Bench::new(&[guarded], &[node("n")]);
    let ours = finalizers(&bench)[1].clone();
    assert_eq!(finalizers(&bench), json!(["example.com/other", ours]));
    let mut deleted = gate().deleting();
    deleted.json()["metadata"]["finalizers"] = finalizers(&bench);
    bench.sees_rule(&deleted);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(finalizers(&bench), json!(["example.com/other"]));
}

#[test]
fn a_rule_that_the_api_server_never_lets_be_taken_on_holds_up_no_other() {
    let earlier = rule("earlier")
        .waits_for("Never")
        .created(at(-100))
        .without_finalizer();
    let held = node("n")
        .condition("Net", "True")
        .dated_taint(GATE, "NoSchedule")
        .owned_by("r", GATE, "NoSchedule");
    let mut bench = Bench::refusing(&[earlier, gate()], &[held], |request| match request {
        Request::PatchRule(..) => Some(forbidden()),
        _ => None,
    });
    bench.wait(3000);
    assert_eq!(bench.taints("n"), [GATE], "it may be there in a moment");
    bench.wait(30_000);
    assert_eq!(bench.taints("n"), [""; 0]);
    bench.refusal = |_| None;
    bench.wait(60_000);
    assert_eq!(bench.taints("n"), [GATE], "it governs once it is there");
}

#[test]
fn a_deleted_rule_stays_until_its_last_node_is_clean_and_says_what_keeps_it() {
    let mut bench = Bench::new(&[gate()], &[node("n"), node("m")]);
    bench.wait(3000);
    bench.refusal = |request| match request {
        Request::PatchNode(name, _) if **name == *"n" => Some(forbidden()),
        _ => None,
    };
    bench.sees_rule(&gate().deleting());
    bench.wait(5000);
    assert_eq!((bench.taints("n"), bench.taints("m")), (vec![GATE], vec![]));
    assert_ne!(finalizers(&bench), Value::Null);
    let status = bench.status("r");
    assert_eq!(
        json!([
            status["nodegate"]["matchedNodes"],
            status["nodegate"]["heldNodes"],
            status["nodegate"]["failedNodeCount"]
        ]),
        json!([1, 1, 1])
    );
    assert_eq!(
        status["failedNodes"][0]["message"],
        "failed to remove taint: forbidden"
    );
    let states = bench.readings(&NODES_BY_STATE, &["r"]).into_iter();
    let states: Vec<usize> = states.map(|(_, nodes)| nodes).collect();
    assert_eq!(states, [0, 1, 0]);
    bench.refusal = |_| None;
    bench.wait(40_000);
    assert_eq!(finalizers(&bench), Value::Null);
}

#[test]
fn what_rules_adopted_is_taken_off_though_several_went_at_once_without_their_finalizers() {
    let keys = ["readiness.k8s.io/first", "readiness.k8s.io/second"];
    let [first, second] = keys.map(|key| {
        let name = key.rsplit('/').next().unwrap();
        rule(name).waits_for("Net").taint(key, "NoSchedule")
    });
    let tainted = node("n").taint(keys[0], "NoSchedule");
    let tainted = tainted.taint(keys[1], "NoSchedule");
    let mut bench = Bench::new(&[first, second], &[tainted]);
    bench.wait(3000);
    assert_eq!(bench.taints("n"), keys);
    let gone = ["first", "second"].map(|name| {
        let rule = bench.cluster.remove(Watch::Rules, name);
        Input::Seen(Seen::Delete(object(Watch::Rules, &rule)))
    });
    bench.take(gone.into());
    assert_eq!(bench.taints("n"), [""; 0]);
}

#[test]
fn a_rule_that_a_node_ceases_to_match_leaves_it_and_its_failure_stays_until_it_has() {
    let small = || gate().selects("size", "small");
    let mut bench = Bench::new(&[small()], &[node("n").label("size", "small")]);
    bench.wait(3000);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.refusal = |request| writes_a_node(request).then(forbidden);
    bench.change("n", |node| {
        node["metadata"]["labels"]["size"] = json!("large");
    });
    bench.wait(303_000);
    let numbers = |bench: &Bench| {
        let status = bench.status("r");
        json!([
            status["nodegate"]["matchedNodes"],
            status["nodegate"]["failedNodeCount"]
        ])
    };
    assert_eq!(numbers(&bench), json!([0, 1]));
    bench.refusal = |_| None;
    bench.wait(40_000);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(numbers(&bench), json!([0, 0]));
}
