//! A rule that comes into force, and would gate many nodes in use.

use serde_json::json;

use super::Bench;
use crate::io::{Input, Request};
use crate::survey::HELD_BACK_NODES;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};
use nodegate_core::condition::Watch;

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
            let permission = &bench.status("r")["nodegate"]["permission"];
            let is_refused = permission.is_null();
            assert_eq!(is_refused, expected == 0, "{unmet} of 10, {share}");
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
    let permission = &bench.status("r")["nodegate"]["permission"];
    assert_eq!(*permission, json!({"generation": 2, "nodes": 0}));
}

#[test]
fn a_permission_outlives_its_leader_for_the_nodes_that_it_covers_and_not_an_edit_or_another_class()
{
    for (nodes, generation, classes, expected) in [
        (10, 1, None, 10),
        (9, 1, None, 0),
        (10, 2, None, 0),
        (10, 1, Some("0123456789abcdef"), 0),
    ] {
        let mut rule = limited();
        rule.json()["metadata"]["generation"] = json!(generation);
        let mut permission = json!({"generation": 1, "nodes": nodes});
        if let Some(classes) = classes {
            permission["classes"] = json!(classes);
        }
        rule.json()["status"] = json!({"nodegate": {"permission": permission}});
        let mut bench = Bench::new(&[rule], &fleet(10));
        bench.wait(3000);
        assert_eq!(gated(&bench), expected, "{permission}, {generation}");
    }
}

#[test]
fn a_rule_that_waits_for_a_class_is_counted_anew_once_that_class_is_another() {
    let of_class = rule("r")
        .waits_for("node.gardener.cloud/CriticalComponentsReady")
        .nodegate("disruption: {maxFirstGated: 10%}");
    let mut bench = Bench::new(&[of_class], &[]);
    bench.wait(3000);
    let permission = &bench.status("r")["nodegate"]["permission"];
    assert!(permission["classes"].is_string(), "{permission}");
}

/// An earlier rule with the same taint, which every node meets.
fn earlier() -> RuleBuilder {
    rule("earlier").created(at(-9)).waits_for("Old")
}

/// So many of ten nodes lack the condition of the rule `r`, and all have what the earlier one asks for.
fn released(unmet: usize) -> Vec<NodeBuilder> {
    let nodes = fleet(unmet).into_iter();
    nodes.map(|node| node.condition("Old", "True")).collect()
}

#[test]
fn a_successor_is_counted_once_the_earlier_rule_goes_in_whatever_way() {
    let turned = |mut rule: RuleBuilder| {
        rule.json()["metadata"]["generation"] = json!(2);
        rule
    };
    for (unmet, expected) in [(3, 3), (8, 0)] {
        for (how, after) in [
            ("deleted", earlier().deleting()),
            ("a dry run", turned(earlier().dry_run())),
            ("on other nodes", turned(earlier().selects("pool", "b"))),
        ] {
            for successor in [limited(), limited().bootstrap_only()] {
                let successor = successor.created(at(1));
                let mut bench = Bench::new(&[earlier(), successor], &released(unmet));
                bench.wait(3000);
                let permission = &bench.status("r")["nodegate"]["permission"];
                assert_eq!(permission["nodes"], 0, "{unmet}, {how}");
                bench.sees_rule(&after);
                bench.wait(3000);
                assert_eq!(gated(&bench), expected, "{unmet}, {how}");
                assert_eq!(says(&bench, "HeldBack").is_some(), expected == 0, "{how}");
            }
        }
    }
}

#[test]
fn nodes_that_get_a_rules_label_are_counted_together_for_a_minute_whichever_saw_them_join() {
    for rule in [limited(), limited().bootstrap_only()] {
        let rule = rule.selects("pool", "a");
        let mut bench = Bench::new(&[rule], &[]);
        for node in fleet(10) {
            bench.sees(&node.created(at(100)));
        }
        bench.wait(30_000);
        let label = |bench: &mut Bench, number: usize| {
            bench.change(&format!("n{number}"), |node| {
                node["metadata"]["labels"]["pool"] = json!("a");
            });
        };
        for number in 0..2 {
            label(&mut bench, number);
            bench.wait(5000);
        }
        assert_eq!(gated(&bench), 2);
        for number in 2..8 {
            label(&mut bench, number);
            bench.wait(3000);
        }
        assert_eq!(gated(&bench), 3);
        assert!(says(&bench, "HeldBack").is_some());
        // Too many wait for it ever to go on by itself, until some meet the condition.
        bench.wait(120_000);
        assert_eq!(gated(&bench), 3);
        for number in 3..6 {
            bench.change(&format!("n{number}"), |node| {
                node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
            });
        }
        bench.wait(3000);
        assert_eq!((gated(&bench), says(&bench, "HeldBack")), (5, None));
        label(&mut bench, 8);
        label(&mut bench, 9);
        bench.wait(30_000);
        assert_eq!(gated(&bench), 6, "in this minute");
        bench.wait(60_000);
        assert_eq!(gated(&bench), 7, "in the next one");
    }
}

#[test]
fn a_permission_ends_with_a_suspension_and_the_brake() {
    for is_brake in [false, true] {
        let mut bench = Bench::new(&[limited()], &fleet(0));
        bench.wait(3000);
        let suspends = |bench: &mut Bench, generation: i64| {
            let is_on = generation == 2;
            if is_brake {
                return bench.take(vec![Input::SuspendAll(is_on)]);
            }
            let mut rule = if is_on {
                limited().nodegate("suspend: true")
            } else {
                limited()
            };
            rule.json()["metadata"]["generation"] = json!(generation);
            bench.sees_rule(&rule);
        };
        suspends(&mut bench, 2);
        bench.wait(3000);
        for number in 0..5 {
            bench.change(&format!("n{number}"), |node| {
                node["status"]["conditions"] = json!([{ "type": "Net", "status": "False" }]);
            });
        }
        bench.wait(3000);
        suspends(&mut bench, 3);
        bench.wait(3000);
        assert_eq!(gated(&bench), 0, "{is_brake}");
        assert!(says(&bench, "HeldBack").is_some(), "{is_brake}");
    }
}

#[test]
fn a_node_that_appears_without_having_been_seen_to_join_is_gated_within_the_next_counts() {
    for rule in [limited(), limited().bootstrap_only()] {
        let mut bench = Bench::new(&[rule], &fleet(0));
        bench.wait(60_000);
        bench.silent = bench.watches.clone();
        bench.wait(60_000);
        bench
            .cluster
            .put(Watch::Nodes, node("restored").json().clone());
        bench.silent.clear();
        bench.take(vec![Input::Restored]);
        bench.wait(3000);
        assert_eq!(bench.taints("restored"), [GATE]);
    }
}

#[test]
fn a_count_that_stale_evidence_or_a_write_holds_up_is_made_afterwards() {
    let mut bench = Bench::new(&[earlier(), limited().created(at(1))], &released(3));
    bench.wait(3000);
    bench.held_up = |request| matches!(request, Request::PatchNode(name, _) if **name == *"n9");
    bench.change("n9", |node| {
        node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
    });
    assert_eq!(bench.pending.len(), 1, "the earlier rule gates it");
    bench.sees_rule(&earlier().deleting());
    bench.wait(5000);
    assert_eq!(gated(&bench), 0);
    bench.silent = bench.watches.clone();
    bench.held_up = |_| false;
    bench.wait(40_000);
    bench.answers();
    bench.wait(5000);
    assert_eq!(gated(&bench), 1, "the one that the earlier rule gated");
    bench.silent.clear();
    bench.wait(5000);
    assert_eq!(gated(&bench), 3);
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
