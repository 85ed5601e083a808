//! Events and metrics of nodes, and what follows a failed write.

use serde_json::json;

use super::Bench;
use crate::survey::TAINTS_CONTENDED;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

fn ready(name: &str) -> NodeBuilder {
    node(name).condition("Net", "True")
}

/// Sets the network condition of a node.
fn network(bench: &mut Bench, name: &str, status: &str) {
    bench.change(name, |node| {
        node["status"]["conditions"] = json!([{ "type": "Net", "status": status }]);
    });
}

#[test]
fn a_change_is_told_and_counted_once_when_it_has_been_made() {
    let mut bench = Bench::new(&[gate().bootstrap_only()], &[node("n")]);
    assert_eq!(bench.taints("n"), [GATE]);
    bench.wait(2000);
    assert_eq!(
        bench.told(),
        ["TaintAdded n: Taint 'readiness.k8s.io/gate:NoSchedule' added by rule 'r'"]
    );
    assert_eq!(bench.counted(), ["Came r", "TurnedUnmet r Net", "Added r"]);
    network(&mut bench, "n", "True");
    assert_eq!(bench.taints("n"), [""; 0]);
    bench.wait(10_000);
    assert_eq!(
        bench.told(),
        [
            "TaintRemoved n: Taint 'readiness.k8s.io/gate:NoSchedule' removed by rule 'r'",
            "BootstrapCompleted n: Bootstrap of this node completed under rule 'r' after 102s; Net came last",
        ]
    );
    assert_eq!(
        bench.counted(),
        ["Removed r", "BootstrapCompleted r since Some(0)"]
    );
    bench.wait(10_000);
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn a_taint_that_somebody_else_keeps_taking_off_is_put_back_more_and_more_slowly() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    let take_off = |bench: &mut Bench| {
        bench.wait(100);
        bench.change("n", |node| node["spec"]["taints"] = json!([]));
    };
    let mut at_once = 0;
    while bench.taints("n") == [GATE] {
        take_off(&mut bench);
        at_once += 1;
    }
    assert_eq!(at_once, 5);
    assert_eq!(bench.gauge(&TAINTS_CONTENDED, &["r"]), Some(1));
    bench.wait(2000);
    assert_eq!(bench.taints("n"), [""; 0]);
    let ours = bench.status("r")["nodegate"].clone();
    let pause = &ours["pauses"][0];
    let said = [&pause["nodeName"], &pause["reason"], &pause["message"]];
    let expected = [
        "n",
        "Contended",
        "somebody else keeps removing taint 'readiness.k8s.io/gate:NoSchedule', which the rule adds: let only one of the two \
         manage it (the API server's audit log names the other)",
    ];
    assert_eq!(said, expected, "{ours}");
    assert!(
        pause["until"].is_string() && ours["heldNodes"] == 0,
        "{ours}"
    );
    bench.wait(4000);
    assert_eq!(bench.taints("n"), [GATE]);
    let told = bench.told();
    let contended: Vec<_> = told
        .iter()
        .filter(|told| told.starts_with("TaintContended"))
        .collect();
    let [contended] = contended[..] else {
        panic!("{told:?}");
    };
    assert!(contended.contains("and longer each time, after 4 times in 1 s: somebody else"));
    let counted = bench.counted();
    let is_undone = |count: &&String| *count == "Undone r";
    assert_eq!(counted.iter().filter(is_undone).count(), 5);
    bench.wait(70_000);
    let contended = bench.gauge(&TAINTS_CONTENDED, &["r"]);
    assert_eq!(contended, Some(0), "it has stood since");
    let ours = &bench.status("r")["nodegate"];
    assert!(ours["pauses"].is_null() && ours["heldNodes"] == 1, "{ours}");
}

#[test]
fn a_rule_that_wants_what_somebody_else_did_waits_for_nothing() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    while bench.taints("n") == [GATE] {
        bench.wait(100);
        bench.change("n", |node| node["spec"]["taints"] = json!([]));
    }
    bench.wait(2000);
    network(&mut bench, "n", "True");
    bench.wait(2000);
    let ours = &bench.status("r")["nodegate"];
    assert!(ours["pauses"].is_null(), "{ours}");
}

#[test]
fn a_node_that_replaces_another_of_its_name_does_not_wait_for_the_pauses_of_that() {
    let mut bench = Bench::new(&[gate()], &[node("n")]);
    while bench.taints("n") == [GATE] {
        bench.wait(100);
        bench.change("n", |node| node["spec"]["taints"] = json!([]));
    }
    bench.sees(&node("n").uid("another"));
    assert_eq!(bench.taints("n"), [GATE]);
}

#[test]
fn a_taint_that_a_rule_did_not_add_is_told_of_once_when_the_rule_takes_it_on() {
    const TOLD: &str =
        "TaintAdopted n: Taint 'readiness.k8s.io/gate:NoSchedule' is now managed by rule 'r'";
    let tainted = node("n").taint(GATE, "NoSchedule");
    for (name, rule, told) in [
        ("a new rule", gate().without_finalizer(), &[TOLD][..]),
        ("told by an earlier process", gate(), &[]),
        ("a dry run", gate().without_finalizer().dry_run(), &[]),
    ] {
        let mut bench = Bench::new(&[rule], &[tainted.clone(), ready("m")]);
        bench.wait(3000);
        assert_eq!(bench.told(), told, "{name}");
    }
}

