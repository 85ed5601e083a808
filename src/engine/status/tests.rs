//! Statuses of rules, in tables of named cases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, node, rule, world};
use nodegate_core::finding::{Backing, Check, Finding};
use nodegate_core::plan::NodePlan;
use nodegate_core::rule::Rule;

const KEY: &str = "readiness.k8s.io/gate";

static NOTHING_WRONG: Backing = Backing {
    findings: Vec::new(),
    notes: Vec::new(),
};

/// A node that the rules in these tests select.
fn member(name: &str) -> NodeBuilder {
    node(name).label("pool", "a")
}

fn gate() -> RuleBuilder {
    rule("gate")
        .selects("pool", "a")
        .taint(KEY, "NoSchedule")
        .waits_for("Net")
}

/// The records of a rule, by node.
type Records = BTreeMap<Arc<str>, Vec<Record>>;

fn records(rule: &RuleBuilder, nodes: &[NodeBuilder]) -> (Records, Arc<Rule>) {
    let mut all = Records::new();
    for node in nodes {
        let world = world(node).rule(rule);
        let records = all.entry(world.node.name.clone()).or_default();
        for outcome in world.plan().outcomes {
            Record::of(records, &outcome.rule.uid).see(&outcome, at(0));
        }
    }
    (all, world(&nodes[0]).rule(rule).rules()[0].clone())
}

fn record<'a>(all: &'a mut Records, node: &str) -> &'a mut Record {
    Record::of(all.entry(node.into()).or_default(), &"gate-uid".into())
}

fn tally(all: &Records) -> Tally<'_> {
    Tally::of("gate-uid", all.iter().map(|(name, it)| (name, &**it)))
}

fn built(all: &Records, basis: Basis<'_>) -> NodeReadinessRuleStatus {
    let status = build(&tally(all), basis);
    // The API server refuses an empty status.
    assert!(status.observed_generation >= Some(1));
    status
}

fn basis<'a>(rule: &'a Rule, previous: &'a NodeReadinessRuleStatus) -> Basis<'a> {
    Basis {
        rule,
        suspends_all: false,
        backing: &NOTHING_WRONG,
        prospects: (0, 0),
        obstacle: None,
        disruption: None,
        first_limit: None,
        held_back: None,
        permission: None,
        setbacks: &[],
        selected: 0,
        nodes: 1,
        governors: &[],
        node_limit: 100,
        previous,
        now: at(60),
    }
}

#[test]
fn counts_are_exact_and_held_nodes_come_first() {
    let nodes = [
        member("a").condition("Net", "True"),
        member("b")
            .condition("Net", "False")
            .taint(KEY, "NoSchedule"),
        member("c").condition("Net", "False"),
    ];
    let (mut all, rule) = records(&gate(), &nodes);
    record(&mut all, "c").fail("no".into(), at(0));
    let none = NodeReadinessRuleStatus::default();
    let status = built(&all, basis(&rule, &none));
    let counts = NodegateStatus {
        matched_nodes: 3,
        held_nodes: 1,
        released_nodes: 2,
        failed_node_count: 1,
        state: "in force".into(),
        permission: None,
        setbacks: Vec::new(),
        pauses: Vec::new(),
    };
    assert_eq!(status.nodegate.as_ref(), Some(&counts));
    let evaluated: Vec<_> = status
        .node_evaluations
        .iter()
        .map(|node| node.node_name.as_str())
        .collect();
    assert_eq!(evaluated, ["b", "a", "c"]);
    let taints = status.node_evaluations.iter().map(|node| node.taint_status);
    let taints: Vec<_> = taints.collect();
    let [present, absent] = [TaintStatus::Present, TaintStatus::Absent];
    assert_eq!(taints, [present, absent, absent]);
    assert_eq!(
        status.applied_nodes,
        ["b", "a"],
        "a node that failed is not among them"
    );
    assert_eq!(status.failed_nodes[0].node_name, "c");
    let limited = Basis {
        node_limit: 1,
        ..basis(&rule, &none)
    };
    let limited = built(&all, limited);
    assert_eq!(
        (limited.nodegate, limited.applied_nodes),
        (Some(counts), vec!["b".to_owned()])
    );
}

