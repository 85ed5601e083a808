//! Deadlocks: components that wait for themselves or each other.

use super::input::{name, rule_name};
use super::of_daemon_sets::late_label;
use crate::cli::snapshot::{Agent, Snapshot};
use crate::condition::{can_share_a_node, tolerates};
use crate::finding::{Check, Finding};
use crate::rule::{CompiledSpec, Rule};

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let rules: Vec<(&Rule, &CompiledSpec)> = snapshot.usable().collect();
    let mut found = Vec::new();
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
        let agents = snapshot.manifests.daemon_sets.iter().filter(labels_it);
        for agent in agents {
            let daemon_set = &agent.daemon_set;
            if tolerates(daemon_set, &spec.taint) || !can_share_a_node(daemon_set, &spec.selector) {
                continue;
            }
            let what = format!(
                "it gives nodes labels such as {label}, by which critical DaemonSet {} selects them, and does not tolerate \
                 the taint {}:{} of rule '{}': it cannot start on a held node, and {} never comes while the node is \
                 held",
                critical.daemon_set.key,
                spec.taint.key,
                spec.effect,
                rule.name,
                critical.daemon_set.key.name
            );
            let fix = format!(
                "spec.template.spec.tolerations: [{{key: {}, operator: Exists}}]",
                spec.taint.key
            );
            found.push(Finding::new(Check::DEADLOCK, name(agent), what, fix));
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
    let mut agents = snapshot.waited_for(own).into_iter();
    agents.find(|agent| {
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
    let (ones, twos) = (
        kept_away(snapshot, spec, others)?,
        kept_away(snapshot, others, spec)?,
    );
    let what = format!(
        "it waits for DaemonSet {}, which does not tolerate {}:{} of rule '{}'; that one waits for DaemonSet {}, which \
         does not tolerate {}:{}: on a node that both hold, neither is ever met",
        ones.daemon_set.key,
        others.taint.key,
        others.effect,
        other.name,
        twos.daemon_set.key,
        spec.taint.key,
        spec.effect
    );
    let fix = "let both DaemonSets tolerate both taints";
    Some(Finding::new(Check::DEADLOCK, rule_name(rule), what, fix))
}
