//! Forged annotations, above all by the node's kubelet: it may annotate its Node but not change its taints.

use proptest::prelude::*;
use proptest::sample::select;

use super::{gate, gated, gated_by, unmet, writes};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, rule, world};

const DEDICATED: &str = "dedicated";
const QUARANTINE: &str = "readiness.k8s.io/quarantine";

/// A node with an annotation that says that a rule of this name owns the taint.
fn claimed(node: NodeBuilder, rule: &str, key: &str) -> NodeBuilder {
    node.owned_by(rule, key, "NoSchedule")
}

#[test]
fn an_annotation_alone_removes_no_taint() {
    let elsewhere = || gate("r").selects("pool", "other");
    let tainted = |key: &str| unmet().taint(key, "NoSchedule");
    #[rustfmt::skip]
    let cases = [
        ("a taint outside readiness.k8s.io/", claimed(tainted(DEDICATED), "x", DEDICATED), vec![]),
        ("a taint of Kubernetes", claimed(tainted("node.kubernetes.io/unschedulable"), "x", "node.kubernetes.io/unschedulable"), vec![]),
        ("a taint outside readiness.k8s.io/, and a rule about other nodes", claimed(tainted(DEDICATED), "r", DEDICATED), vec![elsewhere()]),
        (
            "a taint outside readiness.k8s.io/, and a rule that removes it from other nodes",
            claimed(tainted("example.com/startup"), "r", "example.com/startup"),
            vec![
                elsewhere()
                    .taint("example.com/startup", "NoSchedule")
                    .remove_only(),
            ],
        ),
        ("a key that no rule ever had", claimed(tainted(QUARANTINE), "x", QUARANTINE), vec![gate("r")]),
        ("the UID of a rule about other nodes, and not its key", claimed(tainted(QUARANTINE), "r", QUARANTINE), vec![elsewhere()]),
        (
            "the UID of a rule that is being deleted, and not its key",
            claimed(tainted(QUARANTINE), "r", QUARANTINE),
            vec![elsewhere().deleting().without_finalizer()],
        ),
        ("the taint that a dry run leaves, under another UID", claimed(gated_by(unmet(), "r"), "x", GATE), vec![gate("r").dry_run()]),
        ("the taint of a rule that cannot be used, under another UID", claimed(gated_by(unmet(), "r"), "x", GATE), vec![rule("r")]),
        (
            "the taint of a rule without its finalizer, under another UID",
            claimed(gated_by(unmet(), "r"), "x", GATE),
            vec![gate("r").without_finalizer()],
        ),
    ];
    for (name, node, rules) in cases {
        let plan = world(&node).with_rules(&rules);
        let removed: Vec<_> = writes(&plan)
            .into_iter()
            .filter(|line| line.contains(':'))
            .collect();
        let gates: &[&str] = if name.starts_with("a key that") {
            &["+gate:NoSchedule"]
        } else {
            &[]
        };
        assert_eq!(removed, gates, "{name}");
    }
}

#[test]
fn a_taint_that_nodegate_added_is_removed_though_nobody_knows_its_rule_any_more() {
    let removed = ["-gate:NoSchedule", "-taint-added-by-r-uid"];
    let dated = world(&gated_by(unmet(), "r"));
    assert_eq!(
        writes(&dated),
        removed,
        "the taint says that Nodegate added it"
    );
    let adopted = world(&claimed(gated(unmet()), "r", GATE));
    assert_eq!(writes(&adopted), [""; 0], "only the annotation says so");
    let remembered = adopted.remembering(&[gate("r")]);
    assert_eq!(
        writes(&remembered),
        removed,
        "this process has seen the rule"
    );
    let another = world(&claimed(gated(unmet()), "r", GATE)).remembering(&[gate("s")]);
    assert_eq!(
        writes(&another),
        [""; 0],
        "this process has seen another rule"
    );
    let beside = world(&gated_by(unmet(), "r"))
        .rule(&gate("other").dry_run())
        .remembering(&[gate("r")]);
    assert_eq!(
        writes(&beside),
        removed,
        "a dry run of the same taint does not keep it"
    );
    let alone = world(&unmet().owned_by("r", GATE, "NoSchedule"));
    assert_eq!(
        writes(&alone),
        ["-taint-added-by-r-uid"],
        "an annotation without its taint"
    );
}

/// A rule that existed a moment ago, and the node that it changed.
fn any_world() -> impl Strategy<Value = (World, NodeBuilder, Vec<RuleBuilder>)> {
    let state = select(vec!["live", "dry", "remove-only", "unusable", "elsewhere"]);
    let taint = (select(vec![GATE, QUARANTINE, DEDICATED]), any::<bool>());
    (state, taint, any::<bool>()).prop_map(|(state, (key, dated), met)| {
        let rule = match state {
            "dry" => gate("r").dry_run(),
            "remove-only" => gate("r").remove_only(),
            "unusable" => rule("r"),
            "elsewhere" => gate("r").selects("pool", "other"),
            _ => gate("r"),
        };
        let node = if met { super::met() } else { unmet() };
        let node = if dated && key == GATE {
            gated_by(node, "r")
        } else {
            node.taint(key, "NoSchedule")
        };
        let rules = vec![rule];
        (world(&node).with_rules(&rules), node, rules)
    })
}

proptest! {
    #[test]
    fn no_annotation_alone_removes_a_taint(
        (honest, node, rules) in any_world(),
        uid in select(vec!["x", "y"]),
        key in select(vec![GATE, QUARANTINE, DEDICATED]),
        completed in any::<bool>(),
    ) {
        let mut forged = claimed(node, uid, key);
        if completed {
            forged = forged.completed("r-uid").completed("r");
        }
        let forged = world(&forged).with_rules(&rules);
        let after = |world: &World| world.carried_out().node.taints;
        let removed = |world: &World| {
            let after = after(world);
            let mut gone = world.node.taints.clone();
            gone.retain(|taint| !after.contains(taint));
            gone
        };
        prop_assert_eq!(removed(&forged), removed(&honest));
    }
}