#[test]
fn a_suspended_rule_keeps_what_its_status_says_of_nodes_and_adds_what_it_lacks() {
    let (all, rule) = records(&gate().suspended(), &[member("a")]);
    let conflicted = |previous: &NodeReadinessRuleStatus| {
        let status = built(&all, basis(&rule, previous));
        let mut of_conflict = status.conditions.into_iter();
        let found = of_conflict.find(|it| it.type_ == "Conflicted");
        found.map(|it| it.status)
    };
    let mut previous = built(&all, basis(&rule, &NodeReadinessRuleStatus::default()));
    assert_eq!(conflicted(&previous).as_deref(), Some("False"));
    for condition in &mut previous.conditions {
        condition.status = "True".into();
    }
    assert_eq!(conflicted(&previous).as_deref(), Some("True"));
    previous.conditions.retain(|it| it.type_ != "Conflicted");
    assert_eq!(conflicted(&previous).as_deref(), Some("False"));
}

#[test]
fn a_status_says_to_others_that_all_rules_are_suspended_and_that_this_generation_is_held_back() {
    let none = NodeReadinessRuleStatus::default();
    for (name, gate, suspends_all, is_held_back, expected) in [
        ("in force", gate(), false, false, (false, false)),
        (
            "suspended",
            gate().suspended(),
            false,
            false,
            (false, false),
        ),
        ("all are", gate().suspended(), true, false, (true, false)),
        ("held back", gate(), false, true, (false, true)),
    ] {
        let (all, rule) = records(&gate, &[member("a")]);
        let basis = Basis {
            suspends_all,
            held_back: is_held_back.then_some(0),
            first_limit: Some(NodeShare::Nodes(0)),
            ..basis(&rule, &none)
        };
        let status = build(&tally(&all), basis);
        let held_back = says(&status, HELD_BACK, rule.generation);
        assert_eq!((says_all_suspended(&status), held_back), expected, "{name}");
        assert!(!says(&status, HELD_BACK, rule.generation + 1), "{name}");
    }
}

#[test]
fn a_status_says_in_a_word_what_the_rule_does_and_whether_a_person_has_to_act() {
    let unmet = || member("a").condition("Net", "False");
    let met = || member("a").condition("Net", "True");
    let elsewhere = || gate().selects("pool", "b");
    let any_of = gate().bootstrap_only().spec("conditionPolicy: anyOf");
    #[rustfmt::skip]
    let cases = [
        (gate(), met(), false, "in force", None),
        (gate(), unmet(), false, "nothing meets it", None),
        (gate(), unmet(), true, "held back", Some("WouldGateTooMany")),
        (elsewhere(), met(), false, "selects no node", None),
        (gate().dry_run(), unmet(), false, "dry run", None),
        (gate().suspended(), unmet(), false, "suspended", None),
        (gate().deleting(), met(), false, "being deleted", None),
        (any_of, met(), false, "invalid", Some("Invalid")),
    ];
    let none = NodeReadinessRuleStatus::default();
    for (rule, node, is_held_back, state, stalled) in cases {
        let (all, compiled) = records(&rule, &[node]);
        let basis = Basis {
            held_back: is_held_back.then_some(0),
            first_limit: Some(NodeShare::Nodes(0)),
            ..basis(&compiled, &none)
        };
        let status = built(&all, basis);
        let reason = holding(&status, "Stalled").map(|it| &*it.reason);
        assert_eq!(reason, stalled, "{state}: {:?}", status.conditions);
        assert_eq!(status.nodegate.unwrap().state, state);
        let to_evaluate = Basis {
            selected: 2,
            ..basis
        };
        let status = built(&all, to_evaluate);
        assert!(!says(&status, MET_BY_NO_NODE, 1), "not all are evaluated");
    }
}

#[test]
fn the_counts_of_a_suspended_rule_are_what_is_on_the_nodes() {
    let gate = gate().suspended();
    let previous = NodeReadinessRuleStatus {
        applied_nodes: vec!["x".into()],
        ..NodeReadinessRuleStatus::default()
    };
    let tainted = member("a").taint(KEY, "NoSchedule");
    for (node, held) in [(tainted, 1), (member("a"), 0)] {
        let (all, rule) = records(&gate, &[node]);
        let status = built(&all, basis(&rule, &previous));
        assert_eq!(status.applied_nodes, ["x"]);
        let counts = status.nodegate.unwrap();
        assert_eq!((counts.matched_nodes, counts.held_nodes), (1, held));
    }
}

