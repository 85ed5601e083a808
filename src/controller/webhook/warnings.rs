//! Warnings to the author of an accepted rule. Each says what to do, and fits the 256 characters that the API server passes on.

use super::surroundings::{ListedNodes, Surroundings};
use nodegate_core::api::{ConditionStatus, EnforcementMode};
use nodegate_core::condition::NodeLabels;
use nodegate_core::condition::{CriticalComponentClass, Source, is_under_our_domain};
use nodegate_core::finding::{Backing, Check, Finding, evicts, short_heartbeat};
use nodegate_core::object::Node;
use nodegate_core::rule::{CompiledSpec, Minimum, RequiredCondition, Rule};
use nodegate_core::text::{and_more, cut};
use nodegate_engine::foresee;

/// The longest warning that the API server passes on untruncated, in bytes.
pub(super) const LONGEST: usize = 256;

/// What an author is told where `DaemonSet`s are too many, or too large.
const CUT: &str = "not all DaemonSets were looked at: there are too many, or too much is in them; `kubectl nodegate check` looks at all";

/// All warnings. `begins`: this request makes the rule act.
pub(super) fn warnings(
    (rule, spec): (&Rule, &CompiledSpec),
    begins: bool,
    classes: &[CriticalComponentClass],
    surroundings: &Surroundings,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let nodes = surroundings.nodes.as_ref();
    let in_use = nodes.filter(|it| begins && it.selected);
    warnings.extend(in_use.and_then(|nodes| {
        let passing_taints = surroundings.rules.passing.configured.clone();
        let (limits, now) = (surroundings.limits, surroundings.now);
        let would_gate = foresee(rule, &nodes.nodes, passing_taints, limits, now)?;
        let instead = match spec.mode {
            EnforcementMode::BootstrapOnly if !surroundings.lacks_fields => {
                "nodegate.existingNodes: Leave leaves such nodes alone"
            }
            _ => "a dry run tells more",
        };
        Some(format!("{would_gate}; {instead}"))
    }));
    let heartbeat = spec.ours.heartbeat_timeout;
    let evicts = evicts(&rule.name, spec, !surroundings.lacks_fields);
    let mut found: Vec<Finding> = evicts.into_iter().collect();
    found.extend(heartbeat.and_then(|timeout| short_heartbeat(&rule.name, timeout)));
    let around = surroundings.around(spec, classes);
    found.extend(Backing::of(&rule.name, spec, &around).findings);
    found.retain(|it| it.check != Check::EMPTY_CLASS);
    warnings.extend(by_kind(&found));
    let conditions = spec.conditions.iter();
    warnings.extend(conditions.filter_map(|condition| match &condition.source {
        Source::Node if !is_under_our_domain(&condition.kind) => {
            let counts_as = condition.status_if_missing().as_str();
            unheard_of(nodes?, &condition.kind, counts_as)
        }
        Source::Resource(_) => too_few(nodes?, condition),
        _ => None,
    }));
    warnings.extend(surroundings.gap.map(str::to_owned));
    warnings.extend(surroundings.is_cut.then(|| CUT.to_owned()));
    warnings.into_iter().map(|it| cut(it, LONGEST)).collect()
}

/// A warning for each kind of finding: the first object, how many more there are, and how to fix it if there is room.
fn by_kind(found: &[Finding]) -> Vec<String> {
    let is_first = |(index, it): &(usize, &Finding)| {
        let mut earlier = found[..*index].iter();
        earlier.all(|was| was.check.id != it.check.id)
    };
    let firsts = found.iter().enumerate().filter(is_first);
    let warnings = firsts.map(|(_, first)| {
        let alike = found.iter().filter(|it| it.check.id == first.check.id);
        let short = and_more(first.message.clone(), alike.count() - 1);
        let whole = format!("{short}; {}", first.fix);
        if first.fix.is_empty() || whole.len() > LONGEST {
            short
        } else {
            whole
        }
    });
    warnings.collect()
}

/// A condition that no node has.
fn unheard_of(nodes: &ListedNodes, kind: &str, counts_as: &str) -> Option<String> {
    let mut conditions = nodes.nodes.iter().flat_map(|node| &node.conditions);
    if nodes.nodes.is_empty() || conditions.any(|it| *it.kind == *kind) {
        return None;
    }
    Some(format!(
        "{} has a condition of type '{kind}' today: it counts as '{counts_as}' until something reports it",
        none_of(nodes)
    ))
}

/// A minimum that no selected node reaches.
fn too_few(nodes: &ListedNodes, condition: &RequiredCondition) -> Option<String> {
    let minimum = condition.minimum.as_ref()?;
    let resource = condition.counted_resource()?;
    let units = |node: &Node| node.resources.units(resource);
    let known = || {
        let nodes = nodes.nodes.iter();
        nodes.filter_map(|node| Some((node, minimum.on(NodeLabels::of(node)).ok()?)))
    };
    let is_reached = known().any(|(node, minimum)| units(node) >= minimum.get());
    if is_reached || !nodes.selected || condition.required != ConditionStatus::True {
        return None;
    }
    let none = none_of(nodes);
    Some(match minimum {
        Minimum::Number(number) => {
            let most = nodes.nodes.iter().map(|node| units(node)).max();
            let most = most.unwrap_or_default();
            format!("{none} has {number} {resource} to allocate today, and the most is {most}")
        }
        Minimum::FromLabel(label) if known().next().is_none() => {
            format!("{none} has a label {label} with a number today: none meets the minimum")
        }
        Minimum::FromLabel(label) => {
            format!("{none} has as many {resource} to allocate today as its label {label} says")
        }
    })
}

/// That it is true of none of these nodes.
fn none_of(nodes: &ListedNodes) -> &'static str {
    if nodes.selected {
        "no node that the rule selects"
    } else {
        "no node"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{daemon_set, kept, node, rule};
    use nodegate_core::config::Config;

    #[test]
    fn a_taint_that_a_named_daemon_set_does_not_tolerate_is_warned_of() {
        let classes = Config::default().classes().unwrap();
        let agent = daemon_set("tools/agent").toleration("{key: readiness.k8s.io/gate}");
        let node = |name: &str| kept(node(name).taint("dedicated", "NoSchedule").build());
        let surroundings = Surroundings {
            daemon_sets: Some(vec![agent.object()]),
            nodes: Some(ListedNodes {
                nodes: vec![node("a"), node("b")],
                selected: true,
            }),
            ..Surroundings::default()
        };
        let rule = rule("r")
            .waits_for("daemonset.nodegate.dev/tools.agent")
            .build(&classes);
        let spec = rule.spec.as_ref().unwrap();
        assert_eq!(
            warnings((&rule, spec), true, &classes, &surroundings),
            [
                "up to 2 of 2 selected nodes are unmet and not held (pods and drivers are not looked at): they would be gated \
                 at once; a dry run tells more",
                "DaemonSet tools/agent does not tolerate the taint dedicated:NoSchedule: the rule holds nodes with such a taint (2 \
                 of the 2 selected) until the DaemonSet has a Ready pod there"
            ]
        );
    }
}
