//! Several rules with one taint, and what happens when one of them goes.

use super::{assert_writes, gate, gated, gated_by, met, unmet, writes};
use crate::plan::{ChangeKind, Memory, Standing};
use crate::rule::Rule;
use crate::testing::{Builder, GATE, World, at, rule, world};

const OTHER: &str = "readiness.k8s.io/other";

#[test]
fn a_rule_that_is_being_deleted_cleans_up_after_itself() {
    let deleted = || gate("r").deleting();
    let removed = &["-gate:NoSchedule", "-taint-added-by-r-uid"][..];
    #[rustfmt::skip]
    let cases = [
        ("unmet, owned: remove", gated_by(unmet(), "r"), vec![deleted()], removed),
        ("unmet, not owned: remove", gated(unmet()), vec![deleted()], &["-gate:NoSchedule"][..]),
        ("absent: nothing", unmet(), vec![deleted()], &[]),
        ("annotation left: drop it", unmet().owned_by("r", GATE, "NoSchedule"), vec![deleted()], &["-taint-added-by-r-uid"]),
        (
            "both completion annotations go",
            unmet().completed("r-uid").completed("r").completed("other"),
            vec![deleted().bootstrap_only()],
            &["-bootstrap-completed-r", "-bootstrap-completed-r-uid"],
        ),
        (
            "completion annotations go from nodes that it does not select",
            unmet().completed("r-uid"),
            vec![deleted().bootstrap_only().selects("pool", "other")],
            &["-bootstrap-completed-r-uid"],
        ),
        ("another deletion's completion stays", unmet().completed("other-uid"), vec![deleted()], &[]),
        ("dry run: leave the taint", gated(unmet()), vec![deleted().dry_run()], &[]),
        (
            "dry run that added the taint before it became one: nobody else would ever remove it",
            gated_by(unmet(), "r"),
            vec![deleted().dry_run()],
            removed,
        ),
        ("remove-only: leave the taint", gated(unmet()).completed("r-uid"), vec![deleted().remove_only()], &["-bootstrap-completed-r-uid"]),
        (
            "remove-only that took over a taint of ours: nobody else would ever remove it",
            gated_by(unmet(), "r"),
            vec![deleted().remove_only()],
            removed,
        ),
        (
            "conflicted: leave the taint to the rule that governs",
            gated_by(unmet(), "first"),
            vec![gate("first"), deleted().created(at(1))],
            &[],
        ),
        (
            "governed by a newer rule: hand over",
            gated_by(unmet(), "r"),
            vec![deleted(), gate("second").created(at(1))],
            &["-taint-added-by-r-uid", "+taint-added-by-second-uid"],
        ),
        (
            "governed by a newer rule whose conditions are met: that rule's decision",
            gated_by(met(), "r").completed("r-uid"),
            vec![deleted(), gate("second").created(at(1)).bootstrap_only()],
            &[
                "-gate:NoSchedule",
                "-taint-added-by-r-uid",
                "-bootstrap-completed-r-uid",
                "+bootstrap-completed-second-uid",
            ],
        ),
        (
            "governed by a newer rule, taint not owned: that rule adopts it",
            gated(unmet()),
            vec![deleted(), gate("second").created(at(1))],
            &["+taint-added-by-second-uid"],
        ),
        ("a newer dry run does not take over", gated_by(unmet(), "r"), vec![deleted(), gate("second").created(at(1)).dry_run()], removed),
        (
            "a newer rule about other nodes does not take over",
            gated_by(unmet(), "r"),
            vec![
                deleted(),
                gate("second").created(at(1)).selects("pool", "other"),
            ],
            removed,
        ),
        ("two deleted: one removal", gated_by(unmet(), "r"), vec![deleted(), gate("second").created(at(1)).deleting()], removed),
        ("unreadable: remove what it owns", gated_by(unmet(), "r"), vec![rule("r").deleting()], removed),
        (
            "an annotation that cannot be read goes too",
            gated(unmet()).annotation("nodegate.dev/taint-added-by-r-uid", "r"),
            vec![deleted()],
            removed,
        ),
    ];
    for (name, node, rules, expected) in cases {
        assert_writes(name, &node, &rules, expected);
    }
}

#[test]
fn the_oldest_rule_governs_a_taint() {
    let second = || gate("a").created(at(1));
    let first = || rule("b").waits_for("Other");
    let standings = |world: &World| -> Vec<String> {
        let plan = world.plan();
        plan.outcomes
            .iter()
            .map(|outcome| match &outcome.standing {
                Standing::Governs(decision) => format!("{}: {decision:?}", outcome.rule.name),
                Standing::DryRun(decision) => format!("{}: dry {decision:?}", outcome.rule.name),
                Standing::Conflicted { with } => {
                    format!("{}: conflicts with {with}", outcome.rule.name)
                }
            })
            .collect()
    };
    #[rustfmt::skip]
    let cases = [
        ("by creation time", [first(), second()], ["b: Gate", "a: conflicts with b"], &["+gate:NoSchedule", "+taint-added-by-b-uid"][..]),
        ("by name at the same time", [first(), gate("a")], ["a: NotHeld", "b: conflicts with a"], &[]),
        ("a dry run governs nothing", [first().dry_run(), second()], ["b: dry Gate", "a: NotHeld"], &[]),
    ];
    for (name, rules, expected, written) in cases {
        let world = world(&met()).with_rules(&rules);
        assert_eq!(standings(&world), expected, "{name}");
        assert_eq!(writes(&world), written, "{name}");
    }
    let conflicted = world(&gated_by(met(), "b")).with_rules(&[first(), second()]);
    assert_eq!(
        writes(&conflicted),
        [""; 0],
        "a conflicted rule removes nothing"
    );
    let apart = world(&met()).with_rules(&[first(), second().taint(GATE, "NoExecute")]);
    assert_eq!(
        standings(&apart),
        ["b: Gate", "a: NotHeld"],
        "another effect is another taint"
    );
    let alone = world(&met()).with_rules(&[first().deleting(), second()]);
    assert_eq!(
        standings(&alone),
        ["a: NotHeld"],
        "a deleted rule has no outcome"
    );
}

