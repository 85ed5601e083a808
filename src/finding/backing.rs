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
    Component, ComponentGroup, CriticalComponentClass, Placement, Source, Watch, can_share_a_node,
    placement, tolerates,
};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::plan::ClusterState;
use crate::rule::{CompiledSpec, RequiredCondition, RuleSet};

/// What a cluster has for a rule. What was not read is `None` or left out, and nothing is said of it.
#[derive(Debug)]
pub(crate) struct Around<'a, Nodes, Drivers> {
    pub rules: &'a RuleSet,
    pub classes: &'a [CriticalComponentClass],
    /// The `DaemonSet`s that the rule names; `None` for one that does not exist.
    pub named: BTreeMap<&'a ObjectKey, Option<&'a DaemonSet>>,
    /// The `DaemonSet`s with a class's labels on themselves, by the class's index.
    pub labelled: Labelled<'a>,
    /// Whether the API server has no `ResourceSlice`s.
    pub lacks_slices: bool,
    /// Nodes, whether or not the rule selects them.
    pub nodes: Option<Nodes>,
    /// The CSI drivers that any node has registered.
    pub csi_drivers: Option<Drivers>,
    /// Whether a `DaemonSet` matters that only nodes which may still join would run.
    pub with_future_nodes: bool,
}

/// The `DaemonSet`s with a class's labels on themselves, by the class's index.
type Labelled<'a> = BTreeMap<usize, Vec<&'a DaemonSet>>;

impl<'a, Nodes, Drivers> Around<'a, Nodes, Drivers> {
    /// What the watches have shown for a rule with this spec.
    pub(crate) fn watched(
        spec: &'a CompiledSpec,
        cluster: ClusterState<'a>,
        nodes: Option<Nodes>,
        csi_drivers: Option<Drivers>,
    ) -> Self {
        let named = spec.daemon_sets().filter_map(|key| {
            let known = cluster.named(&Component::DaemonSet(key.clone()))?;
            let there = cluster.daemon_sets(known.group).get(key);
            let there = there.map(|it| &**it).filter(|it| !it.deleting);
            (known.is_seen || there.is_some()).then_some((key, there))
        });
        Self {
            rules: cluster.rules,
            classes: cluster.classes,
            named: named.collect(),
            labelled: labelled(spec, cluster),
            lacks_slices: cluster.named.iter().any(|it| !it.is_served),
            nodes,
            csi_drivers,
            with_future_nodes: false,
        }
    }
}

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
    /// What stands behind the conditions of a rule.
    pub(crate) fn of<'a, Nodes, Drivers>(
        rule: &str,
        spec: &CompiledSpec,
        around: &Around<'a, Nodes, Drivers>,
    ) -> Self
    where
        Nodes: Iterator<Item = &'a Node> + Clone,
        Drivers: Iterator<Item = &'a str> + Clone,
    {
        let nodes = || around.nodes.clone().into_iter().flatten();
        let selected = || nodes().filter(|node| spec.selector.matches(&node.labels));
        let lacks_driver = |driver: &str| {
            let mut known = around.csi_drivers.clone();
            selected().next().is_some()
                && known
                    .as_mut()
                    .is_some_and(|known| known.all(|it| it != driver))
        };
        let is_reported = |kind: &str| {
            let reports = |node: &Node| node.condition(kind).is_some();
            around.nodes.is_none()
                || selected().any(reports)
                || (selected().next().is_none() && nodes().any(reports))
        };
        let unmade = spec.conditions.iter().filter_map(|it| {
            of_component(rule, it, around)
                .or_else(|| of_condition(rule, it, lacks_driver, is_reported))
        });
        let mut findings: Vec<Finding> = unmade.collect();
        for (index, daemon_sets) in &around.labelled {
            let class = &around.classes[*index];
            if spec.waits_for_class(*index) && !daemon_sets.iter().any(|it| class.has(it)) {
                findings.push(empty_class(rule, &class.name));
            }
        }
        let mut notes = Vec::new();
        let there = || around.named.values().copied().flatten();
        for placed in placements(spec, around.rules, there(), selected()) {
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
            if around.with_future_nodes {
                return can_share_a_node(daemon_set, &spec.selector);
            }
            selected()
                .any(|node| is_meant_for(daemon_set, node, &staying(spec, around.rules, node)))
        };
        let mut passed_over = PassedOver::new();
        for daemon_set in there() {
            let key = &daemon_set.key;
            if let Some(unprobed) = unprobed(spec, daemon_set) {
                notes.push(unprobed.message.clone());
                findings.push(unprobed);
            }
            if !tolerates(daemon_set, &spec.taint) && is_wanted(daemon_set) {
                passed_over.insert((false, key), shut_out(spec, key, true));
            }
        }
        of_classes(
            &mut passed_over,
            spec,
            around.classes,
            &around.labelled,
            is_wanted,
        );
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
    let labelled = labelled(spec, cluster);
    of_classes(&mut left_out, spec, cluster.classes, &labelled, is_wanted);
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
fn of_component<Nodes, Drivers>(
    rule: &str,
    condition: &RequiredCondition,
    around: &Around<'_, Nodes, Drivers>,
) -> Option<Finding> {
    match &condition.source {
        Source::Component(Component::Devices(_)) if around.lacks_slices => {
            Some(not_served(rule, &condition.kind))
        }
        Source::Component(Component::DaemonSet(key))
            if condition.required != ConditionStatus::False
                && around.named.get(key) == Some(&None) =>
        {
            Some(no_daemon_set(rule, key))
        }
        _ => None,
    }
}

/// Those of the classes that the rule waits for and that have been listed.
fn labelled<'a>(spec: &CompiledSpec, cluster: ClusterState<'a>) -> Labelled<'a> {
    let classes = 0..cluster.classes.len();
    let listed = classes.filter_map(|index| {
        let group = ComponentGroup::Class(index);
        let is_listed = !cluster.unseen.contains(&Watch::DaemonSets(group));
        let daemon_sets = cluster.daemon_sets(group).values().map(|it| &**it);
        (spec.waits_for_class(index) && is_listed).then(|| (index, daemon_sets.collect()))
    });
    listed.collect()
}

/// Adds the `DaemonSet`s of these classes that the rule does not wait for. One that waits for all `DaemonSet`s leaves out those
/// of no class in silence.
fn of_classes<'a>(
    found: &mut PassedOver<'a>,
    spec: &CompiledSpec,
    classes: &[CriticalComponentClass],
    labelled: &Labelled<'a>,
    is_wanted: impl Fn(&DaemonSet) -> bool,
) {
    for (index, daemon_sets) in labelled {
        let class = &classes[*index];
        for daemon_set in daemon_sets.iter().filter(|it| class.labels(it)) {
            let key = &daemon_set.key;
            let is_outside = !class.namespaces.contains(&key.namespace);
            let is_well = if is_outside {
                !spec.waits_for_class(*index)
            } else {
                tolerates(daemon_set, &spec.taint)
            };
            if is_well || !is_wanted(daemon_set) {
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