#[test]
fn a_dry_run_is_summed_up() {
    let met = || member("met").condition("Net", "True");
    let unmet = || member("unmet").condition("Net", "False");
    let gated = |node: NodeBuilder| node.taint(KEY, "NoSchedule");
    for (nodes, summary) in [
        (vec![met()], "No changes needed"),
        (vec![met(), gated(unmet())], "leaves its taint on 1 node"),
        (
            vec![unmet(), member("x").condition("Net", "False")],
            "would add 2 taints, 2 of 2 selected nodes are unmet and not held: they would be gated at once",
        ),
        (vec![gated(met())], "would remove 1 taint"),
        (
            vec![gated(met()), unmet(), member("silent")],
            "would add 2 taints, would remove 1 taint, 1 node has missing conditions, 2 of 3 selected nodes are unmet and \
             not held (1 has never reported Net): they would be gated at once",
        ),
    ] {
        let (all, rule) = records(&gate().dry_run(), &nodes);
        let none = NodeReadinessRuleStatus::default();
        let results = built(&all, basis(&rule, &none)).dry_run_results;
        assert_eq!(
            results.map(|results| results.summary).as_deref(),
            Some(summary)
        );
    }
}

#[test]
fn a_dry_run_says_what_a_node_that_joins_would_wait_for() {
    let leaving = gate()
        .bootstrap_only()
        .nodegate("existingNodes: Leave")
        .created(at(60));
    let met = || member("met").condition("Net", "True");
    let unmet = || member("unmet").condition("Net", "False");
    let none = NodeReadinessRuleStatus::default();
    let joining = "1 of 2 selected nodes is unmet and not held, and left alone: a node that joins would wait for Net";
    let there_is_none = "there is no DaemonSet a/b today";
    let check = Check::NO_SUCH_DAEMON_SET;
    let missing = Backing {
        findings: vec![Finding::of_rule(check, "r", there_is_none, "")],
        notes: Vec::new(),
    };
    for (nodes, backing, summary) in [
        (vec![met()], &NOTHING_WRONG, "No changes needed".to_owned()),
        (vec![met(), unmet()], &NOTHING_WRONG, joining.to_owned()),
        (
            vec![met(), unmet()],
            &missing,
            format!("{joining}, {there_is_none}"),
        ),
        (vec![met()], &missing, there_is_none.to_owned()),
    ] {
        let (all, rule) = records(&leaving.clone().dry_run(), &nodes);
        let basis = Basis {
            backing,
            ..basis(&rule, &none)
        };
        let results = built(&all, basis).dry_run_results.unwrap();
        assert_eq!(results.summary, summary);
        assert_eq!(results.taints_to_add, Some(0));
    }
}

#[test]
fn a_rule_that_is_stuck_in_its_deletion_counts_the_nodes_that_still_have_its_taint() {
    let any_of = gate().bootstrap_only().spec("conditionPolicy: anyOf");
    for (name, rule) in [("in force", gate()), ("not usable", any_of)] {
        let rule = rule.deleting();
        let node = member("a").taint(KEY, "NoSchedule");
        let owned = r#"{"rule-name":"gate","taint-key":"readiness.k8s.io/gate","taint-effect":"NoSchedule"}"#;
        let node = node.annotation("nodegate.dev/taint-added-by-gate-uid", owned);
        let (mut all, compiled) = records(&rule, std::slice::from_ref(&node));
        assert!(!tally(&all).has_unfinished(), "{name}");
        let world = world(&node).rule(&rule);
        let plan = world.plan();
        let leave = |it: &mut Record| it.leave(&plan, Some(&compiled));
        assert!(leave(record(&mut all, "a")), "{name}");
        assert!(!leave(record(&mut all, "a")), "{name}: no news");
        assert!(tally(&all).has_unfinished(), "{name}");
        let fail = |it: &mut Record, now| it.fail("forbidden".into(), at(now));
        assert!(fail(record(&mut all, "a"), 0));
        assert!(!fail(record(&mut all, "a"), 1), "{name}: no news");
        let none = NodeReadinessRuleStatus::default();
        let status = built(&all, basis(&compiled, &none));
        let counts = status.nodegate.unwrap();
        assert_eq!(
            (
                counts.matched_nodes,
                counts.held_nodes,
                counts.released_nodes
            ),
            (1, 1, 0),
            "{name}"
        );
        assert_eq!(status.failed_nodes[0].node_name, "a", "{name}");
        let clean = NodePlan::default();
        assert!(record(&mut all, "a").leave(&clean, Some(&compiled)));
        assert!(!tally(&all).has_unfinished(), "{name}");
        assert!(record(&mut all, "a").is_empty(), "{name}");
    }
}

