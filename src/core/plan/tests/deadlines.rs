//! Readiness deadlines, their record on the node, and nodes that are given up.

use super::{gate, gated, gated_by, met, unmet, writes};
use crate::condition::Watch;
use crate::plan::{NodeState, Outcome, plan};
use crate::repair::Deadline;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, at, world};

fn repairing(name: &str) -> RuleBuilder {
    gate(name)
        .bootstrap_only()
        .nodegate("repair: {readinessTTL: 15m, action: Release}")
}

/// Records a deadline this many seconds after the beginning.
fn due(node: NodeBuilder, seconds: i64) -> NodeBuilder {
    node.annotation(
        "nodegate.dev/ready-deadline-r-uid",
        &at(seconds).to_string(),
    )
}

/// The node's deadline under the rule `r` once the plan is carried out.
fn deadline(world: &World) -> Option<Deadline> {
    Deadline::recorded(&world.carried_out().node, "r-uid")
}

#[test]
fn the_deadline_is_on_record_as_soon_as_the_node_is_gated() {
    #[rustfmt::skip]
    let cases = [
        ("with the gate", unmet(), repairing("r"), 5, 900),
        ("registered with the taint", gated(unmet()), repairing("r"), 5, 900),
        ("the rule came later", unmet().created(at(-9000)), repairing("r").created(at(10)), 15, 910),
        ("the node came later", unmet().created(at(10)), repairing("r").created(at(-9000)), 15, 910),
        ("from before this process began", gated_by(unmet().created(at(-9000)), "r"), repairing("r").created(at(-9000)), 5, 905),
        ("remove-only", gated(unmet()), repairing("r").remove_only(), 5, 900),
        ("recorded before", due(gated(unmet()), 2000), repairing("r"), 5, 2000),
        ("recorded for a time before its time, by its kubelet perhaps", due(gated(unmet()), -77), repairing("r"), 5, 900),
        (
            "recorded for such a time, which deletes the node's claim and releases nothing",
            due(gated(unmet()), 77),
            repairing("r").nodegate("repair: {readinessTTL: 15m, action: DeleteNodeClaim}"),
            5,
            77,
        ),
        ("recorded before the TTL was changed", due(gated(unmet()), 77), repairing("r").nodegate("repair: {readinessTTL: 1h}"), 5, 77),
    ];
    for (name, node, rule, now, expected) in cases {
        let world = world(&node).rule(&rule).now(at(now));
        assert_eq!(deadline(&world), Some(Deadline::At(at(expected))), "{name}");
        let plan = world.plan();
        assert_eq!(
            plan.outcomes[0].deadline,
            Some(Ok(Deadline::At(at(expected)))),
            "{name}"
        );
        assert_eq!(plan.recheck, Some(at(expected)), "{name}");
        assert!(world.carried_out().plan().taints.is_empty(), "{name}: once");
    }
}

#[test]
fn a_node_that_has_lost_its_taint_has_the_whole_time_anew() {
    let not_held = due(unmet(), 77);
    // A dry run writes nothing, and its record stays.
    let dry = world(&not_held)
        .rule(&repairing("r").dry_run())
        .now(at(5000));
    assert_eq!(writes(&dry), [""; 0]);
    let live = world(&not_held).rule(&repairing("r")).now(at(5000));
    assert_eq!(deadline(&live), Some(Deadline::At(at(5900))));
    let planned = &live.plan().outcomes[0].deadline;
    assert_eq!(*planned, Some(Ok(Deadline::At(at(5900)))), "it is not up");
}