#[test]
fn a_taint_that_a_node_is_created_with_in_a_rules_name_is_told_of_as_added_and_not_as_adopted() {
    let owner = format!(
        r#"{{"rule-name":"r","taint-key":"{GATE}","taint-effect":"NoSchedule","joining":true}}"#
    );
    let born = node("n")
        .created(at(104))
        .taint(GATE, "NoSchedule")
        .annotation("nodegate.dev/taint-added-by-r-uid", &owner);
    let mut bench = Bench::new(&[gate()], &[ready("m")]);
    bench.wait(4000);
    bench.asked();
    bench.sees(&born);
    bench.wait(3000);
    assert_eq!(
        bench.told(),
        [
            "TaintAdded n: Taint 'readiness.k8s.io/gate:NoSchedule' added by rule 'r' as the node was created"
        ]
    );
    let asked = bench.asked();
    assert!(!asked.contains(&"node n".to_owned()), "{asked:?}");
    network(&mut bench, "n", "True");
    bench.wait(3000);
    assert_eq!(bench.taints("n"), [""; 0]);
    assert_eq!(
        bench.told(),
        ["TaintRemoved n: Taint 'readiness.k8s.io/gate:NoSchedule' removed by rule 'r'"]
    );
}

#[test]
fn what_a_guard_holds_back_is_told_when_it_begins() {
    let careful = gate().nodegate("disruption: {}");
    let nodes = ["a", "b", "c"].map(ready);
    let mut bench = Bench::new(&[careful], &nodes);
    bench.wait(11_000);
    bench.told();
    for name in ["a", "b"] {
        network(&mut bench, name, "False");
    }
    let held = |bench: &Bench| {
        let is_held = |name: &&&str| !bench.taints(name).is_empty();
        ["a", "b", "c"].iter().filter(is_held).count()
    };
    assert_eq!(held(&bench), 1);
    bench.wait(3000);
    assert_eq!(
        bench.told(),
        [
            "TaintAdded a: Taint 'readiness.k8s.io/gate:NoSchedule' added by rule 'r'",
            "DisruptionLimited r: 1 node held back by the disruption limit: (no zone) Normal (2 of 3 nodes unmet), at most 0.1 \
             nodes a second are gated there"
        ]
    );
    bench.wait(6900);
    assert_eq!(held(&bench), 1);
    bench.wait(200);
    assert_eq!(held(&bench), 2, "ten seconds after the first");
    bench.wait(3000);
    assert_eq!(bench.guarded(), (1, 2, 0));
}

#[test]
fn a_guard_neither_counts_nor_gates_a_node_that_is_in_maintenance() {
    let careful = gate().nodegate("disruption: {}");
    let mut bench = Bench::new(&[careful], &["a", "b"].map(ready));
    bench.wait(1000);
    bench.change("a", |node| {
        node["status"]["conditions"] = json!([
            { "type": "Net", "status": "False" },
            { "type": "DrainInProgress", "status": "True" },
        ]);
    });
    bench.wait(60_000);
    assert!(bench.taints("a").is_empty());
    assert_eq!(bench.guarded(), (1, 0, 0));
    network(&mut bench, "a", "False");
    assert!(!bench.taints("a").is_empty());
}

#[test]
fn a_repair_that_is_held_back_is_told_again_after_a_while() {
    let release = |name| {
        rule(name)
            .waits_for("Net")
            .taint(&format!("readiness.k8s.io/{name}"), "NoSchedule")
            .bootstrap_only()
            .nodegate("repair: {readinessTTL: 1m, action: Release, maxUnhealthy: 0}")
    };
    let mut bench = Bench::new(&[release("r"), release("s")], &[node("n")]);
    bench.wait(59_000);
    bench.told();
    bench.counted();
    bench.wait(100_000);
    assert_eq!(
        bench.told(),
        ["r", "s"].map(|rule| format!(
            "NodeRepairBlocked n: Rule '{rule}' does not repair this node: 1 of 1 nodes of rule '{rule}' are past their \
             readiness TTL or not Ready any more, and maxUnhealthy 0 allows 0"
        ))
    );
    bench.change("n", |node| {
        node["metadata"]["labels"]["a"] = json!("b");
    });
    assert_eq!(
        bench.told(),
        [""; 0],
        "not because the node is evaluated again"
    );
    let blocked = ["r", "s"].map(|rule| format!("RepairBlocked {rule}"));
    assert_eq!(bench.counted(), blocked);
    bench.wait(200_000);
    assert_eq!(bench.told(), [""; 0]);
    bench.wait(100_000);
    assert_eq!(bench.counted(), blocked);
}

#[test]
fn a_condition_that_turns_unmet_is_counted_each_time() {
    let mut bench = Bench::new(&[gate().dry_run()], &[ready("n")]);
    bench.counted();
    for _ in 0..2 {
        network(&mut bench, "n", "False");
        network(&mut bench, "n", "False");
        assert_eq!(bench.counted(), ["TurnedUnmet r Net"]);
        network(&mut bench, "n", "True");
        assert_eq!(bench.counted(), [""; 0]);
    }
}
