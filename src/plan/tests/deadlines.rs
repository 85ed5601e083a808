//! Readiness deadlines, their record on the node, and nodes that are given up.

use super::{gate, gated, gated_by, met, unmet, writes};
use crate::condition::Watch;
use crate::plan::{Decision, Outcome, Standing};
use crate::repair::{Deadline, Verdict};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, at, node, rule, world};

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
        assert!(!world.carried_out().plan().writes_node(), "{name}: once");
    }
}

#[test]
fn a_node_whose_deadline_is_taken_off_has_the_whole_time_anew() {
    for (name, node) in [
        ("gated here", gated_by(unmet(), "r")),
        ("registered with the taint", gated(unmet())),
    ] {
        let world = world(&due(node.clone(), 900)).rule(&repairing("r"));
        let taken_off = world.sees(&node, at(20)).now(at(20));
        assert_eq!(deadline(&taken_off), Some(Deadline::At(at(920))), "{name}");
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
fn a_released_node_that_a_rule_never_gates_has_no_deadline_left() {
    let removing = || repairing("r").remove_only();
    let not_held = world(&due(unmet(), 77)).rule(&removing()).now(at(5000));
    assert_eq!(writes(&not_held), ["-ready-deadline-r-uid"]);
    let tainted_again = not_held.carried_out().sees(&gated(unmet()), at(5010));
    let tainted_again = tainted_again.now(at(5010));
    assert_eq!(deadline(&tainted_again), Some(Deadline::At(at(5910))));
}

#[test]
fn gate_and_deadline_are_one_write() {
    let world = world(&unmet()).rule(&repairing("r")).now(at(5));
    let expected = [
        "+gate:NoSchedule",
        "+ready-deadline-r-uid",
        "+taint-added-by-r-uid",
    ];
    assert_eq!(writes(&world), expected);
}

#[test]
fn a_node_that_is_or_was_released_has_no_deadline() {
    let no_repair = gate("r").bootstrap_only();
    let boot = || {
        unmet().boot_id("b").annotation(
            "readiness.k8s.io/bootstrap-completed-r-uid",
            r#"{"rule-name":"r","boot-id":"a"}"#,
        )
    };
    #[rustfmt::skip]
    let cases = [
        ("met", met(), vec![repairing("r")]),
        ("released before", unmet().completed("r-uid"), vec![repairing("r")]),
        ("released before, and tainted", gated(unmet()).completed("r-uid"), vec![repairing("r")]),
        ("released before, by name", gated(unmet()).completed("r"), vec![repairing("r")]),
        ("released before a reboot", boot(), vec![repairing("r").nodegate("regateOn: [Reboot]")]),
        ("no repair", unmet(), vec![no_repair]),
        ("dry run", unmet(), vec![repairing("r").dry_run()]),
        ("governed by another rule", unmet(), vec![gate("a").created(at(-100)), repairing("r")]),
        ("remove-only, and not tainted", unmet(), vec![repairing("r").remove_only()]),
    ];
    for (name, node, rules) in cases {
        let world = world(&node).with_rules(&rules).now(at(5));
        assert_eq!(deadline(&world), None, "{name}");
    }
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
fn a_deadline_stays_until_it_is_known_that_its_rule_is_gone() {
    let gone = world(&due(gated(unmet()), 900));
    assert_eq!(writes(&gone), ["-ready-deadline-r-uid"]);
    let world = gone.before_its_rules();
    assert_eq!(writes(&world), [""; 0]);
    assert_eq!(world.plan().stale, [Watch::Rules].into());
    assert_eq!(
        deadline(&world.rule(&repairing("r"))),
        Some(Deadline::At(at(900)))
    );
}

#[test]
fn a_rule_is_kept_until_its_deadlines_are_gone() {
    let leaving = repairing("r").deleting();
    let world = world(&due(unmet(), 900)).rule(&leaving);
    let writes = |world: &World| world.plan().writes_for(&world.rules()[0]).count();
    assert_eq!((writes(&world), writes(&world.carried_out())), (1, 0));
}

#[test]
fn a_dry_run_counts_from_when_the_node_joined() {
    let world = world(&unmet()).rule(&repairing("r").dry_run()).now(at(500));
    let plan = world.plan();
    assert_eq!(plan.outcomes[0].deadline, Some(Ok(Deadline::At(at(900)))));
    assert_eq!(plan.recheck, Some(at(900)));
    assert!(!plan.writes_node());
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
    let plan = world.plan();
    assert_eq!(
        plan.outcomes[0].standing,
        Standing::Governs(Decision::GiveUp)
    );
    let [change] = &world.write().changes[..] else {
        panic!("{:?}", plan.taints);
    };
    assert!(change.gave_up && !change.components_ready);
    assert_eq!(
        change.why,
        "its readiness TTL has passed; NetworkReady is not reported (counts as Unknown, must be True)"
    );
    assert!(
        !world.carried_out().plan().writes_node(),
        "it stays released"
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
fn only_a_taint_that_is_held_is_given_up() {
    let ready = due(gated_by(met(), "r"), 900);
    let world_of = |node: &NodeBuilder| world(node).rule(&repairing("r"));
    let plan = world_of(&ready);
    assert!(
        !plan.write().changes[0].gave_up,
        "it has got ready after all"
    );
    assert_eq!(writes(&world_of(&met().completed("r-uid"))), [""; 0]);
    let other = rule("other")
        .taint("readiness.k8s.io/other", "NoSchedule")
        .waits_for("X");
    let both = world_of(&due(gated_by(unmet(), "r"), 900)).rule(&other);
    assert!(
        writes(&both).contains(&"+other:NoSchedule".to_owned()),
        "others' gates stay"
    );
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
        assert!(!world.plan().writes_node(), "{name}");
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
fn too_many_unhealthy_nodes_hold_a_repair_back_for_a_while() {
    let overdue = |name: &str| {
        let taint = node(name).taint(GATE, "NoSchedule");
        due(taint, 900).owned_by("r", GATE, "NoSchedule")
    };
    let alone = world(&overdue("worker-1")).rule(&repairing("r"));
    assert_eq!(alone.plan().outcomes[0].verdict, Some(Verdict::Release));
    let blocked = alone.neighbour(&overdue("worker-2"));
    let plan = blocked.plan();
    assert!(matches!(
        plan.outcomes[0].verdict,
        Some(Verdict::Blocked(_))
    ));
    assert_eq!(writes(&blocked), [""; 0]);
    assert_eq!(plan.recheck, Some(at(3600 + 300)));
    let dry = blocked.with_rules(&[repairing("r").dry_run()]);
    let plan = dry.plan();
    assert!(plan.outcomes[0].would_repair());
    assert_eq!(plan.recheck, None, "a dry run waits for nothing");
}
