//! A rule that comes into force, and would gate many nodes in use.

use serde_json::json;

use super::Bench;
use crate::survey::HELD_BACK_NODES;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};

fn limited() -> RuleBuilder {
    rule("r")
        .waits_for("Net")
        .nodegate("disruption: {maxFirstGated: 10%}")
}

/// So many of ten nodes lack the condition.
fn fleet(unmet: usize) -> Vec<NodeBuilder> {
    let nodes = (0..10).map(|number| {
        let node = node(&format!("n{number}"));
        if number < unmet {
            node
        } else {
            node.condition("Net", "True")
        }
    });
    nodes.collect()
}

fn gated(bench: &Bench) -> usize {
    let names = (0..10).map(|number| format!("n{number}"));
    names.filter(|name| bench.taints(name) == [GATE]).count()
}

/// The message of the rule's condition, if it has it with status True.
fn says(bench: &Bench, kind: &str) -> Option<String> {
    let conditions = bench.status("r")["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|it| it["type"] == kind && it["status"] == "True")?;
    Some(found["message"].as_str().unwrap().to_owned())
}

#[test]
fn past_its_limit_and_three_nodes_it_gates_none_that_is_in_use() {
    for (unmet, share, expected) in [
        (3, "10%", 3),
        (4, "10%", 0),
        (4, "40%", 4),
        (5, "40%", 0),
        (10, "9", 0),
        (10, "10", 10),
    ] {
        let limit = format!("disruption: {{maxFirstGated: {share}}}");
        let rule = rule("r").waits_for("Net").nodegate(&limit);
        for rule in [rule.clone(), rule.bootstrap_only()] {
            let mut bench = Bench::new(&[rule], &fleet(unmet));
            bench.wait(5000);
            assert_eq!(gated(&bench), expected, "{unmet} of 10, {share}");
            let allowed = &bench.status("r")["nodegate"]["allowedGeneration"];
            assert_eq!(allowed.is_null(), expected == 0, "{unmet} of 10, {share}");
        }
    }
}

#[test]
fn a_rule_that_is_held_back_says_so_gates_who_joins_and_goes_on_once_few_are_left() {
    let mut bench = Bench::new(&[limited()], &fleet(8));
    bench.wait(3000);
    let why = "would gate 8 of 10 nodes in use at once (8 have never reported Net); at most 10% are allowed: fix the rule, or allow \
               them with spec.nodegate.disruption.maxFirstGated: 100% or the flag --max-first-gated";
    assert_eq!(says(&bench, "HeldBack").as_deref(), Some(why));
    let accepted = format!("the rule is held back: it {why}");
    assert_eq!(says(&bench, "Accepted"), Some(accepted));
    assert_eq!(bench.told(), [format!("HeldBack r: {why}")]);
    let mut known = limited();
    known.json()["status"] = bench.status("r").clone();
    let mut next = Bench::new(&[known], &fleet(8));
    next.wait(3000);
    assert_eq!(next.told(), [""; 0], "it has been told");
    assert_eq!(bench.gauge(&HELD_BACK_NODES, &["r"]), Some(8));

    bench.sees(&node("joins").created(at(103)));
    bench.wait(2000);
    assert_eq!(bench.taints("joins"), [GATE]);
    assert_eq!(gated(&bench), 0);

    for number in 0..5 {
        bench.change(&format!("n{number}"), |node| {
            node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
        });
    }
    bench.wait(3000);
    assert_eq!(gated(&bench), 3);
    assert_eq!(says(&bench, "HeldBack"), None);
    assert_eq!(bench.gauge(&HELD_BACK_NODES, &["r"]), Some(0));

    // From now on nothing limits it.
    for name in ["n0", "n1", "n2", "n3", "n4", "n8", "n9"] {
        bench.change(name, |node| {
            node["status"]["conditions"] = json!([{ "type": "Net", "status": "False" }]);
        });
    }
    bench.wait(1000);
    assert_eq!(gated(&bench), 10);
}

#[test]
fn an_edit_of_that_one_field_allows_it() {
    let mut bench = Bench::new(&[limited()], &fleet(10));
    bench.wait(3000);
    assert_eq!(gated(&bench), 0);
    let mut yes = rule("r")
        .waits_for("Net")
        .nodegate("disruption: {maxFirstGated: 100%}");
    yes.json()["metadata"]["generation"] = json!(2);
    bench.sees_rule(&yes);
    bench.wait(3000);
    assert_eq!(gated(&bench), 10);
    assert_eq!(bench.status("r")["nodegate"]["allowedGeneration"], 2);
}

#[test]
fn what_was_decided_holds_after_a_change_of_leader_and_not_after_an_edit() {
    for (allowed, generation, expected) in [(1, 1, 10), (1, 2, 0)] {
        let mut rule = limited();
        rule.json()["metadata"]["generation"] = json!(generation);
        let counts =
            json!({"matchedNodes": 10, "heldNodes": 0, "releasedNodes": 10, "failedNodeCount": 0});
        rule.json()["status"] = json!({"nodegate": counts});
        rule.json()["status"]["nodegate"]["allowedGeneration"] = json!(allowed);
        let mut bench = Bench::new(&[rule], &fleet(10));
        bench.wait(3000);
        assert_eq!(gated(&bench), expected, "{allowed}, {generation}");
    }
}

#[test]
fn the_end_of_a_dry_run_and_of_a_suspension_are_first_blows() {
    for (what, before) in [
        ("dry run", limited().dry_run()),
        ("suspended", limited().nodegate("suspend: true")),
    ] {
        let mut bench = Bench::new(&[before], &fleet(10));
        bench.wait(3000);
        let mut goes_on = limited();
        goes_on.json()["metadata"]["generation"] = json!(2);
        bench.sees_rule(&goes_on);
        bench.wait(3000);
        assert_eq!(gated(&bench), 0, "{what}");
        assert!(says(&bench, "HeldBack").is_some(), "{what}");
    }
}

#[test]
fn while_evidence_is_stale_a_rule_that_is_held_back_is_not_looked_at_again() {
    let mut bench = Bench::new(&[limited()], &fleet(8));
    bench.wait(3000);
    bench.silent = bench.watches.clone();
    bench.wait(35_000);
    for number in 0..5 {
        bench.change(&format!("n{number}"), |node| {
            node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
        });
    }
    bench.wait(2000);
    assert!(says(&bench, "HeldBack").is_some());
    let (now, wake) = (bench.now.monotonic, bench.engine.next_wake());
    assert!(wake.is_none_or(|at| at > now), "{wake:?} at {now:?}");
}
