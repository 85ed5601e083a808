//! On which nodes a `DaemonSet`'s pods run: the `DaemonSet` controller's predicate, without the taints that will go.
//!
//! Source: `NodeShouldRunDaemonPod` of `k8s.io/kubernetes/pkg/controller/daemon`, and
//! `GetRequiredNodeAffinity` of `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.

use std::collections::BTreeMap;

use crate::api::TaintEffect;
use crate::object::{DaemonSet, Node, NodeAffinityTerm, Taint};
use crate::selector::{Operator, Requirement, Selector, overlap};

/// Taints that Kubernetes and Karpenter put on nodes temporarily, whatever their effect.
const LIFECYCLE_TAINTS: [&str; 10] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    "karpenter.sh/unregistered",
];

/// Taints that will go, so that they do not decide where a `DaemonSet` runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PassingTaints {
    /// Keys of other projects' startup taints, from the configuration. A key that ends in `*` is a prefix.
    pub configured: Vec<String>,
    /// Key and effect of the taints that rules manage; no effect means any.
    pub managed: Vec<(String, Option<TaintEffect>)>,
}

impl PassingTaints {
    pub(crate) fn contains(&self, taint: &Taint) -> bool {
        LIFECYCLE_TAINTS.contains(&taint.key.as_str())
            || self.managed.iter().any(|(key, effect)| {
                effect.map_or(taint.key == *key, |effect| taint.is(key, effect))
            })
            || self
                .configured
                .iter()
                .any(|pattern| match pattern.strip_suffix('*') {
                    Some(prefix) => taint.key.starts_with(prefix),
                    None => taint.key == *pattern,
                })
    }
}

/// Whether a node can exist that matches both the selector and the `DaemonSet`.
pub(crate) fn can_share_a_node(daemon_set: &DaemonSet, selector: &Selector) -> bool {
    let mut wanted: Vec<_> = selector.requirements().to_vec();
    wanted.extend(in_each(&daemon_set.node_selector));
    let Some(terms) = &daemon_set.node_affinity else {
        return overlap(&wanted, &[]);
    };
    terms.iter().any(|term| match term {
        NodeAffinityTerm::Nothing => false,
        NodeAffinityTerm::All { labels, .. } => overlap(&wanted, labels),
    })
}

fn in_each(labels: &BTreeMap<String, String>) -> impl Iterator<Item = Requirement> {
    labels.iter().map(|(key, value)| Requirement {
        key: key.clone(),
        operator: Operator::In([value.clone()].into()),
    })
}

/// Whether the `DaemonSet`'s pods tolerate the taint, or the taint does not repel them.
pub(crate) fn tolerates(daemon_set: &DaemonSet, taint: &Taint) -> bool {
    !taint.repels_daemon_pods()
        || daemon_set
            .tolerations
            .iter()
            .any(|toleration| toleration.tolerates(taint))
}

/// Whether the `DaemonSet` runs a pod on the node once only the `staying` taints are left.
pub(crate) fn is_meant_for(daemon_set: &DaemonSet, node: &Node, staying: &[&Taint]) -> bool {
    (daemon_set.node_name.is_empty() || *daemon_set.node_name == *node.name)
        && daemon_set
            .node_selector
            .iter()
            .all(|(key, value)| node.labels.get(key) == Some(value))
        && daemon_set
            .node_affinity
            .as_ref()
            .is_none_or(|terms| terms.iter().any(|term| matches_term(term, node)))
        && staying.iter().all(|taint| tolerates(daemon_set, taint))
}

fn matches_term(term: &NodeAffinityTerm, node: &Node) -> bool {
    match term {
        NodeAffinityTerm::Nothing => false,
        NodeAffinityTerm::All { labels, names } => {
            labels
                .iter()
                .all(|requirement| requirement.matches(&node.labels))
                && names
                    .iter()
                    .all(|(name, must_be)| (**name == *node.name) == *must_be)
        }
    }
}