#[test]
fn an_older_rule_that_comes_to_govern_takes_the_taint_over() {
    let first = gate("first");
    let second = gate("second").created(at(1));
    assert_writes(
        "unmet",
        &gated_by(unmet(), "second"),
        &[first, second],
        &["+taint-added-by-first-uid", "-taint-added-by-second-uid"],
    );
}

#[test]
fn a_held_taint_that_nobody_here_added_is_adopted() {
    for (name, node, rule, expected) in [
        ("held, nobody's", gated(unmet()), gate("r"), true),
        ("held, ours", gated_by(unmet(), "r"), gate("r"), false),
        (
            "held, of a rule that is gone",
            gated_by(unmet(), "gone"),
            gate("r"),
            false,
        ),
        ("added now", unmet(), gate("r"), false),
        ("released", gated(met()), gate("r"), false),
        ("a dry run", gated(unmet()), gate("r").dry_run(), false),
    ] {
        let world = world(&node).rule(&rule);
        assert_eq!(world.plan().outcomes[0].adopts(), expected, "{name}");
    }
}

#[test]
fn all_rules_of_a_node_are_one_plan() {
    let node = met()
        .taint("example.com/first", "NoSchedule")
        .taint_with(OTHER, "x", "NoExecute")
        .taint_with("example.com/last", "y", "PreferNoSchedule")
        .owned_by("other", OTHER, "NoExecute");
    let world = world(&node).with_rules(&[
        rule("r").waits_for("Missing"),
        gate("other").taint(OTHER, "NoExecute").bootstrap_only(),
        gate("third").taint("readiness.k8s.io/third", "NoSchedule"),
    ]);
    let plan = world.plan();
    let taints = world.new_taints().unwrap();
    let keys: Vec<_> = taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(keys, ["example.com/first", "example.com/last", GATE]);
    assert_eq!(taints[1].value, "y");
    assert_eq!(
        writes(&world),
        [
            "+gate:NoSchedule",
            "-other:NoExecute",
            "-taint-added-by-other-uid",
            "+taint-added-by-r-uid",
            "+bootstrap-completed-other-uid",
        ]
    );
    let completes_bootstrap = |rule: &str| {
        let mut outcomes = plan.outcomes.iter();
        outcomes.any(|it| *it.rule.name == *rule && it.completes && it.governs().is_some())
    };
    let changes: Vec<_> = plan
        .changes()
        .map(|change| {
            let rule = change.rule_name.as_str();
            (change.kind, rule, completes_bootstrap(rule))
        })
        .collect();
    assert_eq!(
        changes,
        [
            (ChangeKind::Added, "r", false),
            (ChangeKind::Removed, "other", true)
        ]
    );
}

#[test]
fn a_change_is_the_rules_that_makes_it() {
    let others = rule("other").waits_for("Other").taint(OTHER, "NoSchedule");
    let world = world(&gated_by(met(), "r")).with_rules(&[gate("r"), others]);
    let plan = world.plan();
    // Ordered by name.
    let of_rules = |holds: &dyn Fn(&Rule) -> bool| {
        let rules = world.rules().iter();
        rules.map(|rule| holds(rule)).collect::<Vec<_>>()
    };
    assert_eq!(of_rules(&|rule| plan.releases_for(rule)), [false, true]);
    let writes = |rule: &Rule| plan.writes_for(rule).next().is_some();
    assert_eq!(of_rules(&writes), [true, true]);
    let [removed, added] = &world.write().changes[..] else {
        panic!("{:?}", plan.taints);
    };
    for (change, of_it, of_other) in [(removed, true, false), (added, false, true)] {
        assert_eq!(removed.id().is_of(change), of_it);
        assert_eq!(added.id().is_of(change), of_other);
    }
}

#[test]
fn what_is_remembered_of_a_rule_is_its_own() {
    let others = rule("other").waits_for("Other").taint(OTHER, "NoSchedule");
    let met_once = world(&met()).with_rules(&[gate("r"), others]);
    let unmet = met_once.evaluated(at(5)).sees(&unmet(), at(10));
    let then = Memory::after(&unmet.plan().outcomes, &[]).unwrap();
    let was_met: Vec<_> = then
        .iter()
        .map(|memory| (&*memory.rule, memory.was_met))
        .collect();
    assert_eq!(was_met, [("r-uid", true), ("other-uid", false)]);
}
