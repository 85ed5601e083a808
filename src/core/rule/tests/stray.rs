//! Taints that look like a rule's and that no rule removes.

use super::gate;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, node, world};

fn why(node: &NodeBuilder, rules: &[RuleBuilder]) -> Option<String> {
    let world = world(node).with_rules(rules);
    let rules = world.cluster().rules;
    let mut stray = rules.stray(&world.node).map(|(_, why)| why.to_string());
    stray.next()
}

#[test]
fn a_taint_that_no_rule_removes_is_found_with_the_reason() {
    let tainted = |key: &str, effect: &str| node("n").taint(key, effect);
    let held = || tainted(GATE, "NoSchedule");
    let cilium = "node.cilium.io/agent-not-ready";
    let foreign = || gate("r").taint(cilium, "NoSchedule").remove_only();
    let owned = held().owned_by("r", GATE, "NoSchedule");
    #[rustfmt::skip]
    let cases = [
        ("the rule's", held(), gate("r"), None),
        ("the rule's, with another value", node("n").taint_with(GATE, "x", "NoSchedule"), gate("r"), None),
        ("of a rule that is suspended", held(), gate("r").suspended(), None),
        ("of a rule that only removes", held(), gate("r").remove_only(), None),
        ("of a rule that is going", held(), gate("r").deleting(), None),
        ("another key", tainted("readiness.k8s.io/network", "NoSchedule"), gate("r"), Some("no rule has this taint")),
        ("another effect", tainted(GATE, "NoExecute"), gate("r"), Some("rule 'r' removes the one with effect NoSchedule only")),
        ("another effect of a dry run", tainted(GATE, "NoExecute"), gate("r").dry_run(), Some("no rule has this taint")),
        ("it repels nobody", tainted(GATE, "PreferNoSchedule"), gate("r"), None),
        ("a dry run", held(), gate("r").dry_run(), Some("rule 'r' would remove it, but is a dry run")),
        ("a dry run that was none", owned.clone(), gate("r").dry_run(), Some("rule 'r' would remove it, but is a dry run")),
        ("not usable", held(), gate("r").spec("conditions: []"), Some("rule 'r' would remove it, but cannot be used")),
        ("not selected", held(), gate("r").selects("pool", "a"), Some("rule 'r' removes it, but does not select the node")),
        ("not selected any more", owned, gate("r").selects("pool", "a"), None),
        ("somebody else's", tainted("example.com/x", "NoSchedule"), gate("r"), None),
        ("a foreign one that the rule removes", tainted(cilium, "NoSchedule"), foreign(), None),
        ("a foreign one that it does not select", tainted(cilium, "NoSchedule"), foreign().selects("pool", "a"), None),
        (
            "a foreign one with another effect",
            tainted(cilium, "NoExecute"),
            foreign(),
            Some("rule 'r' removes the one with effect NoSchedule only"),
        ),
    ];
    for (what, node, rule, expected) in cases {
        assert_eq!(why(&node, &[rule]).as_deref(), expected, "{what}");
    }
}
