//! Counts the nodes that a rule would taint as soon as it is accepted, judged by the nodes' own conditions.

use crate::api::{ConditionPolicy, ConditionStatus, EnforcementMode, TaintPolicy};
use crate::condition::Source;
use crate::object::Node;
use crate::repair::has_been_released;
use crate::rule::{CompiledSpec, RequiredCondition, Rule, WouldGate};

/// Counts how many of these nodes, all matched by the rule, it would taint at once. `None` if it would taint none, or if that
/// is unknown.
pub(super) fn would_gate<'a>(
    rule: &Rule,
    spec: &'a CompiledSpec,
    nodes: &[Node],
) -> Option<WouldGate<'a>> {
    let (from_nodes, others): (Vec<_>, Vec<_>) = spec
        .conditions
        .iter()
        .partition(|it| it.source == Source::Node);
    let acts =
        !spec.dry_run && !rule.suspended && spec.ours.taint_policy == TaintPolicy::AddAndRemove;
    let waits = spec.ours.grace_period.is_some() || spec.ours.disruption.is_some();
    // With `AnyOf`, a condition that is unknown here may be the one that is met.
    let is_open_question = spec.policy == ConditionPolicy::AnyOf && !others.is_empty();
    if !acts || waits || is_open_question || from_nodes.is_empty() {
        return None;
    }
    let mut would_gate = WouldGate::of(nodes.len());
    would_gate.at_least = !others.is_empty();
    for node in nodes {
        let is_done = spec.mode == EnforcementMode::BootstrapOnly && has_been_released(node, rule);
        let is_held = node.taint(&spec.taint.key, spec.effect).is_some();
        let mut statuses = from_nodes.iter().map(|it| is_met(it, node));
        let met = match spec.policy {
            ConditionPolicy::AllOf => statuses.all(|met| met),
            ConditionPolicy::AnyOf => statuses.any(|met| met),
        };
        if met || is_held || is_done || node.deleting {
            continue;
        }
        let is_missing = |it: &&&RequiredCondition| status(it, node).is_none() && !is_met(it, node);
        let missing = from_nodes.iter().filter(is_missing);
        would_gate.add(missing.map(|it| &*it.kind));
    }
    (would_gate.gated > 0).then_some(would_gate)
}

fn is_met(requirement: &RequiredCondition, node: &Node) -> bool {
    let status = status(requirement, node).unwrap_or(requirement.status_if_missing());
    status == requirement.required
}

fn status(requirement: &RequiredCondition, node: &Node) -> Option<ConditionStatus> {
    let mut conditions = node.conditions.iter();
    let reported = conditions.find(|it| *it.kind == *requirement.kind);
    reported.map(|it| requirement.status_of(it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, at, node, rule};

    fn count(rule: &RuleBuilder, nodes: &[NodeBuilder]) -> Option<String> {
        let rule = rule.build(&Config::default().classes().unwrap());
        let nodes: Vec<_> = nodes.iter().map(NodeBuilder::build).collect();
        let would_gate = would_gate(&rule, rule.spec.as_ref().unwrap(), &nodes)?;
        let text = would_gate.to_string();
        Some(text.split(" selected").next().unwrap().to_owned())
    }

    #[test]
    fn nodes_that_are_not_held_and_do_not_meet_the_conditions_are_counted() {
        let gate = || rule("r").created(at(100)).bootstrap_only().waits_for("Net");
        let nodes = [
            node("met").condition("Net", "True"),
            node("unmet").condition("Net", "False"),
            node("silent"),
            node("held").taint(GATE, "NoSchedule"),
            node("done").completed("r-uid"),
            node("going").deleting(),
            node("new").created(at(100)),
        ];
        for (name, rule, expected) in [
            ("bootstrap-only", gate(), Some("3 of 7")),
            (
                "continuous",
                gate().spec("enforcementMode: continuous"),
                Some("4 of 7"),
            ),
            (
                "leaves those that are older",
                gate().nodegate("existingNodes: Leave"),
                Some("1 of 7"),
            ),
            (
                "with another reason",
                gate().spec("conditions: [{type: Net, requiredStatus: 'True', nodegate: {reasons: [Done]}}]"),
                Some("4 of 7"),
            ),
            (
                "with components",
                gate().waits_for("node.gardener.cloud/CriticalPodsReady"),
                Some("at least 3 of 7"),
            ),
            (
                "of components alone",
                rule("r").waits_for("node.gardener.cloud/CriticalPodsReady"),
                None,
            ),
            ("a dry run", gate().dry_run(), None),
            ("suspended", gate().nodegate("suspend: true"), None),
            ("remove-only", gate().remove_only(), None),
            (
                "with a grace period",
                rule("r").waits_for("Net").nodegate("gracePeriod: 1m"),
                None,
            ),
            (
                "with a limit",
                rule("r").waits_for("Net").nodegate("disruption: {}"),
                None,
            ),
            (
                "any of them",
                rule("r")
                    .waits_for("Net")
                    .waits_for("Other")
                    .spec("conditionPolicy: anyOf"),
                Some("4 of 7"),
            ),
            (
                "any of them, not all seen",
                rule("r")
                    .waits_for("Net")
                    .waits_for("csidriver.nodegate.dev/a")
                    .spec("conditionPolicy: anyOf"),
                None,
            ),
        ] {
            assert_eq!(count(&rule, &nodes).as_deref(), expected, "{name}");
        }
        assert_eq!(count(&gate(), &nodes[..1]), None, "nobody");
    }
}
