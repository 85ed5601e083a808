//! Rules that come after others.

use super::{NETWORK, gate, met, unmet, writes};
use crate::plan::{Decision, Standing, WaitReason};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, at, rule, world};

/// The taint of the rule that comes first. Taints are settled by key: it would be the last one.
const FIRST: &str = "readiness.k8s.io/z-first";

/// The rule that comes first.
fn first() -> RuleBuilder {
    rule("first").waits_for("First").taint(FIRST, "NoSchedule")
}

/// The rule `r`, after the first one.
fn after() -> RuleBuilder {
    gate("r").spec("after: [first]")
}

/// The node while the first rule holds it.
fn held(node: NodeBuilder) -> NodeBuilder {
    node.dated_taint(FIRST, "NoSchedule")
        .owned_by("first", FIRST, "NoSchedule")
}

/// The decision of a rule, and whether it waits for another one.
fn decision(world: &World, rule: &str) -> (Decision, bool) {
    let plan = world.plan();
    let mut outcomes = plan.outcomes.iter();
    let outcome = outcomes.find(|it| *it.rule.name == *rule).unwrap();
    let (Standing::Governs(decision) | Standing::DryRun(decision)) = outcome.standing else {
        panic!("{rule} neither governs nor is a dry run");
    };
    (decision, outcome.evaluation.waits_for.is_some())
}

const OPEN: Decision = Decision::Open {
    completes_bootstrap: false,
};

#[test]
fn a_rule_decides_nothing_while_one_that_comes_first_holds_the_node() {
    let closed = || met().taint(GATE, "NoSchedule");
    let bootstrap = || after().bootstrap_only();
    let existing = |node: NodeBuilder| world(&node).with_rules(&[first(), after()]);
    for (name, world, expected) in [
        (
            "a closed node stays closed",
            existing(held(closed())),
            Decision::Hold,
        ),
        ("an open one stays open", existing(held(unmet())), OPEN),
        (
            "one that joins is closed",
            existing(held(met())).joined(at(100)),
            Decision::Gate,
        ),
        (
            "bootstrap-only, not decided yet",
            world(&held(met())).with_rules(&[first(), bootstrap()]),
            Decision::Gate,
        ),
        (
            "bootstrap-only, completed",
            world(&held(unmet()).completed("r-uid")).with_rules(&[first(), bootstrap()]),
            OPEN,
        ),
        (
            "bootstrap-only, older than the rule, which leaves it alone",
            world(&held(unmet())).with_rules(&[
                first(),
                bootstrap().spec("existingNodes: Leave").created(at(9)),
            ]),
            OPEN,
        ),
        (
            "a rule that only lifts",
            world(&held(met())).with_rules(&[first(), after().remove_only()]),
            OPEN,
        ),
        (
            "a dry run",
            world(&held(met())).with_rules(&[first(), bootstrap().dry_run()]),
            Decision::Gate,
        ),
        (
            "the first one is about to close it",
            world(&unmet())
                .with_rules(&[first(), after()])
                .joined(at(100)),
            Decision::Gate,
        ),
        (
            "the second of several",
            world(&held(closed())).with_rules(&[first(), gate("r").spec("after: [other, first]")]),
            Decision::Hold,
        ),
    ] {
        assert_eq!(decision(&world, "r"), (expected, true), "{name}");
    }
}

/// The taint that it shares is settled first: the rule that governs it comes after none.
#[test]
fn a_dry_run_waits_as_it_would_in_force_beside_another_rule_with_its_taint() {
    for (name, node) in [
        ("closed", held(met()).taint(GATE, "NoSchedule")),
        ("open", held(unmet())),
    ] {
        let in_force = world(&node).with_rules(&[first(), after()]);
        let beside = [gate("older").created(at(-9)), first(), after().dry_run()];
        let beside = world(&node).with_rules(&beside);
        let expected = decision(&in_force, "r");
        assert!(expected.1, "{name}");
        assert_eq!(decision(&beside, "r"), expected, "{name}");
    }
}

