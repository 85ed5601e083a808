//! The labelled `DaemonSet`s that a rule does not wait for although it waits for their class: nobody else would notice,
//! so somebody is told.

use super::state::ClusterState;
use crate::condition::{is_meant_for, tolerates};
use crate::object::{Node, ObjectKey};
use crate::rule::CompiledSpec;

/// A labelled `DaemonSet` that is meant for nodes of a rule which waits for its class, and that it does not wait for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// Why not.
    pub why: WhyPassedOver,
    /// The `DaemonSet`.
    pub daemon_set: ObjectKey,
    /// Name of its class.
    pub class: String,
}

/// Why a rule does not wait for a labelled `DaemonSet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyPassedOver {
    /// It does not tolerate the rule's taint: it could never come while the taint is there.
    ShutOut,
    /// It is in a namespace that its class does not cover.
    OutsideNamespaces,
}

impl PassedOver {
    /// The `DaemonSet`s that this rule passes over, among those that are meant for one of its nodes: no other taint that
    /// stays there keeps them off. `nodes` gives all nodes of the cluster.
    #[must_use]
    pub fn by_rule<'a, Nodes: Iterator<Item = &'a Node>>(
        spec: &CompiledSpec,
        cluster: ClusterState<'_>,
        nodes: impl Fn() -> Nodes,
    ) -> Vec<Self> {
        let mut passed_over = Vec::new();
        for (index, class) in cluster.classes.iter().enumerate() {
            if !spec.waits_for_class(index) {
                continue;
            }
            for daemon_set in cluster.daemon_sets[index].values() {
                let why = if !class.labels(daemon_set) {
                    continue;
                } else if !class.namespaces.contains(&daemon_set.key.namespace) {
                    WhyPassedOver::OutsideNamespaces
                } else if !tolerates(daemon_set, &spec.taint) {
                    WhyPassedOver::ShutOut
                } else {
                    continue;
                };
                let is_wanted = |node: &Node| {
                    spec.selector.matches(&node.labels)
                        && is_meant_for(daemon_set, node, &cluster.rules.staying(node))
                };
                if nodes().any(is_wanted) {
                    passed_over.push(Self {
                        why,
                        daemon_set: daemon_set.key.clone(),
                        class: class.name.clone(),
                    });
                }
            }
        }
        passed_over.sort();
        passed_over
    }
}
