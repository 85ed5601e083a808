//! What stands behind a rule's conditions in the cluster, whether or not the rule has a node to gate today: what a node that
//! joins now would wait for in vain, and what it would not wait for.

use std::iter;
use std::sync::Arc;

use super::state::ClusterState;
use crate::api::ConditionStatus;
use crate::condition::{
    Component, ComponentGroup, CriticalComponentClass, Source, is_meant_for, is_under_our_domain,
    tolerates,
};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::rule::{CompiledSpec, RequiredCondition};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backing {
    /// The conditions that are met on no node, whatever the node does, with the reason.
    pub unmade: Vec<Unmade>,
    /// The classes that the rule waits for and that have no `DaemonSet`, by name.
    pub empty_classes: Vec<String>,
    /// The `DaemonSet`s that the rule does not wait for.
    pub passed_over: Vec<PassedOver>,
    /// The `DaemonSet`s that the rule names and waits for, where they do not run on all of its nodes.
    pub placements: Vec<Placement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmade {
    pub kind: Arc<str>,
    /// What is missing: the name of a `DaemonSet` or a CSI driver, or else the condition type.
    pub missing: String,
    pub why: WhyUnmade,
}

/// Why a condition is met on no node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyUnmade {
    NoDaemonSet,
    NoCsiDriver,
    /// Its prefix is Nodegate's, and nothing of that name exists.
    NoSuchName,
    /// Its prefix is under Nodegate's domain and none of Nodegate's, and no node reports it.
    NoSuchPrefix,
    /// Earlier rules name as many components as are watched.
    TooMany,
    /// The API server does not have the kind of object that tells.
    NotServed,
}

/// On how many of a rule's nodes a `DaemonSet` runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub daemon_set: ObjectKey,
    /// The nodes on which it runs: fewer than `selected`.
    pub runs_on: usize,
    /// The nodes that the rule selects.
    pub selected: usize,
}

impl WhyUnmade {
    /// The same words in statuses, warnings and findings. `names` are what is missing, one or several.
    pub fn message(self, names: &str) -> String {
        match self {
            Self::NoDaemonSet => format!(
                "there is no DaemonSet {names} today: until there is one, no node meets the condition; check namespace and name"
            ),
            Self::NoCsiDriver => format!(
                "no node has CSI driver {names} today: until one has, no node meets the condition; check the driver's name"
            ),
            Self::NoSuchName => format!(
                "nothing makes conditions of type {names}, though their prefix is Nodegate's: counted as absent on every node; \
                 check the spelling"
            ),
            Self::NoSuchPrefix => format!(
                "no node reports {names}, and Nodegate makes no conditions with that prefix: counted as absent on every node; \
                 check the spelling"
            ),
            Self::TooMany => format!(
                "earlier rules name as many others as are watched, so that nothing makes {names}: counted as absent on every node"
            ),
            Self::NotServed => format!(
                "this API server has no resource.k8s.io/v1 ResourceSlices (Kubernetes 1.34 has them), so that no node meets {names}"
            ),
        }
    }
}

impl Backing {
    /// What stands behind the conditions of a rule. `nodes` yields all nodes of the cluster; `has_csi_driver` says whether any
    /// node has registered the CSI driver of this name.
    pub fn of<'a, Nodes: Iterator<Item = &'a Node>>(
        spec: &CompiledSpec,
        cluster: ClusterState<'_>,
        nodes: impl Fn() -> Nodes,
        has_csi_driver: impl Fn(&str) -> bool,
    ) -> Self {
        let selected = || nodes().filter(|node| spec.selector.matches(&node.labels));
        Self {
            unmade: unmade(spec, cluster, selected, has_csi_driver),
            empty_classes: empty_classes(spec, cluster),
            passed_over: PassedOver::by_rule(spec, cluster, &nodes),
            placements: placements(spec, cluster, selected),
        }
    }
}