#[test]
fn a_rule_that_holds_nothing_is_not_waited_for() {
    let node = || held(met()).taint(GATE, "NoSchedule");
    let release = Decision::Release {
        completes_bootstrap: false,
    };
    for (name, node, first) in [
        (
            "it is not there",
            node(),
            rule("other").waits_for("First").taint(FIRST, "NoSchedule"),
        ),
        (
            "it does not select the node",
            node(),
            first().selects("pool", "other"),
        ),
        ("a dry run", node(), first().dry_run()),
        ("suspended", node(), first().suspended()),
        ("being deleted", node(), first().deleting()),
        ("cannot be used", node(), first().spec("conditions: []")),
        (
            "lets go at the same time",
            node().condition("First", "True"),
            first(),
        ),
        (
            "does nothing: its taint is another rule's",
            node(),
            first().taint(GATE, "NoSchedule").created(at(9)),
        ),
        (
            "it comes after itself",
            node(),
            first().spec("after: [first]"),
        ),
    ] {
        let world = world(&node).with_rules(&[first, after()]);
        assert_eq!(decision(&world, "r"), (release, false), "{name}");
    }
}

#[test]
fn a_rule_that_is_about_to_be_taken_on_has_nothing_harmful_done_before_it() {
    let coming = || first().without_finalizer();
    for (name, node, rule, expected) in [
        (
            "would open",
            met().taint(GATE, "NoSchedule"),
            after(),
            Decision::Hold,
        ),
        ("would be completed", met(), after().bootstrap_only(), OPEN),
        (
            "would close",
            unmet(),
            after().bootstrap_only(),
            Decision::Wait(WaitReason::Stale),
        ),
    ] {
        let beside = |first| world(&node).with_rules(&[first, rule.clone()]);
        assert_eq!(
            decision(&beside(coming()), "r"),
            (expected, false),
            "{name}"
        );
        let not_meant = coming().selects("pool", "other");
        assert_ne!(
            decision(&beside(not_meant), "r").0,
            expected,
            "{name}, elsewhere"
        );
    }
}

#[test]
fn a_continuous_rule_closes_an_open_node_while_it_waits_only_where_it_has_not_decided_yet() {
    let careful = || after().spec("disruption: {}");
    // The second rule comes when the node has been evaluated: for the first one alone, or for both.
    let knows_first = world(&held(met()))
        .with_rules(&[first()])
        .evaluated(at(3600));
    let comes = knows_first.clone().rule(&after()).now(at(3601));
    assert_eq!(decision(&comes, "r").0, Decision::Gate);
    let limited = knows_first.clone().rule(&careful()).now(at(3601));
    let waits = Decision::Wait(WaitReason::Disruption);
    assert_eq!(decision(&limited, "r").0, waits, "its guard decides when");
    let later = limited.clone().evaluated(at(3601)).now(at(3700));
    assert_eq!(decision(&later, "r").0, waits, "it has still not decided");
    let plan = later.plan();
    let mut outcomes = plan.outcomes.iter();
    let since = outcomes
        .find(|it| &*it.rule.name == "r")
        .unwrap()
        .unmet_since;
    assert_eq!(since, Some(at(3601)), "the guard counts from then");
    assert_eq!(decision(&later.may_close("r"), "r").0, Decision::Gate);
    let decided = world(&met().condition("First", "True"))
        .with_rules(&[first(), after()])
        .evaluated(at(3600))
        .sees(&held(unmet()), at(3700))
        .now(at(3700));
    assert_eq!(
        decision(&decided, "r"),
        (OPEN, true),
        "it was open when the first one closed it"
    );
    let restarted = decided
        .evaluated(at(3700))
        .restarted(&held(unmet()), at(3800))
        .now(at(3800));
    assert_eq!(
        decision(&restarted, "r"),
        (OPEN, true),
        "another process does not close it either"
    );
    let kept = restarted.evaluated(at(3800)).now(at(3900));
    assert_eq!(decision(&kept, "r"), (OPEN, true));
}