#[test]
fn an_unchanged_entry_keeps_its_time() {
    let nodes = [member("a").condition("Net", "True")];
    let (mut all, rule) = records(&gate(), &nodes);
    let first = built(&all, basis(&rule, &NodeReadinessRuleStatus::default()));
    record(&mut all, "a").at = at(3600);
    let again = Basis {
        now: at(3600),
        ..basis(&rule, &first)
    };
    assert_eq!(built(&all, again), first);
}

#[test]
fn a_node_is_held_from_when_it_was_first_seen_so_until_it_is_released() {
    let mut all = Records::new();
    let mut see = |status: &str, tainted: bool, now: i64| {
        let mut node = member("a").condition("Net", status);
        if tainted {
            node = node.taint(KEY, "NoSchedule");
        }
        let world = world(&node).rule(&gate());
        let outcome = &world.plan().outcomes[0];
        record(&mut all, "a").see(outcome, at(now));
        tally(&all).longest_held_since()
    };
    assert_eq!(see("True", false, 0), None);
    assert_eq!(see("False", false, 10), Some(at(10)));
    assert_eq!(see("Unknown", true, 20), Some(at(10)));
    assert_eq!(see("True", true, 30), Some(at(10)), "not released yet");
    assert_eq!(see("True", false, 40), None);
}

#[test]
fn the_lists_stay_small_however_many_nodes_and_conditions_there_are() {
    let mut rule = rule("gate").selects("pool", "a").taint(KEY, "NoSchedule");
    for index in 0..32 {
        rule = rule.waits_for(&format!("{}.example.com/Condition{index}", "c".repeat(60)));
    }
    let names: Vec<String> = (0..200)
        .map(|index| format!("{}-{index}", "n".repeat(60)))
        .collect();
    let nodes: Vec<_> = names.iter().map(|name| member(name)).collect();
    let (all, rule) = records(&rule, &nodes);
    let status = built(&all, basis(&rule, &NodeReadinessRuleStatus::default()));
    let size = serde_json::to_string(&status).unwrap().len();
    assert!(size < 32 * 1024, "{size} bytes");
    assert_eq!(status.nodegate.unwrap().matched_nodes, 200);
}

/// The records of a rule with this many conditions over this many nodes with names of this length.
fn many(conditions: usize, nodes: usize, length: usize) -> (Records, Arc<Rule>) {
    let mut rule = rule("gate").selects("pool", "a").taint(KEY, "NoSchedule");
    for index in 0..conditions {
        rule = rule.waits_for(&format!("Condition{index}"));
    }
    let names = (0..nodes).map(|index| format!("{index:0length$}"));
    let nodes: Vec<_> = names.map(|name| member(&name)).collect();
    records(&rule, &nodes)
}

#[test]
fn the_lists_name_as_many_nodes_as_there_is_room_for() {
    let none = NodeReadinessRuleStatus::default();
    for (conditions, length) in [(1, 10), (1, 60), (8, 10), (8, 60)] {
        let (all, rule) = many(conditions, 300, length);
        let basis = Basis {
            node_limit: 1000,
            ..basis(&rule, &none)
        };
        let status = built(&all, basis);
        let listed = status.node_evaluations.len();
        assert_eq!(status.applied_nodes.len(), listed);
        // With its field managers, an item takes two to four times its own size.
        let bytes = serde_json::to_string(&status.node_evaluations)
            .unwrap()
            .len();
        let case =
            format!("{conditions} conditions, names of {length}: {listed} nodes, {bytes} bytes");
        assert!((10_000..=20_000).contains(&bytes), "{case}");
    }
}

