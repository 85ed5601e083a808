//! What stands behind a rule's conditions in the cluster, whether or not the rule has a node to gate today: what a node that
//! joins now would wait for in vain, and what it would not wait for.

use std::collections::BTreeMap;

use super::Finding;
use super::of_rule::{
    empty_class, no_daemon_set, not_served, of_condition, outside_namespaces, placements, shut_out,
    staying, unprobed,
};
use crate::api::ConditionStatus;
use crate::condition::{
    Component, ComponentGroup, CriticalComponentClass, Placement, Source, Watch, placement,
    tolerates,
};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::plan::ClusterState;
use crate::rule::{CompiledSpec, RequiredCondition};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Backing {
    pub findings: Vec<Finding>,
    /// Which `DaemonSet`s run on only some of the rule's nodes, or are Ready too early. The rule works, but its author may not
    /// expect it.
    pub notes: Vec<String>,
}

/// What a rule does not wait for, or in vain, by whether its namespace is the reason.
type PassedOver<'a> = BTreeMap<(bool, &'a ObjectKey), Finding>;

impl Backing {
    /// What stands behind the conditions of a rule. `nodes` yields all nodes of the cluster; `has_csi_driver` says whether any
    /// node has registered the CSI driver of this name.
    pub(crate) fn of<'a, Nodes: Iterator<Item = &'a Node>>(
        rule: &str,
        spec: &CompiledSpec,
        cluster: ClusterState<'a>,
        nodes: impl Fn() -> Nodes,
        has_csi_driver: impl Fn(&str) -> bool,
    ) -> Self {
        let selected = || nodes().filter(|node| spec.selector.matches(&node.labels));
        let lacks_driver = |driver: &str| selected().next().is_some() && !has_csi_driver(driver);
        let is_reported = |kind: &str| selected().any(|node| node.condition(kind).is_some());
        let unmade = spec.conditions.iter().filter_map(|it| {
            of_component(rule, it, cluster)
                .or_else(|| of_condition(rule, it, lacks_driver, is_reported))
        });
        let mut findings: Vec<Finding> = unmade.collect();
        let empty = empty_classes(spec, cluster);
        findings.extend(empty.map(|class| empty_class(rule, &class.name)));
        let mut notes = Vec::new();
        let there = spec.daemon_sets().filter_map(|key| named(key, cluster));
        for placed in placements(spec, cluster.rules, there, selected()) {
            if let Some(finding) = placed.finding(rule) {
                findings.push(finding);
            } else if placed.runs_on < placed.of {
                let (key, runs_on, of) = (&placed.daemon_set.key, placed.runs_on, placed.of);
                notes.push(format!(
                    "DaemonSet {key} runs on {runs_on} of the {of} nodes that the rule selects; the others do not wait for it"
                ));
            }
        }
        let is_wanted = |daemon_set: &DaemonSet| {
            selected()
                .any(|node| is_meant_for(daemon_set, node, &staying(spec, cluster.rules, node)))
        };
        let mut passed_over = PassedOver::new();
        for daemon_set in spec.daemon_sets().filter_map(|key| named(key, cluster)) {
            let key = &daemon_set.key;
            notes.extend(unprobed(spec, daemon_set).map(|it| it.message));
            if !tolerates(daemon_set, &spec.taint) && is_wanted(daemon_set) {
                passed_over.insert((false, key), shut_out(spec, key, true));
            }
        }
        of_classes(&mut passed_over, spec, cluster, is_wanted);
        findings.extend(passed_over.into_values());
        Self { findings, notes }
    }
}

