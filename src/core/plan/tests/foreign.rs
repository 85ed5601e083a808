//! Other projects' startup taints, which are matched by key, whatever the effect.

use super::{gate, met};
use crate::testing::{Builder, RuleBuilder, at, rule, world};

const GARDENER: &str = "node.gardener.cloud/critical-components-not-ready";
const EFFECTS: [&str; 3] = ["NoSchedule", "NoExecute", "PreferNoSchedule"];

/// A rule that removes Gardener's taint.
fn removes(name: &str, effect: &str) -> RuleBuilder {
    gate(name).taint(GARDENER, effect).remove_only()
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
