//! Tables of named cases for the plans of nodes, and laws that every plan keeps.

mod absences;
mod adoption;
mod birth;
mod bootstrap;
mod deadlines;
mod evaluation;
mod foreign;
mod forgery;
mod joining;
mod laws;
mod left_behind;
mod maintenance;
mod orphans;
mod plan;
mod publishing;
mod revisions;
mod several;
mod stale;
mod suspended;
mod taint_plans;
mod time;
mod to_be_seen;

use crate::object::Taint;
use crate::testing::{GATE, NodeBuilder, RuleBuilder, World, node, rule, world};

/// The condition that rules in these tests wait for by default.
const NETWORK: &str = "NetworkReady";

/// A node that does not report the condition.
fn unmet() -> NodeBuilder {
    node("worker-1")
}

/// A node that reports the condition as `True`.
fn met() -> NodeBuilder {
    unmet().condition(NETWORK, "True")
}

/// A node with the gate's taint.
fn gated(node: NodeBuilder) -> NodeBuilder {
    node.taint(GATE, "NoSchedule")
}

/// A node with the gate's taint, which the rule of this name added.
fn gated_by(node: NodeBuilder, rule: &str) -> NodeBuilder {
    node.dated_taint(GATE, "NoSchedule")
        .owned_by(rule, GATE, "NoSchedule")
}

/// A rule that waits for the condition.
fn gate(name: &str) -> RuleBuilder {
    rule(name).waits_for(NETWORK)
}

/// What the plan writes to the node: `+` for added or changed, `-` for removed.
fn writes(world: &World) -> Vec<String> {
    let before = &world.node.taints;
    let after = world.new_taints().unwrap_or_else(|| before.clone());
    let short = |key: &str| {
        key.rsplit('/')
            .next()
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let missing = |from: &[Taint], other: &[Taint], sign: char| {
        from.iter()
            .filter(|taint| !other.contains(taint))
            .map(|taint| format!("{sign}{}:{}", short(&taint.key), taint.effect))
            .collect::<Vec<_>>()
    };
    let mut lines = missing(&after, before, '+');
    lines.extend(missing(before, &after, '-'));
    lines.extend(world.write().annotations.iter().map(|(key, value)| {
        let sign = if value.is_some() { '+' } else { '-' };
        format!("{sign}{}", short(key))
    }));
    lines
}

fn assert_writes(name: &str, node: &NodeBuilder, rules: &[RuleBuilder], expected: &[&str]) {
    let world = world(node).with_rules(rules);
    assert_eq!(writes(&world), expected, "{name}");
    assert_eq!(
        !world.plan().taints.is_empty(),
        !expected.is_empty(),
        "{name}: writes"
    );
}
