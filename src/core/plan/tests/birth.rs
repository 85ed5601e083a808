//! Nodes that were gated by the admission policy as they were created: with the annotation, and with a taint that has no
//! `timeAdded`.

use super::{gate, gated, unmet};
use crate::plan::Origin;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, at, world};

/// A node with what the admission policy writes on it for the rule.
fn born(is_continuous: bool) -> NodeBuilder {
    let joining = if is_continuous {
        r#","joining":true"#
    } else {
        ""
    };
    let value =
        format!(r#"{{"rule-name":"r","taint-key":"{GATE}","taint-effect":"NoSchedule"{joining}}}"#);
    gated(unmet()).annotation("nodegate.dev/taint-added-by-r-uid", &value)
}

fn joins(node: &NodeBuilder, rule: &RuleBuilder) -> World {
    world(node).rule(rule).joined(at(0))
}

#[test]
fn a_gating_at_birth_is_reported_once_and_only_if_the_node_was_seen_to_come() {
    for (name, rule, is_continuous) in [
        ("continuous", gate("r"), true),
        ("bootstrap-only", gate("r").bootstrap_only(), false),
    ] {
        let node = born(is_continuous);
        let is_news = |world: &World| world.plan().outcomes[0].origin == Some(Origin::Birth);
        let came = joins(&node, &rule);
        assert!(is_news(&came), "{name}");
        assert!(!is_news(&came.clone().evaluated(at(0))), "{name}: again");
        assert!(!is_news(&came.clone().now(at(60))), "{name}: long after");
        assert!(!is_news(&came.restarted(&node, at(1))), "{name}: restarted");
        let others = joins(&gated(unmet()), &rule);
        assert!(!is_news(&others), "{name}: registered by the kubelet");
        let added = unmet().dated_taint(GATE, "NoSchedule");
        let added = joins(&added.owned_by("r", GATE, "NoSchedule"), &rule);
        assert!(!is_news(&added), "{name}: added by the controller");
    }
}
