//! The sources of gauges and histograms: which conditions hold nodes, and for how long.

use serde_json::json;

use super::Bench;
use crate::count::{Count, Hold, RuleCount, Stage};
use crate::survey::{BLOCKED_NODES, RULE_MATCHED_NODES};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};

fn gate() -> RuleBuilder {
    rule("r").waits_for("Net")
}

/// The counted holds.
fn holds(bench: &mut Bench) -> Vec<Option<Hold>> {
    let counted = std::mem::take(&mut bench.counted).into_iter();
    let hold = |count| match count {
        Count::Rule(_, RuleCount::BootstrapCompleted { hold, .. }) => Some(hold),
        _ => None,
    };
    counted.filter_map(hold).collect()
}

#[test]
fn a_hold_counts_from_when_the_taint_was_put_on_or_the_node_came_with_it() {
    let hold = |since, is_adopted| {
        Some(Hold {
            since: Some(at(since)),
            is_adopted,
        })
    };
    let born = |node: NodeBuilder| {
        let owner =
            format!(r#"{{"rule-name":"r","taint-key":"{GATE}","taint-effect":"NoSchedule"}}"#);
        node.taint(GATE, "NoSchedule")
            .annotation("nodegate.dev/taint-added-by-r-uid", &owner)
    };
    for (name, node, expected) in [
        ("gated by the controller", node("n"), hold(100, false)),
        ("gated at birth", born(node("n")), hold(0, false)),
        (
            "registered with the taint",
            node("n").taint(GATE, "NoSchedule"),
            hold(0, true),
        ),
        ("never held", node("n").condition("Net", "True"), None),
    ] {
        let mut bench = Bench::new(&[gate().bootstrap_only()], &[node]);
        bench.wait(5000);
        bench.change("n", |node| {
            node["status"]["conditions"] = json!([{ "type": "Net", "status": "True" }]);
        });
        bench.wait(5000);
        assert_eq!(holds(&mut bench), [expected], "{name}");
        let told = bench.told();
        let is_told = told.iter().any(|it| it.starts_with("BootstrapCompleted"));
        assert_eq!(is_told, expected.is_some(), "{name}: {told:?}");
    }
}

#[test]
fn a_node_is_blocked_by_each_condition_that_is_not_met_and_by_none_where_one_would_do() {
    let nodes = [
        node("neither"),
        node("net").condition("Net", "True"),
        node("disk").condition("Disk", "True"),
        node("both")
            .condition("Net", "True")
            .condition("Disk", "True"),
    ];
    for (policy, expected) in [("allOf", [2, 2]), ("anyOf", [1, 1])] {
        let rule = gate()
            .waits_for("Disk")
            .spec(&format!("conditionPolicy: {policy}"));
        let mut bench = Bench::new(std::slice::from_ref(&rule), &nodes);
        bench.wait(1000);
        let blocked = |bench: &Bench| bench.readings(&BLOCKED_NODES, &["r"]);
        let counts: Vec<usize> = blocked(&bench).iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, expected, "{policy}");
        let matched = bench.gauge(&RULE_MATCHED_NODES, &["r"]);
        assert_eq!(matched, Some(4), "{policy}");
        bench.sees_rule(&rule.dry_run());
        assert_eq!(blocked(&bench), [], "a dry run");
    }
}

