//! The `DaemonSet`s that a rule passes over although it waits for their class, and those that it names and waits for in vain.
//! They are reported because no one would notice otherwise.

use std::iter;

use super::state::ClusterState;
use crate::condition::{Component, ComponentGroup, Source, is_meant_for, tolerates};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::rule::CompiledSpec;

/// A `DaemonSet` that is meant for nodes of a rule which waits for its class, but that the rule does not wait for; or one that
/// the rule names, and that cannot start there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// Why it does not.
    pub why: WhyPassedOver,
    /// The `DaemonSet`.
    pub daemon_set: ObjectKey,
    /// Name of its class; `None` if the rule names the `DaemonSet`.
    pub class: Option<String>,
}

/// Why a rule passes over a `DaemonSet`, or waits in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyPassedOver {
    /// It does not tolerate the rule's taint, so it could never start while the taint is there.
    ShutOut,
    /// It is in a namespace that its class does not cover.
    OutsideNamespaces,
}

impl PassedOver {
    /// These `DaemonSet`s of a rule, among those that are meant for one of its nodes: no other lasting taint keeps them off.
    /// `nodes` yields all nodes of the cluster. One that waits for all `DaemonSet`s leaves out those of no class in silence.
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
                        class: Some(class.name.clone()),
                    });
                }
            }
        }
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
                    class: None,
                });
            }
        }
        passed_over.sort();
        passed_over.dedup_by(|a, b| (a.why, &a.daemon_set) == (b.why, &b.daemon_set));
        passed_over
    }

    /// What this rule does not wait for on this node because it does not tolerate the rule's taint: of classes, and of all
    /// `DaemonSet`s.
    pub fn left_out_on(spec: &CompiledSpec, cluster: ClusterState<'_>, node: &Node) -> Vec<Self> {
        let mut left_out = Self::by_rule(spec, cluster, || iter::once(node));
        left_out.retain(|it| it.why == WhyPassedOver::ShutOut && it.class.is_some());
        let all = Component::AllDaemonSets;
        let mut sources = spec.conditions.iter().map(|it| &it.source);
        let waits = sources.any(|it| *it == Source::Component(all.clone()));
        if let Some(named) = cluster.named(&all).filter(|_| waits) {
            let staying = staying(spec, cluster, node);
            let daemon_sets = cluster.daemon_sets(named.group).values().filter(|it| {
                let counts = !it.deleting && !it.ignored && !tolerates(it, &spec.taint);
                counts && is_meant_for(it, node, &staying)
            });
            left_out.extend(daemon_sets.map(|it| Self {
                why: WhyPassedOver::ShutOut,
                daemon_set: it.key.clone(),
                class: Some("all".into()),
            }));
            left_out.sort();
            left_out.dedup_by(|a, b| a.daemon_set == b.daemon_set);
        }
        left_out
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
