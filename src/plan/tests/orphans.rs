//! Taints whose rule is gone or no longer selects the node.

use super::{assert_writes, gate, gated, gated_by, met, unmet, writes};
use crate::testing::{Builder, GATE, at, daemon_set, rule, world};

const REMOVED: &[&str] = &["-gate:NoSchedule", "-taint-added-by-r-uid"];

#[test]
fn a_taint_is_removed_when_its_rule_left_the_node() {
    let elsewhere = || gate("r").selects("pool", "other");
    #[rustfmt::skip]
    let cases = [
        ("the rule is gone", gated_by(unmet(), "r"), vec![], REMOVED),
        ("the rule selects other nodes now", gated_by(unmet(), "r"), vec![elsewhere()], REMOVED),
        ("the rule selects other nodes and is being deleted", gated_by(unmet(), "r"), vec![elsewhere().deleting()], REMOVED),
        ("a dry run that selects other nodes", gated_by(unmet(), "r"), vec![elsewhere().dry_run()], REMOVED),
        ("the taint is gone already", unmet().owned_by("r", GATE, "NoSchedule"), vec![], &["-taint-added-by-r-uid"]),
        ("a taint that nobody here owns", gated(unmet()), vec![elsewhere()], &[]),
        (
            "an annotation that cannot be read says nothing",
            gated(unmet()).annotation("nodegate.dev/taint-added-by-r-uid", "r"),
            vec![],
            &[],
        ),
        (
            "another rule governs the taint: hand over",
            gated_by(unmet(), "r"),
            vec![elsewhere(), gate("other").created(at(1))],
            &["+taint-added-by-other-uid", "-taint-added-by-r-uid"],
        ),
        ("another rule governs the taint and releases it", gated_by(met(), "r"), vec![gate("other")], REMOVED),
        ("a rule that cannot act yet keeps its taint", gated_by(unmet(), "r"), vec![gate("r").without_finalizer()], &[]),
        ("a rule that cannot be used keeps its taint", gated_by(unmet(), "r"), vec![rule("r")], &[]),
        (
            "the same name with another UID is another rule",
            gated(unmet()).owned_by("older", GATE, "NoSchedule"),
            vec![gate("r")],
            &["-taint-added-by-older-uid", "+taint-added-by-r-uid"],
        ),
        ("the node is being deleted", gated_by(unmet(), "r").deleting(), vec![], &[]),
    ];
    for (name, node, rules, expected) in cases {
        assert_writes(name, &node, &rules, expected);
    }
}

#[test]
fn a_node_stays_held_until_the_next_rule_has_its_finalizer() {
    for (name, node, rules, expected) in [
        (
            "the next rule only waits for its finalizer",
            gated_by(unmet(), "r"),
            vec![gate("other").without_finalizer()],
            &[] as &[&str],
        ),
        (
            "the next rule only waits for its finalizer, and the rule is being deleted",
            gated_by(unmet(), "r"),
            vec![
                gate("r").deleting(),
                gate("other").created(at(1)).without_finalizer(),
            ],
            &[],
        ),
        (
            "an earlier rule about the same taint only waits for its finalizer",
            gated_by(met(), "r"),
            vec![gate("other").without_finalizer(), gate("r").created(at(1))],
            &[],
        ),
        (
            "a later rule about the same taint waits for its finalizer",
            gated_by(met(), "r"),
            vec![gate("r"), gate("other").created(at(1)).without_finalizer()],
            REMOVED,
        ),
        (
            "a rule about other nodes that waits for its finalizer",
            gated_by(unmet(), "r"),
            vec![gate("other").selects("pool", "other").without_finalizer()],
            REMOVED,
        ),
        (
            "a dry run that waits for its finalizer",
            gated_by(unmet(), "r"),
            vec![
                gate("r").deleting(),
                gate("other").dry_run().without_finalizer(),
            ],
            REMOVED,
        ),
    ] {
        assert_writes(name, &node, &rules, expected);
    }
}

#[test]
fn a_removed_orphan_names_the_rule_that_added_it() {
    let world = world(&gated_by(unmet(), "r"));
    let change = &world.write().changes[0];
    assert_eq!(
        (change.rule_name.as_str(), change.rule_uid.as_str()),
        ("r", "r-uid")
    );
    assert_eq!(
        change.why,
        "the rule that added it does not select this node any more, or is gone"
    );
}

#[test]
fn an_orphan_that_is_being_removed_hides_no_missing_daemon_set() {
    let old = "readiness.k8s.io/old";
    let node = gated_by(unmet(), "r")
        .dated_taint(old, "NoSchedule")
        .owned_by("old", old, "NoSchedule");
    let cni = daemon_set("kube-system/cni")
        .critical()
        .toleration(&format!("{{key: {GATE}, operator: Exists}}"));
    let gate = rule("r")
        .waits_for("node.gardener.cloud/CriticalComponentsReady")
        .bootstrap_only();
    let world = world(&node).daemon_set(&cni).rule(&gate);
    assert_eq!(
        writes(&world),
        ["-old:NoSchedule", "-taint-added-by-old-uid"]
    );
}
