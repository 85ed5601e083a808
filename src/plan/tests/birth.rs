//! Nodes that were gated by the admission policy as they were created: with the annotation, and with a taint that has no
//! `timeAdded`.

use super::{gate, gated, met, unmet, writes};
use crate::plan::Origin;
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, at, world};

/// What the admission policy writes on a node for the rule.
fn born(node: NodeBuilder, rule: &str, is_continuous: bool) -> NodeBuilder {
    let joining = if is_continuous {
        r#","joining":true"#
    } else {
        ""
    };
    let value = format!(
        r#"{{"rule-name":"{rule}","taint-key":"{GATE}","taint-effect":"NoSchedule"{joining}}}"#
    );
    gated(node).annotation(&format!("nodegate.dev/taint-added-by-{rule}-uid"), &value)
}

fn rules() -> [(&'static str, RuleBuilder, bool); 2] {
    [
        ("continuous", gate("r"), true),
        ("bootstrap-only", gate("r").bootstrap_only(), false),
    ]
}

fn joins(node: &NodeBuilder, rule: &RuleBuilder) -> World {
    world(node).rule(rule).joined(at(0))
}

#[test]
fn a_node_that_is_gated_at_birth_is_owned_and_not_written_until_it_is_released() {
    for (name, rule, is_continuous) in rules() {
        let waiting = joins(&born(unmet(), "r", is_continuous), &rule);
        for after in [0, 2, 100] {
            let world = waiting.clone().now(at(after));
            let plan = world.plan();
            assert!(!plan.writes_node(), "{name}, after {after} s: {plan:?}");
            assert!(!plan.outcomes[0].adopts(), "{name}: nobody else's taint");
            assert_eq!(plan.outcomes[0].joining(), is_continuous, "{name}");
        }
        let ready = waiting
            .sees(&born(met(), "r", is_continuous), at(3))
            .now(at(3));
        let mut removed = vec!["-gate:NoSchedule", "-taint-added-by-r-uid"];
        if !is_continuous {
            removed.push("+bootstrap-completed-r-uid");
        }
        assert_eq!(writes(&ready), removed, "{name}");
    }
}

#[test]
fn a_gating_at_birth_is_reported_once_and_only_if_the_node_was_seen_to_come() {
    for (name, rule, is_continuous) in rules() {
        let node = born(unmet(), "r", is_continuous);
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

#[test]
fn a_node_that_another_rule_gated_at_birth_belongs_to_the_one_that_governs() {
    let world = world(&born(unmet(), "later", true))
        .rule(&gate("r"))
        .rule(&gate("later").created(at(10)))
        .joined(at(20));
    assert_eq!(
        writes(&world),
        ["-taint-added-by-later-uid", "+taint-added-by-r-uid"]
    );
}

#[test]
fn a_node_that_is_gated_at_birth_and_leaves_the_rule_is_released() {
    let relabelled = born(unmet(), "r", true).label("kubernetes.io/os", "windows");
    let world = joins(&relabelled, &gate("r"));
    assert_eq!(
        writes(&world),
        ["-gate:NoSchedule", "-taint-added-by-r-uid"]
    );
}
