//! What the rules together make of a node.

use jiff::Timestamp;

use super::{NETWORK, gate, gated, gated_by, met, unmet};
use crate::api::{NodeReadinessEvaluationStatus, RuleEvaluation};
use crate::plan::evaluate_node;
use crate::testing::{Builder, NodeBuilder, RuleBuilder, World, at, rule, world};

const OTHER: &str = "readiness.k8s.io/other";

type Status = NodeReadinessEvaluationStatus;

fn evaluated(world: &World, known: Option<&Status>, now: Timestamp) -> Option<Status> {
    evaluate_node(&world.node, &world.plan().outcomes, known, now)
}

/// The state of the node, and of each rule.
fn states(node: &NodeBuilder, rules: &[RuleBuilder]) -> String {
    let world = world(node).with_rules(rules);
    let Some(status) = evaluated(&world, None, at(100)) else {
        return "none".into();
    };
    let rules = status.rules.iter();
    let rules = rules.map(|it| format!("{} {}", it.rule_ref.name, it.state));
    format!("{}: {}", status.state, rules.collect::<Vec<_>>().join(", "))
}

#[test]
fn what_a_rule_makes_of_a_node() {
    let other = || rule("o").waits_for("Other").taint(OTHER, "NoSchedule");
    for (name, node, rules, expected) in [
        (
            "closed",
            gated(unmet()),
            vec![gate("r")],
            "NotReady: r NotReady",
        ),
        ("open", met(), vec![gate("r")], "Ready: r Ready"),
        (
            "to be closed",
            unmet(),
            vec![gate("r")],
            "Pending: r Pending",
        ),
        (
            "to be opened",
            gated(met()),
            vec![gate("r")],
            "Pending: r Pending",
        ),
        (
            "in its grace period",
            unmet(),
            vec![gate("r").spec("gracePeriod: 2m")],
            "Pending: r Pending",
        ),
        (
            "completed",
            unmet().completed("r"),
            vec![gate("r").bootstrap_only()],
            "Ready: r Ready",
        ),
        (
            "held while the rule is suspended",
            gated(unmet()),
            vec![gate("r").suspended()],
            "NotReady: r NotReady",
        ),
        ("a dry run", unmet(), vec![gate("r").dry_run()], "none"),
        (
            "not selected",
            unmet(),
            vec![gate("r").selects("a", "b")],
            "none",
        ),
        (
            "a rule that goes",
            unmet(),
            vec![gate("r").deleting()],
            "none",
        ),
        (
            "one that yields to an older one",
            gated(unmet()),
            vec![gate("a"), gate("b").created(at(1))],
            "NotReady: a NotReady",
        ),
        (
            "the worst counts, and comes first",
            gated(unmet()).condition("Other", "True"),
            vec![other(), gate("r")],
            "NotReady: r NotReady, o Ready",
        ),
        (
            "one that waits for another",
            gated(unmet()).taint(OTHER, "NoSchedule"),
            vec![gate("r"), other().spec("after: [r]")],
            "NotReady: r NotReady, o Pending",
        ),
    ] {
        assert_eq!(states(&node, &rules), expected, "{name}");
    }
}

#[test]
fn the_summary_says_how_many_and_which() {
    let summary = |node: &NodeBuilder, count: usize| {
        let rules = (0..count).map(|index| {
            let rule = rule(&format!("r-{index}")).waits_for(&format!("Is{index}"));
            rule.taint(&format!("readiness.k8s.io/{index}"), "NoSchedule")
        });
        let world = world(node).with_rules(&rules.collect::<Vec<_>>());
        evaluated(&world, None, at(100)).unwrap().summary
    };
    let closed = |count: usize| {
        (0..count).fold(unmet(), |node, index| {
            node.taint(&format!("readiness.k8s.io/{index}"), "NoSchedule")
        })
    };
    let open = unmet().condition("Is0", "True").condition("Is1", "True");
    for (node, count, expected) in [
        (closed(1), 1, "1 rule keeps this node closed: r-0"),
        (closed(2), 2, "2 rules keep this node closed: r-0, r-1"),
        (closed(1), 3, "1 of 3 rules keeps this node closed: r-0"),
        (
            closed(9),
            9,
            "9 rules keep this node closed: r-0, r-1, r-2, r-3, r-4 (+4 more)",
        ),
        (open.clone(), 1, "1 rule leaves this node open"),
        (open.clone(), 2, "2 rules leave this node open"),
        (open, 3, "1 of 3 rules is pending: r-2"),
    ] {
        assert_eq!(summary(&node, count), expected);
    }
}

