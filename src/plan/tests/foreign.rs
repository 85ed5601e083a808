//! Other projects' startup taints, which are matched by key, whatever the effect.

use super::{gate, met, unmet, writes};
use crate::plan::ChangeKind;
use crate::testing::{Builder, NodeBuilder, RuleBuilder, at, daemon_set, pod, rule, world};

const GARDENER: &str = "node.gardener.cloud/critical-components-not-ready";
const EFFECTS: [&str; 3] = ["NoSchedule", "NoExecute", "PreferNoSchedule"];

/// A rule that removes Gardener's taint.
fn removes(name: &str, effect: &str) -> RuleBuilder {
    gate(name).taint(GARDENER, effect).remove_only()
}

#[test]
fn a_startup_taint_is_held_and_removed_whatever_its_effect() {
    for effect in EFFECTS {
        let with_taint = |node: NodeBuilder| node.taint(GARDENER, effect);
        let held = world(&with_taint(unmet())).rule(&removes("r", "NoSchedule"));
        let plan = held.plan();
        assert!(!plan.writes_node(), "{effect}");
        assert!(plan.outcomes[0].tainted, "{effect}");

        let ready = world(&with_taint(met())).rule(&removes("r", "NoSchedule"));
        let removed = format!("-critical-components-not-ready:{effect}");
        assert_eq!(writes(&ready), [removed], "{effect}");
        let write = ready.write();
        let [change] = &write.changes[..] else {
            panic!("{:?}", write.changes);
        };
        assert_eq!(change.kind, ChangeKind::Removed);
        assert_eq!(change.taint.effect, effect);
    }
    let all = EFFECTS
        .iter()
        .fold(met(), |node, effect| node.taint(GARDENER, effect));
    let world = world(&all).rule(&removes("r", "NoSchedule"));
    assert_eq!(world.carried_out().node.taints, []);
    assert!(!world.carried_out().plan().writes_node());
}

#[test]
fn an_effect_that_another_rule_names_is_left_to_that_rule() {
    let node = EFFECTS
        .iter()
        .fold(met(), |node, effect| node.taint(GARDENER, effect));
    let waits = rule("s")
        .waits_for("Other")
        .taint(GARDENER, "NoExecute")
        .remove_only()
        .created(at(1));
    let both = world(&node).with_rules(&[removes("r", "NoSchedule"), waits.clone()]);
    let left = both.carried_out().node.taints;
    let effects: Vec<_> = left.iter().map(|taint| taint.effect.as_str()).collect();
    assert_eq!(effects, ["NoExecute"]);
    let elsewhere = waits.selects("pool", "other");
    let alone = world(&node).with_rules(&[removes("r", "NoSchedule"), elsewhere]);
    assert_eq!(alone.carried_out().node.taints, []);
}

#[test]
fn a_daemon_set_is_meant_for_a_node_whatever_the_effect_of_the_startup_taint() {
    let key = "example.com/starting";
    let tolerant = daemon_set("kube-system/cni")
        .critical()
        .toleration(&format!("{{key: {key}, operator: Exists}}"));
    let of_one_effect = daemon_set("kube-system/csi")
        .critical()
        .toleration(&format!(
            "{{key: {key}, operator: Exists, effect: NoSchedule}}"
        ));
    let waits = rule("r")
        .waits_for("node.gardener.cloud/CriticalComponentsReady")
        .taint(key, "NoSchedule")
        .remove_only();
    let node = unmet().taint(key, "NoExecute");
    let base = world(&node).rule(&waits);
    let why = |world: &crate::testing::World| {
        world
            .plan()
            .missing_part()
            .map(|(_, detail)| detail.to_string())
    };
    assert_eq!(
        why(&base.clone().daemon_set(&tolerant)).as_deref(),
        Some("DaemonSet kube-system/cni has no pod on this node")
    );
    // Otherwise it could not start before the taint is gone, so the taint would stay for ever.
    let released = base
        .daemon_set(&of_one_effect)
        .daemon_set(&tolerant)
        .pod(&pod("kube-system/cni-1").of(&tolerant).ready());
    assert_eq!(writes(&released), ["-starting:NoExecute"]);
}
