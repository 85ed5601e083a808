//! Faults of the `DaemonSet`s that nodes wait for.

use super::finding::{Check, Finding};
use super::input::{CheckInput, name};
use crate::cli::snapshot::Agent;
use crate::condition::{can_share_a_node, tolerates};
use crate::documentation;
use crate::object::NodeAffinityTerm;
use crate::selector::Operator;
use crate::webhook::Advice;

/// Prefixes of labels that neither the kubelet nor the node's provisioner sets.
const LATE: [(&str, &str); 4] = [
    ("feature.node.kubernetes.io/", "Node Feature Discovery"),
    ("nvidia.com/", "the GPU Operator"),
    ("amd.com/", "AMD's GPU Operator"),
    (
        "intel.feature.node.kubernetes.io/",
        "Intel's device plugins",
    ),
];

pub(super) fn findings(input: &CheckInput<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for agent in &input.inventory.daemon_sets {
        found.extend(labels(input, agent));
    }
    for (_, spec) in input.usable() {
        for agent in input.waited_for(spec) {
            let daemon_set = &agent.daemon_set;
            if !tolerates(daemon_set, &spec.taint) {
                let advice = Advice::ShutOut {
                    daemon_set: &daemon_set.key,
                    more: 0,
                    is_named: spec.daemon_sets().any(|key| *key == daemon_set.key),
                    key: &spec.taint.key,
                    effect: spec.effect,
                };
                let fix = format!(
                    "spec.template.spec.tolerations: [{{key: {}, operator: Exists}}]",
                    spec.taint.key
                );
                let what = advice.to_string();
                found.push(Finding::new(Check::SHUT_OUT, name(agent), what, fix));
            }
            found.extend(late(agent));
        }
    }
    found
}

/// Labels that do not have the intended effect.
fn labels(input: &CheckInput<'_>, agent: &Agent) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, class) in input.inventory.classes.iter().enumerate() {
        let daemon_set = &agent.daemon_set;
        let on_itself = class.selector.matches(&agent.labels);
        let on_template = class.selector.matches(&daemon_set.template_labels);
        if on_itself != on_template {
            let (there, missing) = if on_itself {
                (
                    "its metadata",
                    "its pod template (spec.template.metadata.labels)",
                )
            } else {
                ("its pod template", "its metadata (metadata.labels)")
            };
            let what = format!(
                "the label of class '{}' ({}) is on {there} and not on {missing}: it is not waited for",
                class.name, class.selector
            );
            let fix = format!("add it to {missing} too, or remove it");
            found.push(Finding::new(
                Check::LABEL_ON_ONE_PLACE,
                name(agent),
                what,
                fix,
            ));
        }
        let mut rules = input.usable();
        let is_wanted = rules.any(|(_, spec)| {
            spec.waits_for_class(index) && can_share_a_node(daemon_set, &spec.selector)
        });
        if is_wanted && on_itself && class.labels(daemon_set) && !class.has(daemon_set) {
            let advice = Advice::OutsideNamespaces {
                daemon_set: &daemon_set.key,
                more: 0,
                class: &class.name,
            };
            let page = documentation::page("conditions.md#configuration-file");
            let fix = format!("name the namespace in the class: {page}");
            let what = advice.to_string();
            found.push(Finding::new(
                Check::OUTSIDE_NAMESPACES,
                name(agent),
                what,
                fix,
            ));
        }
    }
    found
}

/// The first late label by which a `DaemonSet` selects its nodes, and the component that sets it.
pub(super) fn late_label(agent: &Agent) -> Option<(&str, &'static str)> {
    let daemon_set = &agent.daemon_set;
    let terms = daemon_set.node_affinity.iter().flatten();
    let in_terms = terms.flat_map(|term| match term {
        NodeAffinityTerm::Nothing => &[][..],
        NodeAffinityTerm::All { labels, .. } => labels,
    });
    let in_terms =
        in_terms.filter(|it| !matches!(it.operator, Operator::NotIn(_) | Operator::DoesNotExist));
    let in_terms = in_terms.map(|requirement| requirement.key.as_str());
    let mut keys = daemon_set
        .node_selector
        .keys()
        .map(String::as_str)
        .chain(in_terms);
    keys.find_map(|key| {
        let mut late = LATE.iter();
        let (_, who) = late.find(|(prefix, _)| key.starts_with(prefix))?;
        Some((key, *who))
    })
}

/// A critical `DaemonSet` that does not match a new node until another component labels it.
fn late(agent: &Agent) -> Option<Finding> {
    let (label, who) = late_label(agent)?;
    let what = format!(
        "it selects nodes by {label}, which {who} sets after they join: until then it is not meant for the node, is not waited for, \
                 and the node may open without it"
    );
    let fix = "select nodes by a label that they join with (of the node group or NodePool), or wait for what it provides, \
                 such as resource.nodegate.dev/<resource>";
    Some(Finding::new(Check::LATE_LABEL, name(agent), what, fix))
}
