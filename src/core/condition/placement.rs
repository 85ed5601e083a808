//! On which nodes a `DaemonSet`'s pods run: the `DaemonSet` controller's predicate, without the taints that will go.
//!
//! Source: `NodeShouldRunDaemonPod` of `k8s.io/kubernetes/pkg/controller/daemon`, and
//! `GetRequiredNodeAffinity` of `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.

use super::labels::NodeLabels;
use crate::api::TaintEffect;
use crate::object::{DaemonSet, Node, Taint};
use crate::selector::{Requirement, Selector, overlap};

/// Taints that Kubernetes puts on nodes temporarily, whatever their effect.
const LIFECYCLE_TAINTS: [&str; 9] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
];

/// Taints under this prefix say what a node is: a `DaemonSet` that does not tolerate one is not meant for the node.
const ROLE_TAINTS: &str = "node-role.kubernetes.io/";

/// Taints that will go, so that they do not decide where a `DaemonSet` runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PassingTaints {
    /// Keys of other controllers' temporary taints, from the configuration. A `*` at either end stands for the rest of a key.
    pub configured: Vec<String>,
    /// Key and effect of the taints that rules manage; no effect means any.
    pub managed: Vec<(String, Option<TaintEffect>)>,
}

impl PassingTaints {
    pub fn contains(&self, taint: &Taint) -> bool {
        let key = taint.key.as_str();
        let fits = |pattern: &String| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => key.ends_with(end),
            (None, Some(start)) => key.starts_with(start),
            (None, None) => key == pattern,
        };
        let is_managed = |(managed, effect): &(String, Option<TaintEffect>)| {
            effect.map_or(key == managed, |effect| taint.is(managed, effect))
        };
        LIFECYCLE_TAINTS.contains(&key)
            || self.managed.iter().any(is_managed)
            || self.configured.iter().any(fits)
    }
}

/// Whether a node can exist that matches both the selector and the `DaemonSet`.
pub fn can_share_a_node(daemon_set: &DaemonSet, selector: &Selector) -> bool {
    let mut wanted: Vec<_> = selector.requirements().to_vec();
    let own = daemon_set.node_selector.iter();
    wanted.extend(own.map(|(key, value)| Requirement::of(key, value)));
    match &daemon_set.node_affinity {
        None => overlap(&wanted, &[]),
        Some(terms) => terms.iter().any(|term| overlap(&wanted, &term.labels)),
    }
}

/// Whether the `DaemonSet`'s pods tolerate the taint, or the taint does not repel them.
pub fn tolerates(daemon_set: &DaemonSet, taint: &Taint) -> bool {
    let mut tolerations = daemon_set.tolerations.iter();
    !taint.repels_daemon_pods() || tolerations.any(|it| taint.is_tolerated_by(it))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement<'a> {
    /// It has a live pod there, or gets one once only the taints that stay are left.
    Meant,
    /// It does not by what the node is: its name, its labels, or a taint for a role.
    NotMeant,
    /// Only this taint, which stays, keeps it away.
    KeptAway(&'a Taint),
}

/// Whether the `DaemonSet`, which selects the node or not, runs on it with these taints. A live pod there outweighs both.
pub fn placement<'a>(
    daemon_set: &DaemonSet,
    is_selected: bool,
    staying: &[&'a Taint],
    is_pod: impl FnOnce() -> bool,
) -> Placement<'a> {
    let mut repelling = staying.iter().filter(|taint| !tolerates(daemon_set, taint));
    match repelling.clone().next().filter(|_| is_selected) {
        None if is_selected => Placement::Meant,
        _ if is_pod() => Placement::Meant,
        None => Placement::NotMeant,
        Some(_) if repelling.any(|taint| taint.key.starts_with(ROLE_TAINTS)) => Placement::NotMeant,
        Some(taint) => Placement::KeptAway(taint),
    }
}

/// Whether the node is one of the `DaemonSet`'s by name and labels, whatever its taints.
pub fn selects(daemon_set: &DaemonSet, node: &Node) -> bool {
    NodeLabels::of(node).selected_by(daemon_set)
}
