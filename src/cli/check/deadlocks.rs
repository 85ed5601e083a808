//! Deadlocks: components that wait for themselves or each other, and what they may need and no node takes.

use super::of_daemon_sets::late_label;
use crate::snapshot::{Agent, Snapshot};
use nodegate_core::condition::{can_share_a_node, tolerates};
use nodegate_core::finding::{Check, Finding};
use nodegate_core::rule::{CompiledSpec, Rule};

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let rules: Vec<(&Rule, &CompiledSpec)> = snapshot.usable().collect();
    let mut found: Vec<Finding> = snapshot.kept_out.values().cloned().collect();
    for (index, (rule, spec)) in rules.iter().enumerate() {
        found.extend(labellers(snapshot, rule, spec));
        for other in &rules[index + 1..] {
            found.extend(each_other(snapshot, (rule, spec), *other));
        }
    }
    found
}

/// Components that label nodes for critical `DaemonSet`s, but cannot start on a held node themselves.
fn labellers(snapshot: &Snapshot, rule: &Rule, spec: &CompiledSpec) -> Vec<Finding> {
    let mut found = Vec::new();
    for critical in snapshot.waited_for(spec) {
        let Some((label, _, images)) = late_label(critical) else {
            continue;
        };
        let labels_it = |agent: &&Agent| {
            let mut own = agent.images();
            own.any(|image| images.iter().any(|part| image.contains(part)))
        };
        let (waits, key, effect) = (&critical.daemon_set.key, &spec.taint.key, spec.effect);
        for agent in snapshot.manifests.daemon_sets.iter().filter(labels_it) {
            let daemon_set = &agent.daemon_set;
            if tolerates(daemon_set, &spec.taint) || !can_share_a_node(daemon_set, &spec.selector) {
                continue;
            }
            let what = format!(
                "it gives nodes labels such as {label}, by which critical DaemonSet {waits} selects them, and does not tolerate \
                 the taint {key}:{effect} of rule '{}': it cannot start on a held node, and {} never comes while the node is \
                 held",
                rule.name, waits.name
            );
            let fix = format!("spec.template.spec.tolerations: [{{key: {key}, operator: Exists}}]");
            let key = &daemon_set.key;
            found.push(Finding::of_daemon_set(Check::DEADLOCK, key, what, &fix));
        }
    }
    found
}

/// A `DaemonSet` that one rule waits for and another keeps away, and that could start without that one.
fn kept_away<'a>(
    snapshot: &'a Snapshot,
    own: &CompiledSpec,
    by: &CompiledSpec,
) -> Option<&'a Agent> {
    snapshot.waited_for(own).find(|agent| {
        let daemon_set = &agent.daemon_set;
        tolerates(daemon_set, &own.taint)
            && !tolerates(daemon_set, &by.taint)
            && can_share_a_node(daemon_set, &by.selector)
    })
}

/// Two rules that each keep out what the other waits for.
fn each_other(
    snapshot: &Snapshot,
    (rule, spec): (&Rule, &CompiledSpec),
    (other, others): (&Rule, &CompiledSpec),
) -> Option<Finding> {
    if !spec.selector.overlaps(&others.selector) {
        return None;
    }
    let one = &kept_away(snapshot, spec, others)?.daemon_set.key;
    let two = &kept_away(snapshot, others, spec)?.daemon_set.key;
    let (others_taint, its_taint, other) = (&others.taint, &spec.taint, &other.name);
    let what = format!(
        "it waits for DaemonSet {one}, which does not tolerate {others_taint} of rule '{other}'; that one waits for DaemonSet \
         {two}, which does not tolerate {its_taint}: on a node that both hold, neither is ever met"
    );
    let fix = "let both DaemonSets tolerate both taints";
    Some(Finding::of_rule(Check::DEADLOCK, &rule.name, what, fix))
}
