//! Faults of the `DaemonSet`s that nodes wait for.

use crate::snapshot::{Agent, Snapshot};
use nodegate_core::finding::{Check, Finding};
use nodegate_core::selector::{Operator, Requirement};

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let labels = snapshot.manifests.daemon_sets.iter();
    let labels = labels.flat_map(|agent| labels_apart(snapshot, agent));
    let usable = snapshot.usable();
    let waited_for = usable.flat_map(|(_, spec)| snapshot.waited_for(spec));
    labels.chain(waited_for.filter_map(late)).collect()
}

/// Labels of a class that are on one of a `DaemonSet` and its pod template only.
fn labels_apart(snapshot: &Snapshot, agent: &Agent) -> Vec<Finding> {
    let mut found = Vec::new();
    for class in snapshot.view.cluster().classes {
        let on_itself = class.selector.matches(&agent.labels);
        let on_template = class.selector.matches(&agent.daemon_set.template_labels);
        let (there, missing) = match (on_itself, on_template) {
            (true, false) => (
                "its metadata",
                "its pod template (spec.template.metadata.labels)",
            ),
            (false, true) => ("its pod template", "its metadata (metadata.labels)"),
            _ => continue,
        };
        let what = format!(
            "the label of class '{}' ({}) is on {there} and not on {missing}: it is not waited for",
            class.name, class.selector
        );
        let fix = format!("add it to {missing} too, or remove it");
        let (check, key) = (Check::LABEL_ON_ONE_PLACE, &agent.daemon_set.key);
        found.push(Finding::of_daemon_set(check, key, what, &fix));
    }
    found
}

/// The first late label by which a `DaemonSet` selects its nodes, who sets it, and parts of their images' names.
pub(super) fn late_label(agent: &Agent) -> Option<(&str, &'static str, &'static [&'static str])> {
    let daemon_set = &agent.daemon_set;
    let terms = daemon_set.node_affinity.iter().flatten();
    let labels = terms.flat_map(|term| &term.labels);
    let in_terms = labels.filter(|it| needs_label(it));
    let in_terms = in_terms.map(|requirement| requirement.key.as_str());
    let selected = daemon_set.node_selector.keys().map(String::as_str);
    selected.chain(in_terms).find_map(|key| {
        let (who, images) = labeller(key)?;
        Some((key, who, images))
    })
}

/// The component that gives nodes such a label after they have joined, and parts of its images' names.
fn labeller(label: &str) -> Option<(&'static str, &'static [&'static str])> {
    let (prefix, _) = label.split_once('/')?;
    Some(match prefix {
        "feature.node.kubernetes.io" => ("Node Feature Discovery", &["node-feature-discovery"]),
        "nvidia.com" => (
            "the GPU Operator",
            &["node-feature-discovery", "gpu-feature-discovery"],
        ),
        "amd.com" => ("AMD's GPU Operator", &["node-labeller"]),
        "kmm.node.kubernetes.io" => ("Kernel Module Management", &[]),
        "intel.feature.node.kubernetes.io" => ("Intel's device plugins", &[]),
        _ => return None,
    })
}

/// Whether a requirement is met only by nodes that have its label.
pub(super) fn needs_label(requirement: &Requirement) -> bool {
    let operator = &requirement.operator;
    !matches!(operator, Operator::NotIn(_) | Operator::DoesNotExist)
}

/// A critical `DaemonSet` that does not match a new node until another component labels it.
fn late(agent: &Agent) -> Option<Finding> {
    let (label, who, _) = late_label(agent)?;
    let what = format!(
        "it selects nodes by {label}, which {who} sets after they join: until then it is not meant for the node, is not waited for, \
                 and the node may be released without it"
    );
    let fix = "select nodes by a label that they join with (of the node group or NodePool), or wait for what it provides, \
                 such as resource.nodegate.dev/<resource>";
    let key = &agent.daemon_set.key;
    Some(Finding::of_daemon_set(Check::LATE_LABEL, key, what, fix))
}