#[test]
fn a_deadline_goes_with_what_it_was_for() {
    let held = || due(gated_by(unmet(), "r"), 900);
    let removed = || due(gated_by(met(), "r"), 900);
    #[rustfmt::skip]
    let cases = [
        (
            "the bootstrap is completed",
            removed(),
            vec![repairing("r")],
            &[
                "-gate:NoSchedule",
                "-ready-deadline-r-uid",
                "+bootstrap-completed-r-uid",
                "-taint-added-by-r-uid",
            ][..],
        ),
        ("the rule goes", held(), vec![repairing("r").deleting()], &["-gate:NoSchedule", "-ready-deadline-r-uid", "-taint-added-by-r-uid"]),
        ("the rule is gone", held(), vec![], &["-gate:NoSchedule", "-ready-deadline-r-uid", "-taint-added-by-r-uid"]),
        (
            "the rule is about other nodes",
            held(),
            vec![repairing("r").selects("pool", "a")],
            &[
                "-gate:NoSchedule",
                "-ready-deadline-r-uid",
                "-taint-added-by-r-uid",
            ],
        ),
        ("the rule repairs no more", held(), vec![gate("r").bootstrap_only()], &["-ready-deadline-r-uid"]),
        (
            "another rule governs",
            due(unmet(), 900)
                .owned_by("a", GATE, "NoSchedule")
                .taint(GATE, "NoSchedule"),
            vec![gate("a").created(at(-100)), repairing("r")],
            &["-ready-deadline-r-uid"],
        ),
        ("a dry run leaves it", held(), vec![repairing("r").dry_run()], &[]),
        ("a rule without its finalizer leaves it", held(), vec![repairing("r").without_finalizer()], &[]),
    ];
    for (name, node, rules, expected) in cases {
        let world = world(&node).with_rules(&rules);
        let mut expected: Vec<_> = expected.to_vec();
        let mut written = writes(&world);
        expected.sort_unstable();
        written.sort_unstable();
        assert_eq!(written, expected, "{name}");
    }
}

#[test]
fn a_node_that_is_given_up_is_released_for_good_in_one_write() {
    let node = due(gated_by(unmet(), "r"), 900);
    let world = world(&node).rule(&repairing("r"));
    assert_eq!(
        writes(&world),
        [
            "-gate:NoSchedule",
            "-taint-added-by-r-uid",
            "+bootstrap-completed-r-uid",
        ]
    );
    assert_eq!(
        world.write().changes[0].why,
        "its readiness TTL has passed; NetworkReady is not reported (counts as Unknown, must be True)"
    );
}

#[test]
fn a_node_that_was_given_up_is_past_its_time_until_it_is_ready() {
    let given_up = |node: NodeBuilder| due(node.completed("r-uid"), 900);
    let waiting = world(&given_up(unmet())).rule(&repairing("r"));
    assert_eq!(writes(&waiting), [""; 0]);
    let ready = world(&given_up(met())).rule(&repairing("r"));
    assert_eq!(writes(&ready), ["-ready-deadline-r-uid"]);
}

#[test]
fn no_node_is_given_up_while_repair_is_postponed() {
    let node = due(gated_by(unmet(), "r"), 900);
    let world = world(&node).rule(&repairing("r"));
    #[rustfmt::skip]
    let cases = [
        ("stale", world.clone().stale(), None),
        ("settling", world.clone().settling_until(at(4000)), Some(at(4000))),
        ("both", world.clone().stale().settling_until(at(4000)), Some(at(4000))),
    ];
    for (name, world, recheck) in cases {
        let plan = world.plan();
        assert!(plan.repair_is_postponed, "{name}");
        assert_eq!(plan.recheck, recheck, "{name}");
        assert_eq!(plan.outcomes[0].verdict, None, "{name}");
        assert_eq!(writes(&world), [""; 0], "{name}");
        assert!(world.plan().taints.is_empty(), "{name}");
        // Nodes that are not late are not affected.
        let early = world.now(at(899));
        let early = early.plan();
        assert!(!early.repair_is_postponed, "{name}");
        assert_eq!(early.recheck, Some(at(900)));
    }
    let dry_run = |world: &World| {
        let dry = repairing("dry")
            .taint("readiness.k8s.io/a", "NoSchedule")
            .dry_run();
        let world = world.clone().rule(&dry);
        world.plan().outcomes.iter().any(Outcome::would_repair)
    };
    assert!(dry_run(&world));
    assert!(
        !dry_run(&world.settling_until(at(4000))),
        "what a dry run would do is not said meanwhile either"
    );
}

#[test]
fn a_deadline_stays_until_it_is_known_that_its_rule_is_gone() {
    let gone = world(&due(gated(unmet()), 900));
    assert_eq!(writes(&gone), ["-ready-deadline-r-uid"]);
    let state = NodeState {
        knows_rules: false,
        ..gone.state()
    };
    let plan = plan(gone.cluster(), state, gone.history(), at(3600));
    assert!(plan.taints.is_empty());
    assert_eq!(plan.stale, [Watch::Rules].into());
}
