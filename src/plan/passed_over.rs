//! The `DaemonSet`s that a rule passes over although it waits for their class, or for them by name. They are reported because
//! no one would notice otherwise.

use super::state::ClusterState;
use crate::condition::{Component, ComponentGroup};
use crate::condition::{is_meant_for, tolerates};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::rule::CompiledSpec;

/// A `DaemonSet` that runs on nodes of a rule which waits for its class, or for it by name, but that the rule does not wait
/// for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// Why it does not.
    pub why: WhyPassedOver,
    /// The `DaemonSet`.
    pub daemon_set: ObjectKey,
    /// Name of its class; empty if the rule names the `DaemonSet`.
    pub class: String,
}

/// Why a rule passes over a `DaemonSet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyPassedOver {
    /// It does not tolerate the rule's taint, so it could never start while the taint is there.
    ShutOut,
    /// It is in a namespace that its class does not cover.
    OutsideNamespaces,
}

impl PassedOver {
    /// The `DaemonSet`s that this rule passes over, among those that run on one of its nodes: no other lasting taint keeps them
    /// off. `nodes` yields all nodes of the cluster.
    #[must_use]
    pub fn by_rule<'a, Nodes: Iterator<Item = &'a Node>>(
        spec: &CompiledSpec,
        cluster: ClusterState<'_>,
        nodes: impl Fn() -> Nodes,
    ) -> Vec<Self> {
        let mut passed_over = Vec::new();
        let is_wanted = |daemon_set: &DaemonSet| {
            nodes().any(|node| {
                spec.selector.matches(&node.labels)
                    && is_meant_for(daemon_set, node, &staying(spec, cluster, node))
            })
        };
        for (index, class) in cluster.classes.iter().enumerate() {
            if !spec.waits_for_class(index) {
                continue;
            }
            for daemon_set in cluster.daemon_sets(ComponentGroup::Class(index)).values() {
                let why = if !class.labels(daemon_set) {
                    continue;
                } else if !class.namespaces.contains(&daemon_set.key.namespace) {
                    WhyPassedOver::OutsideNamespaces
                } else if !tolerates(daemon_set, &spec.taint) {
                    WhyPassedOver::ShutOut
                } else {
                    continue;
                };
                if is_wanted(daemon_set) {
                    passed_over.push(Self {
                        why,
                        daemon_set: daemon_set.key.clone(),
                        class: class.name.clone(),
                    });
                }
            }
        }
        // Who waits for all DaemonSets names none.
        for key in spec.daemon_sets() {
            let named = cluster.named(&Component::DaemonSet(key.clone()));
            let there = named.and_then(|it| cluster.daemon_sets(it.group).get(key));
            if let Some(daemon_set) = there.filter(|it| !it.deleting)
                && !tolerates(daemon_set, &spec.taint)
                && is_wanted(daemon_set)
            {
                passed_over.push(Self {
                    why: WhyPassedOver::ShutOut,
                    daemon_set: key.clone(),
                    class: String::new(),
                });
            }
        }
        passed_over.sort();
        passed_over.dedup_by(|a, b| (a.why, &a.daemon_set) == (b.why, &b.daemon_set));
        passed_over
    }
}

/// The node's taints that will not go once the rule is in force.
pub(super) fn staying<'a>(
    spec: &CompiledSpec,
    cluster: ClusterState<'_>,
    node: &'a Node,
) -> Vec<&'a Taint> {
    let mut staying = cluster.rules.staying(node);
    staying.retain(|taint| !taint.is(&spec.taint.key, spec.effect));
    staying
}
