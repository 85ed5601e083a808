//! Taints that someone else added and a rule takes over.

use super::{gate, gated, met, unmet, writes};
use crate::testing::{Builder, NodeBuilder, RuleBuilder, World, at, world};

const OWNER: &str = "nodegate.dev/taint-added-by-r-uid";

/// A node that joined with the taint at the beginning.
fn registered(node: &NodeBuilder, rule: &RuleBuilder) -> World {
    world(&gated(node.clone())).rule(rule).joined(at(0))
}

#[test]
fn a_taint_that_is_held_for_longer_than_a_moment_is_owned() {
    for (name, rule, expected) in [
        (
            "continuous",
            gate("r"),
            r#"{"rule-name":"r","taint-key":"readiness.k8s.io/gate","taint-effect":"NoSchedule","joining":true,"adopted":true}"#,
        ),
        (
            "bootstrap-only",
            gate("r").bootstrap_only(),
            r#"{"rule-name":"r","taint-key":"readiness.k8s.io/gate","taint-effect":"NoSchedule","adopted":true}"#,
        ),
    ] {
        let early = registered(&unmet(), &rule).now(at(0));
        let plan = early.plan();
        assert!(!plan.writes_node(), "{name}: not yet");
        assert!(plan.outcomes[0].adopts(), "{name}: it is told at once");
        assert_eq!(plan.recheck, Some(at(1)), "{name}");

        let settled = early.now(at(1));
        assert_eq!(
            settled.new_taints(),
            None,
            "{name}: the taint stays as it is"
        );
        let write = settled.write();
        assert_eq!(
            write.annotations[OWNER].as_deref(),
            Some(expected),
            "{name}"
        );
        assert!(!settled.carried_out().plan().writes_node(), "{name}: once");
    }
}

#[test]
fn a_node_that_is_released_within_a_moment_is_written_once() {
    let rule = gate("r").bootstrap_only();
    let waiting = registered(&unmet(), &rule).now(at(0));
    assert!(!waiting.plan().writes_node());
    let ready = waiting.sees(&gated(met()), at(0));
    assert_eq!(
        writes(&ready),
        ["-gate:NoSchedule", "+bootstrap-completed-r-uid"]
    );
}

#[test]
fn a_taint_that_is_put_on_a_node_long_known_is_owned_at_once() {
    let held = gated(unmet().completed("r-uid"));
    let world = world(&met().completed("r-uid"))
        .rule(&gate("r").bootstrap_only())
        .sees(&held, at(5000))
        .now(at(5000));
    assert_eq!(writes(&world), ["+taint-added-by-r-uid"]);
}

#[test]
fn an_adopted_taint_goes_when_its_rule_leaves_the_node() {
    let removed = ["-gate:NoSchedule", "-taint-added-by-r-uid"];
    let adopted = || registered(&unmet(), &gate("r")).now(at(1)).carried_out();
    let elsewhere = || gate("r").selects("pool", "other");
    #[rustfmt::skip]
    let cases = [
        ("it selects other nodes", adopted().with_rules(&[elsewhere()])),
        ("it selects other nodes and is being deleted", adopted().with_rules(&[elsewhere().deleting()])),
        ("its finalizer was forced away", adopted().with_rules(&[]).remembering(&[gate("r")])),
    ];
    for (name, world) in cases {
        assert_eq!(writes(&world), removed, "{name}");
    }
}

#[test]
fn only_a_rule_that_may_add_its_taint_comes_to_own_it() {
    let foreign = "node.cilium.io/agent-not-ready";
    for (name, node, rule) in [
        ("remove-only", gated(unmet()), gate("r").remove_only()),
        (
            "remove-only, another project's taint",
            unmet().taint(foreign, "NoSchedule"),
            gate("r").taint(foreign, "NoSchedule").remove_only(),
        ),
        ("dry run", gated(unmet()), gate("r").dry_run()),
        (
            "no finalizer",
            gated(unmet()),
            gate("r").without_finalizer(),
        ),
    ] {
        let world = world(&node).rule(&rule);
        assert!(!world.plan().writes_node(), "{name}");
    }
    let first = gate("first").created(at(-1));
    let world = world(&gated(unmet())).with_rules(&[first, gate("r")]);
    assert_eq!(
        writes(&world),
        ["+taint-added-by-first-uid"],
        "the one that governs"
    );
}