fn unmade<'a, Nodes: Iterator<Item = &'a Node>>(
    spec: &CompiledSpec,
    cluster: ClusterState<'_>,
    selected: impl Fn() -> Nodes,
    has_csi_driver: impl Fn(&str) -> bool,
) -> Vec<Unmade> {
    let why = |condition: &RequiredCondition| match &condition.source {
        Source::Nobody => Some((WhyUnmade::NoSuchName, condition.kind.to_string())),
        Source::Component(component) => match (cluster.named(component), component) {
            (None, _) => Some((WhyUnmade::TooMany, condition.kind.to_string())),
            (Some(named), _) if !named.is_served => {
                Some((WhyUnmade::NotServed, condition.kind.to_string()))
            }
            (Some(named), Component::DaemonSet(key)) => {
                let found = cluster.daemon_sets(named.group).get(key);
                let is_there = found.is_some_and(|it| !it.deleting);
                let is_lacking = named.is_seen && !is_there;
                (is_lacking && condition.required != ConditionStatus::False)
                    .then(|| (WhyUnmade::NoDaemonSet, key.to_string()))
            }
            (Some(_), _) => None,
        },
        Source::CsiDriver(driver) => {
            let is_lacking = condition.required != ConditionStatus::False
                && selected().next().is_some()
                && !has_csi_driver(driver);
            is_lacking.then(|| (WhyUnmade::NoCsiDriver, driver.clone()))
        }
        Source::Node if is_under_our_domain(&condition.kind) => {
            let is_reported = selected().any(|node| node.condition(&condition.kind).is_some());
            (!is_reported).then(|| (WhyUnmade::NoSuchPrefix, condition.kind.to_string()))
        }
        Source::Node | Source::Class { .. } | Source::Resource(_) => None,
    };
    let unmade = spec.conditions.iter().filter_map(|condition| {
        let (why, missing) = why(condition)?;
        let kind = condition.kind.clone();
        Some(Unmade { kind, missing, why })
    });
    unmade.collect()
}

/// Only classes that some rule in force waits for are watched, so that what is unknown is not taken for empty.
fn empty_classes(spec: &CompiledSpec, cluster: ClusterState<'_>) -> Vec<String> {
    let is_empty = |index: usize, class: &CriticalComponentClass| {
        let daemon_sets = cluster.daemon_sets(ComponentGroup::Class(index));
        spec.waits_for_class(index)
            && cluster.rules.waits_for_class(index)
            && !daemon_sets.values().any(|it| class.has(it))
    };
    let classes = cluster.classes.iter().enumerate();
    classes
        .filter(|(index, class)| is_empty(*index, class))
        .map(|(_, class)| class.name.clone())
        .collect()
}

fn placements<'a, Nodes: Iterator<Item = &'a Node>>(
    spec: &CompiledSpec,
    cluster: ClusterState<'_>,
    selected: impl Fn() -> Nodes,
) -> Vec<Placement> {
    let there = spec.daemon_sets().filter_map(|key| {
        let named = cluster.named(&Component::DaemonSet(key.clone()))?;
        cluster.daemon_sets(named.group).get(key)
    });
    let waited_for: Vec<&DaemonSet> = there
        .filter(|it| !it.deleting && tolerates(it, &spec.taint))
        .collect();
    if waited_for.is_empty() {
        return Vec::new();
    }
    let mut all = 0;
    let mut runs_on = vec![0; waited_for.len()];
    for node in selected() {
        all += 1;
        let staying = staying(spec, cluster, node);
        for (count, daemon_set) in runs_on.iter_mut().zip(&waited_for) {
            *count += usize::from(is_meant_for(daemon_set, node, &staying));
        }
    }
    let placements = waited_for
        .iter()
        .zip(runs_on)
        .map(|(it, runs_on)| Placement {
            daemon_set: it.key.clone(),
            runs_on,
            selected: all,
        });
    placements.filter(|it| it.runs_on < it.selected).collect()
}

/// A `DaemonSet` that is meant for nodes of a rule which waits for its class, but that the rule does not wait for; or one that
/// the rule names, and that cannot start there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    pub why: WhyPassedOver,
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
fn staying<'a>(spec: &CompiledSpec, cluster: ClusterState<'_>, node: &'a Node) -> Vec<&'a Taint> {
    let mut staying = cluster.rules.staying(node);
    staying.retain(|taint| !taint.is(&spec.taint.key, spec.effect));
    staying
}
