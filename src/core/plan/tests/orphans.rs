//! Taints whose rule is gone or no longer selects the node.

use super::{assert_writes, gate, gated_by, met, unmet};
use crate::testing::{Builder, at, world};

const REMOVED: &[&str] = &["-gate:NoSchedule", "-taint-added-by-r-uid"];

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
            "the same, and the node is not held: the later rule gates it",
            unmet(),
            vec![gate("other").without_finalizer(), gate("r").created(at(1))],
            &["+gate:NoSchedule", "+taint-added-by-r-uid"],
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
    for (rules, why) in [
        (
            vec![],
            "the rule that added it does not select this node any more, or is gone",
        ),
        (vec![gate("r").deleting()], "the rule is being deleted"),
    ] {
        let world = world(&gated_by(unmet(), "r")).with_rules(&rules);
        let change = &world.write().changes[0];
        assert_eq!(
            (change.rule_name.as_str(), change.rule_uid.as_str()),
            ("r", "r-uid")
        );
        assert_eq!(change.why, why);
    }
}
