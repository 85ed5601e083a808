//! Deadlocks: components that wait for themselves or each other.

use super::fault::{Fault, FaultKind};
use super::input::{LintInput, name, rule_name};
use super::of_daemon_sets::late_label;
use crate::cli::snapshot::Agent;
use crate::condition::{can_share_a_node, tolerates};
use crate::rule::{CompiledSpec, Rule};

/// Components that label nodes: a part of the image's name, and the prefix of the labels.
const LABELLERS: [(&str, &str); 4] = [
    ("node-feature-discovery", "feature.node.kubernetes.io/"),
    ("node-feature-discovery", "nvidia.com/"),
    ("gpu-feature-discovery", "nvidia.com/"),
    ("node-labeller", "amd.com/"),
];

pub(super) fn faults(field: &LintInput<'_>) -> Vec<Fault> {
    let rules: Vec<(&Rule, &CompiledSpec)> = field.usable().collect();
    let mut faults = Vec::new();
    for (index, (rule, spec)) in rules.iter().enumerate() {
        faults.extend(labellers(field, rule, spec));
        for other in &rules[index + 1..] {
            faults.extend(each_other(field, (rule, spec), *other));
        }
    }
    faults
}

/// Components that label nodes for critical `DaemonSet`s, but cannot start on a closed node themselves.
fn labellers(field: &LintInput<'_>, rule: &Rule, spec: &CompiledSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    for critical in field.waited_for(spec) {
        let Some((label, _)) = late_label(critical) else {
            continue;
        };
        let labels_it = |agent: &&Agent| {
            agent.containers.iter().any(|container| {
                let of = |(image, prefix): &(&str, &str)| {
                    container.image.contains(image) && label.starts_with(prefix)
                };
                LABELLERS.iter().any(of)
            })
        };
        let agents = field.inventory.daemon_sets.iter().filter(labels_it);
        for agent in agents {
            let daemon_set = &agent.daemon_set;
            if tolerates(daemon_set, &spec.taint) || !can_share_a_node(daemon_set, &spec.selector) {
                continue;
            }
            let what = format!(
                "it gives nodes labels such as {label}, by which critical DaemonSet {} selects them, and does not tolerate \
                 the taint {}:{} of rule '{}': it cannot start on a closed node, and {} never comes while the node is \
                 closed",
                critical.daemon_set.key,
                spec.taint.key,
                spec.effect,
                rule.name,
                critical.daemon_set.key.name
            );
            let way_out = format!(
                "spec.template.spec.tolerations: [{{key: {}, operator: Exists}}]",
                spec.taint.key
            );
            faults.push(Fault::new(FaultKind::DEADLOCK, name(agent), what, way_out));
        }
    }
    faults
}

/// Two rules that each keep out what the other waits for.
fn each_other(
    field: &LintInput<'_>,
    (rule, spec): (&Rule, &CompiledSpec),
    (other, others): (&Rule, &CompiledSpec),
) -> Option<Fault> {
    if !spec.selector.overlaps(&others.selector) {
        return None;
    }
    // Only `DaemonSet`s that could start without the other rule.
    let kept_away = |own: &CompiledSpec, by: &CompiledSpec| {
        let mut agents = field.waited_for(own).into_iter();
        agents.find(|agent| {
            let daemon_set = &agent.daemon_set;
            tolerates(daemon_set, &own.taint)
                && !tolerates(daemon_set, &by.taint)
                && can_share_a_node(daemon_set, &by.selector)
        })
    };
    let (ones, twos) = (kept_away(spec, others)?, kept_away(others, spec)?);
    let what = format!(
        "it waits for DaemonSet {}, which does not tolerate {}:{} of rule '{}'; that one waits for DaemonSet {}, which \
         does not tolerate {}:{}: on a node that both close, neither is ever met",
        ones.daemon_set.key,
        others.taint.key,
        others.effect,
        other.name,
        twos.daemon_set.key,
        spec.taint.key,
        spec.effect
    );
    let way_out = "let both DaemonSets tolerate both taints";
    Some(Fault::new(
        FaultKind::DEADLOCK,
        rule_name(rule),
        what,
        way_out,
    ))
}