#[test]
fn times_are_those_of_the_last_closing_and_outlast_the_process() {
    let seconds = |it: &RuleEvaluation| {
        let second = |at: &Timestamp| at.as_second() - self::at(0).as_second();
        let added = it.taint_added_at.as_ref().map(|it| second(&it.0));
        let removed = it.taint_removed_at.as_ref().map(|it| second(&it.0));
        (second(&it.first_evaluated_at.0), added, removed)
    };
    let mut known: Option<Status> = None;
    for (name, node, now, expected) in [
        ("never closed", unmet(), 10, (10, None, None)),
        (
            "closed by us",
            gated_by(unmet(), "r"),
            20,
            (10, Some(0), None),
        ),
        (
            "still closed",
            gated_by(unmet(), "r"),
            30,
            (10, Some(0), None),
        ),
        ("opened", met(), 40, (10, Some(0), Some(40))),
        ("still open", met(), 50, (10, Some(0), Some(40))),
        (
            "closed by somebody",
            gated(unmet()),
            60,
            (10, Some(60), None),
        ),
        (
            "still, by somebody",
            gated(unmet()),
            70,
            (10, Some(60), None),
        ),
        ("opened by somebody", unmet(), 80, (10, Some(60), Some(80))),
    ] {
        let world = world(&node).with_rules(&[gate("r")]);
        // Another process knows the object alone.
        let read = known.map(|known| serde_json::to_string(&known).unwrap());
        known = read.map(|text| serde_json::from_str(&text).unwrap());
        known = evaluated(&world, known.as_ref(), at(now));
        let rules = &known.as_ref().unwrap().rules;
        assert_eq!(seconds(&rules[0]), expected, "{name}");
    }
    // A node that registered with the taint had it from the start.
    let world = world(&gated(unmet())).with_rules(&[gate("r")]);
    let status = evaluated(&world, None, at(5)).unwrap();
    assert_eq!(seconds(&status.rules[0]), (5, Some(0), None));
    // A new rule of the same name is another rule.
    let mut anew = gate("r");
    anew.json()["metadata"]["uid"] = "another".into();
    let world = crate::testing::world(&met()).with_rules(&[anew]);
    let status = evaluated(&world, known.as_ref(), at(90)).unwrap();
    assert_eq!(seconds(&status.rules[0]), (90, None, None));
}

#[test]
fn of_more_than_a_hundred_rules_those_that_keep_the_node_closed_are_listed() {
    let rules = (0..120).map(|index| {
        let taint = format!("readiness.k8s.io/{index}");
        let condition = if index < 110 { NETWORK } else { "Other" };
        let rule = rule(&format!("r-{index}")).waits_for(condition);
        rule.taint(&taint, "NoSchedule")
    });
    let closed = (110..120).fold(met(), |node, index| {
        node.taint(&format!("readiness.k8s.io/{index}"), "NoSchedule")
    });
    let world = world(&closed).with_rules(&rules.collect::<Vec<_>>());
    let status = evaluated(&world, None, at(100)).unwrap();
    assert_eq!(status.rules.len(), 100);
    let closed = status
        .rules
        .iter()
        .take_while(|it| it.taint_added_at.is_some());
    assert_eq!(closed.count(), 10);
    assert!(
        status.summary.starts_with("10 of 120 rules"),
        "{}",
        status.summary
    );
}