#[test]
fn failures_come_before_all_else_and_share_the_room() {
    let none = NodeReadinessRuleStatus::default();
    for (length, message) in [
        (10, "no".to_owned()),
        (60, "no".to_owned()),
        (10, "é".repeat(400)),
    ] {
        let (mut all, rule) = many(1, 300, length);
        for records in all.values_mut() {
            records[0].fail(message.clone(), at(0));
        }
        let basis = Basis {
            node_limit: 1000,
            ..basis(&rule, &none)
        };
        let status = built(&all, basis);
        let listed = status.failed_nodes.len();
        let bytes = serde_json::to_string(&status.failed_nodes).unwrap().len();
        let case = format!("names of {length}: {listed} nodes, {bytes} bytes");
        assert!((15_000..=40_000).contains(&bytes), "{case}");
        assert_eq!(status.nodegate.unwrap().failed_node_count, 300);
        assert_eq!(
            status.node_evaluations.len(),
            0,
            "{case}: nothing is left for others"
        );
        let longest = status
            .failed_nodes
            .iter()
            .filter_map(|it| it.message.as_ref());
        assert!(longest.map(String::len).max() <= Some(MAX_MESSAGE));
    }
}

#[test]
fn a_failure_keeps_its_time_while_it_is_the_same() {
    let (mut all, rule) = records(&gate(), &[member("a"), member("b")]);
    let fail = |all: &mut Records, node: &str, message: &str, now: i64| {
        record(all, node).fail(message.into(), at(now));
    };
    fail(&mut all, "a", "no", 10);
    fail(&mut all, "b", "no", 20);
    let times = |status: &NodeReadinessRuleStatus| {
        let failed = status.failed_nodes.iter();
        failed
            .map(|it| it.last_evaluation_time.0)
            .collect::<Vec<_>>()
    };
    let first = built(&all, basis(&rule, &NodeReadinessRuleStatus::default()));
    assert_eq!(times(&first), [at(10), at(20)]);
    record(&mut all, "a").failure = None;
    fail(&mut all, "a", "no", 30);
    fail(&mut all, "b", "something else", 40);
    let again = built(&all, basis(&rule, &first));
    assert_eq!(times(&again), [at(10), at(40)]);
}

#[test]
fn a_condition_of_the_rule_keeps_the_time_of_its_status_and_all_times_are_whole_seconds() {
    let (all, rule) = records(&gate(), &[member("a").condition("Net", "True")]);
    let late = at(60) + Duration::from_millis(700);
    let none = NodeReadinessRuleStatus::default();
    let first = built(
        &all,
        Basis {
            now: late,
            ..basis(&rule, &none)
        },
    );
    let times = |status: &NodeReadinessRuleStatus| {
        let conditions = status.conditions.iter();
        conditions
            .map(|it| it.last_transition_time.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(times(&first), [at(60), at(60)]);
    let governors = [Arc::from("other")];
    let conflicted = Basis {
        now: at(90),
        governors: &governors,
        ..basis(&rule, &first)
    };
    let conflicted = built(&all, conflicted);
    assert_eq!(times(&conflicted), [at(60), at(90), at(90)]);
    assert_eq!(conflicted.conditions[1].reason, "SelectorsOverlap");
    // The one message that a list of rules shows says the same.
    let [accepted, conflict] = [0, 1].map(|it| conflicted.conditions[it].message.clone());
    assert_eq!(accepted, conflict);
}

#[test]
fn a_dry_run_says_what_a_guard_would_hold_back() {
    let report = |waiting, all_zones_disrupted| Report {
        zones: Vec::new(),
        unmet: 2,
        waiting,
        all_zones_disrupted,
    };
    let unmet = member("unmet").condition("Net", "False");
    let met = member("met").condition("Net", "True");
    let (all, rule) = records(&gate().dry_run(), &[unmet, met]);
    let none = NodeReadinessRuleStatus::default();
    for (waiting, everywhere, reason) in [
        (0, true, "NoNodeHeldBack"),
        (1, false, "NodesHeldBack"),
        (1, true, "AllZonesDisrupted"),
    ] {
        let report = report(waiting, everywhere);
        let status = built(
            &all,
            Basis {
                disruption: Some(&report),
                ..basis(&rule, &none)
            },
        );
        let summary = status.dry_run_results.unwrap().summary;
        assert_eq!(summary.contains("held back"), waiting > 0, "{summary}");
        assert_eq!(status.conditions.last().unwrap().reason, reason);
    }
}