#[test]
fn how_long_each_condition_took_is_counted_when_a_node_is_first_released() {
    let report = |bench: &mut Bench, conditions: &[(&str, &str)]| {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| json!({ "type": kind, "status": status }))
            .collect();
        bench.change("n", |node| node["status"]["conditions"] = json!(conditions));
    };
    let stages = |bench: &mut Bench| -> Vec<Vec<(String, i64)>> {
        let counted = std::mem::take(&mut bench.counted).into_iter();
        let stages = counted.filter_map(|count| match count {
            Count::Rule(_, RuleCount::StartedUp(stages)) => Some(stages),
            _ => None,
        });
        let told = |stage: &Stage| (stage.condition.to_string(), stage.took.unwrap().as_secs());
        stages
            .map(|stages| stages.iter().map(told).collect())
            .collect()
    };
    for (mode, rule) in [
        ("bootstrap-only", gate().waits_for("Disk").bootstrap_only()),
        ("continuous", gate().waits_for("Disk")),
    ] {
        let mut bench = Bench::new(std::slice::from_ref(&rule), &[]);
        bench.sees(&node("n").created(at(100)));
        bench.wait(20_000);
        report(&mut bench, &[("Net", "True")]);
        bench.wait(30_000);
        report(&mut bench, &[("Net", "False")]);
        bench.wait(10_000);
        report(&mut bench, &[("Net", "True"), ("Disk", "True")]);
        bench.wait(1000);
        let expected = vec![vec![("Net".to_owned(), 20), ("Disk".to_owned(), 60)]];
        assert_eq!(
            stages(&mut bench),
            expected,
            "{mode}: when each was met first"
        );
        report(&mut bench, &[("Net", "False")]);
        bench.wait(5000);
        report(&mut bench, &[("Net", "True"), ("Disk", "True")]);
        bench.wait(5000);
        assert_eq!(stages(&mut bench), Vec::<Vec<_>>::new(), "{mode}: once");
        bench.sees_rule(&rule.deleting());
        bench.wait(5000);
        let annotations = bench.node("n")["metadata"]["annotations"].clone();
        assert_eq!(annotations, json!({}), "{mode}: gone with the rule");
    }
    // For a node that was held before this process started, the times are unknown.
    let held = node("n")
        .created(at(0))
        .dated_taint(GATE, "NoSchedule")
        .owned_by("r", GATE, "NoSchedule")
        .condition("Net", "True");
    let mut bench = Bench::new(&[gate().waits_for("Disk").bootstrap_only()], &[held]);
    bench.wait(5000);
    report(&mut bench, &[("Net", "True"), ("Disk", "True")]);
    bench.wait(1000);
    assert_eq!(stages(&mut bench), [[("Disk".to_owned(), 105)]]);
}

#[test]
fn a_node_that_was_released_before_does_not_start_again() {
    type Change = fn(&mut Bench);
    let report = |bench: &mut Bench, status: &str| {
        let condition = json!([{ "type": "Net", "status": status }]);
        bench.change("n", |node| node["status"]["conditions"] = condition);
        bench.wait(10_000);
    };
    let starts = |bench: &mut Bench| {
        let counted = std::mem::take(&mut bench.counted).into_iter();
        counted
            .filter(|it| matches!(it, Count::Rule(_, RuleCount::StartedUp(_))))
            .count()
    };
    let young = |status| node("n").created(at(100)).condition("Net", status);
    let none = |_: &mut Bench| {};
    let by_hand: Change = |bench| {
        bench.change("n", |node| node["spec"]["taints"] = json!([]));
        bench.wait(10_000);
    };
    for (what, rule_first, node, meanwhile) in [
        ("ready when it joined", true, young("True"), none as Change),
        ("there before the rule", false, young("True"), none),
        ("unmet before the rule", false, young("False"), none),
        ("released by hand", true, young("False"), by_hand),
    ] {
        let mut bench = if rule_first {
            Bench::new(&[gate()], &[])
        } else {
            Bench::new(&[], std::slice::from_ref(&node))
        };
        if rule_first {
            bench.sees(&node);
        } else {
            bench.wait(10_000);
            bench.sees_rule(&gate().created(at(110)));
        }
        bench.wait(10_000);
        meanwhile(&mut bench);
        report(&mut bench, "False");
        assert_eq!(bench.taints("n"), [GATE], "{what}");
        report(&mut bench, "True");
        assert_eq!(bench.taints("n"), [""; 0], "{what}");
        assert_eq!(starts(&mut bench), 0, "{what}");
    }
}
