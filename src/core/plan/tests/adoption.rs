//! Taints that someone else added and a rule takes over.

use super::{gate, gated, unmet, writes};
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
        assert!(plan.taints.is_empty(), "{name}: not yet");
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
        assert!(
            settled.carried_out().plan().taints.is_empty(),
            "{name}: once"
        );
    }
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