/// What this rule does not wait for on this node because it does not tolerate the rule's taint: of classes, and of all
/// `DaemonSet`s.
pub(crate) fn left_out_on(
    spec: &CompiledSpec,
    cluster: ClusterState<'_>,
    node: &Node,
) -> Vec<Finding> {
    let staying = staying(spec, cluster.rules, node);
    let is_wanted = |daemon_set: &DaemonSet| is_meant_for(daemon_set, node, &staying);
    let mut left_out = PassedOver::new();
    of_classes(&mut left_out, spec, cluster, is_wanted);
    left_out.retain(|(is_outside, _), _| !is_outside);
    let all = spec
        .components()
        .find(|it| **it == Component::AllDaemonSets);
    if let Some(named) = all.and_then(|all| cluster.named(all)) {
        for (key, daemon_set) in cluster.daemon_sets(named.group) {
            let counts = !daemon_set.deleting && !daemon_set.ignored;
            if counts && !tolerates(daemon_set, &spec.taint) && is_wanted(daemon_set) {
                left_out.insert((false, key), shut_out(spec, key, false));
            }
        }
    }
    left_out.into_values().collect()
}

/// A condition that waits for something by name and is met on no node.
fn of_component(
    rule: &str,
    condition: &RequiredCondition,
    cluster: ClusterState<'_>,
) -> Option<Finding> {
    let Source::Component(component) = &condition.source else {
        return None;
    };
    let known = cluster.named(component)?;
    if !known.is_served {
        return Some(not_served(rule, &condition.kind));
    }
    match component {
        Component::DaemonSet(key) if condition.required != ConditionStatus::False => {
            let is_lacking = known.is_seen && named(key, cluster).is_none();
            is_lacking.then(|| no_daemon_set(rule, key))
        }
        _ => None,
    }
}

/// A `DaemonSet` that rules name, if it is there.
fn named<'a>(key: &ObjectKey, cluster: ClusterState<'a>) -> Option<&'a DaemonSet> {
    let known = cluster.named(&Component::DaemonSet(key.clone()))?;
    let there = cluster.daemon_sets(known.group).get(key);
    there.filter(|it| !it.deleting)
}

/// The classes that the rule waits for and that have no `DaemonSet`. One that has not been seen yet is not taken for empty.
fn empty_classes<'a>(
    spec: &CompiledSpec,
    cluster: ClusterState<'a>,
) -> impl Iterator<Item = &'a CriticalComponentClass> {
    let classes = cluster.classes.iter().enumerate();
    let empty = classes.filter(move |(index, class)| {
        let group = ComponentGroup::Class(*index);
        let daemon_sets = cluster.daemon_sets(group);
        spec.waits_for_class(*index)
            && !cluster.unseen.contains(&Watch::DaemonSets(group))
            && !daemon_sets.values().any(|it| class.has(it))
    });
    empty.map(|(_, class)| class)
}

/// Adds the `DaemonSet`s of classes that the rule waits for, and that it does not wait for. One that waits for all `DaemonSet`s
/// leaves out those of no class in silence.
fn of_classes<'a>(
    found: &mut PassedOver<'a>,
    spec: &CompiledSpec,
    cluster: ClusterState<'a>,
    is_wanted: impl Fn(&DaemonSet) -> bool,
) {
    let classes = cluster.classes.iter().enumerate();
    for (index, class) in classes.filter(|(index, _)| spec.waits_for_class(*index)) {
        let daemon_sets = cluster.daemon_sets(ComponentGroup::Class(index)).iter();
        for (key, daemon_set) in daemon_sets.filter(|(_, it)| class.labels(it)) {
            let is_outside = !class.namespaces.contains(&key.namespace);
            let is_waited_for = !is_outside && tolerates(daemon_set, &spec.taint);
            if is_waited_for || !is_wanted(daemon_set) {
                continue;
            }
            found.entry((is_outside, key)).or_insert_with(|| {
                if is_outside {
                    outside_namespaces(key, &class.name)
                } else {
                    shut_out(spec, key, false)
                }
            });
        }
    }
}

fn is_meant_for(daemon_set: &DaemonSet, node: &Node, staying: &[&Taint]) -> bool {
    placement(daemon_set, node, staying, || false) == Placement::Meant
}