#[test]
fn grace_begins_when_the_wait_ends() {
    let patient = after().spec("gracePeriod: 10m");
    let open = met().condition("First", "True");
    let waiting = world(&open)
        .with_rules(&[first(), patient])
        .evaluated(at(3600))
        .sees(&held(unmet()), at(3700))
        .evaluated(at(3700));
    assert_eq!(decision(&waiting, "r").0, OPEN);
    let free = waiting
        .sees(&unmet().condition("First", "True"), at(5000))
        .now(at(5000));
    let grace = Decision::Wait(WaitReason::Grace { until: at(5600) });
    assert_eq!(decision(&free, "r").0, grace);
}

#[test]
fn rules_let_go_one_after_another_whatever_their_taints_are_called() {
    let chain = [
        first(),
        gate("second")
            .taint("readiness.k8s.io/m", "NoSchedule")
            .spec("after: [first]"),
        gate("third")
            .taint("readiness.k8s.io/a", "NoSchedule")
            .spec("after: [second]"),
    ];
    let keys = [FIRST, "readiness.k8s.io/m", "readiness.k8s.io/a"];
    let closed = |node: NodeBuilder| {
        keys.iter()
            .fold(node, |node, key| node.taint(key, "NoSchedule"))
    };
    let decisions = |node: NodeBuilder| {
        let world = world(&closed(node)).with_rules(&chain);
        ["first", "second", "third"].map(|rule| decision(&world, rule).0.lifts())
    };
    assert_eq!(decisions(met()), [false, false, false]);
    assert_eq!(
        decisions(met().condition("First", "True")),
        [true, true, true]
    );
    assert_eq!(
        decisions(unmet().condition("First", "True")),
        [true, false, false]
    );
}

#[test]
fn what_a_rule_that_waits_published_stays() {
    let waits = gate("r")
        .waits_for("resource.nodegate.dev/gpu")
        .spec("after: [first]");
    let node = || unmet().taint(GATE, "NoSchedule");
    let free = world(&node().condition("First", "True")).with_rules(&[first(), waits]);
    let published = free.carried_out().node;
    assert!(published.condition("resource.nodegate.dev/gpu").is_some());
    let mut waiting = free.sees(&held(node()), at(3600));
    waiting.node.conditions = published
        .conditions
        .into_iter()
        .filter(|it| it.kind != "First")
        .collect();
    assert!(
        waiting.plan().conditions.is_empty(),
        "{:?}",
        waiting.plan().conditions
    );
}

#[test]
fn a_late_node_is_not_released_before_the_rule_that_comes_first_lets_it_go() {
    let gives_up = after()
        .bootstrap_only()
        .spec("repair: {readinessTTL: 15m, action: Release}");
    let late = || {
        unmet()
            .taint(GATE, "NoSchedule")
            .annotation("nodegate.dev/ready-deadline-r-uid", &at(900).to_string())
    };
    let world = |node: NodeBuilder| world(&node).with_rules(&[first(), gives_up.clone()]);
    assert_eq!(decision(&world(held(late())), "r"), (Decision::Hold, true));
    let free = world(late().condition("First", "True"));
    assert_eq!(decision(&free, "r"), (Decision::GiveUp, false));
}

#[test]
fn why_it_waits_is_said() {
    let world = world(&held(met()).taint(GATE, "NoSchedule")).with_rules(&[first(), after()]);
    assert_eq!(
        writes(&world),
        ["+taint-added-by-r-uid"],
        "it owns the taint that it keeps"
    );
    let plan = world.plan();
    let outcome = plan
        .outcomes
        .iter()
        .find(|it| &*it.rule.name == "r")
        .unwrap();
    let why = "WaitsForRule: rule 'first' holds this node, and comes first";
    assert_eq!(outcome.evaluation.why(), why);
    assert!(!why.contains(NETWORK) && outcome.evaluation.results.is_empty());
}
