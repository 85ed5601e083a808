//! What stands behind a rule's conditions in the cluster, whether or not the rule has a node to gate today: what a node that
//! joins now would wait for in vain, and what it would not wait for.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Finding;
use super::of_rule::{
    empty_class, kept_away, kept_off, never_renewed, of_condition, on_no_node, outside_namespaces,
    shut_out, unprobed,
};
use crate::condition::{
    Component, ComponentGroup, CriticalComponentClass, Placement, Watch, can_share_a_node,
    placement, selects, tolerates,
};
use crate::object::{DaemonSet, Node, ObjectKey, Taint};
use crate::plan::{ClusterState, NodeState};
use crate::rule::{CompiledSpec, RuleSet};

/// What a cluster has for a rule. What was not read is `None` or left out, and nothing is said of it.
#[derive(Debug)]
pub struct Around<'a> {
    pub rules: &'a RuleSet,
    pub classes: &'a [CriticalComponentClass],
    /// The `DaemonSet`s that the rule names; `None` for one that does not exist.
    pub named: BTreeMap<&'a ObjectKey, Option<&'a DaemonSet>>,
    /// The `DaemonSet`s with a class's labels on themselves, by the class's index.
    pub labelled: Labelled<'a>,
    /// What stands on nodes under the name of a `DaemonSet` that does not exist, as a phrase.
    pub standing: Option<&'a BTreeMap<ObjectKey, String>>,
    pub beating: Option<&'a BTreeSet<Arc<str>>>,
    pub lacks_slices: bool,
    /// Nodes, whether or not the rule selects them.
    pub nodes: Option<Vec<&'a Node>>,
    pub csi_drivers: Option<Vec<&'a str>>,
    /// Whether a `DaemonSet` matters that only nodes which may still join would run.
    pub with_future_nodes: bool,
}

type Labelled<'a> = BTreeMap<usize, Vec<&'a DaemonSet>>;

impl<'a> Around<'a> {
    /// What the watches have shown for a rule with this UID and spec.
    pub fn watched(
        uid: &str,
        spec: &'a CompiledSpec,
        cluster: ClusterState<'a>,
        nodes: Option<Vec<&'a Node>>,
        csi_drivers: Option<Vec<&'a str>>,
    ) -> Self {
        let named = spec.daemon_sets().filter_map(|key| {
            let known = cluster.named(&Component::DaemonSet(key.clone()))?;
            let there = cluster.daemon_sets(known.group).get(key);
            let there = there.map(|it| &**it).filter(|it| it.deleted.is_none());
            (known.is_seen || there.is_some()).then_some((key, there))
        });
        Self {
            rules: cluster.rules,
            classes: cluster.classes,
            named: named.collect(),
            labelled: labelled(spec, cluster),
            standing: None,
            beating: cluster.rules.beating.get(uid),
            lacks_slices: cluster.named.iter().any(|it| !it.is_served),
            nodes,
            csi_drivers,
            with_future_nodes: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backing {
    pub findings: Vec<Finding>,
    /// What works, but perhaps not as the author expects: `DaemonSet`s on only some of the nodes, or Ready too early.
    pub notes: Vec<String>,
}

/// What a rule does not wait for, or in vain, by whether its namespace is the reason.
type PassedOver<'a> = BTreeMap<(bool, &'a ObjectKey), Finding>;

impl Backing {
    pub fn of(rule: &str, spec: &CompiledSpec, around: &Around<'_>) -> Self {
        let nodes = || around.nodes.iter().flatten().copied();
        let selected = || nodes().filter(|node| spec.selector.matches(&node.labels));
        let lacks_driver = |driver: &str| {
            let known = around.csi_drivers.as_ref();
            selected().next().is_some() && known.is_some_and(|it| !it.contains(&driver))
        };
        let is_reported = |kind: &str| {
            let reports = |node: &Node| node.condition(kind).is_some();
            around.nodes.is_none()
                || selected().any(reports)
                || (selected().next().is_none() && nodes().any(reports))
        };
        let mut backing = Self::default();
        for condition in &spec.conditions {
            let unmade = of_condition(rule, condition, around, lacks_driver, is_reported);
            backing.findings.extend(unmade);
        }
        let is_timed = spec.ours.heartbeat_timeout.is_some();
        for kind in spec.reported().filter(|_| is_timed) {
            let there = || selected().filter_map(|node| node.condition(kind));
            let beats = around.beating.is_some_and(|it| it.contains(kind));
            if !beats && there().next().is_some() && !there().any(|it| it.beats(None)) {
                backing.findings.push(never_renewed(rule, kind));
            }
        }
        let (classes, labelled) = (around.classes, &around.labelled);
        for (index, daemon_sets) in labelled {
            let class = &classes[*index];
            if spec.waits_for_class(*index) && !daemon_sets.iter().any(|it| class.has(it)) {
                backing.findings.push(empty_class(rule, &class.name));
            }
        }
        let nodes = LazyCell::new(|| {
            let with_staying = |node| (node, staying(spec, around.rules, node));
            selected().map(with_staying).collect::<Vec<_>>()
        });
        let there = || around.named.values().copied().flatten();
        for daemon_set in there().filter(|it| tolerates(it, &spec.taint)) {
            backing.place(rule, daemon_set, &nodes);
        }
        let is_wanted = |daemon_set: &DaemonSet| {
            if around.with_future_nodes {
                return can_share_a_node(daemon_set, &spec.selector);
            }
            let mut nodes = nodes.iter();
            nodes.any(|(node, staying)| {
                let is_selected = selects(daemon_set, node);
                placement(daemon_set, is_selected, staying, || false) == Placement::Meant
            })
        };
        let mut passed_over = PassedOver::new();
        for daemon_set in there() {
            let key = &daemon_set.key;
            if let Some(unprobed) = unprobed(spec, daemon_set) {
                backing.notes.push(unprobed.message.clone());
                backing.findings.push(unprobed);
            }
            if !tolerates(daemon_set, &spec.taint) && is_wanted(daemon_set) {
                passed_over.insert((false, key), shut_out(spec, key, true));
            }
        }
        of_classes(&mut passed_over, spec, classes, labelled, is_wanted);
        backing.findings.extend(passed_over.into_values());
        backing
    }

    /// Adds on how many of the rule's nodes, each with its staying taints, a named `DaemonSet` runs once the rule is in force.
    fn place(&mut self, rule: &str, daemon_set: &DaemonSet, nodes: &[(&Node, Vec<&Taint>)]) {
        let (key, of) = (&daemon_set.key, nodes.len());
        // By key and effect, on how many nodes such a taint keeps it off.
        let (mut runs_on, mut keeping_off) = (0, BTreeMap::new());
        for (node, staying) in nodes {
            match placement(daemon_set, selects(daemon_set, node), staying, || false) {
                Placement::Meant => runs_on += 1,
                Placement::NotMeant => {}
                Placement::KeptAway(_) => {
                    for taint in staying.iter().filter(|it| !tolerates(daemon_set, it)) {
                        let taint = [&*taint.key, &*taint.effect];
                        *keeping_off.entry(taint).or_default() += 1;
                    }
                }
            }
        }
        if !keeping_off.is_empty() {
            let keeping_off = keeping_off.into_iter();
            let kept_off = keeping_off.map(|(taint, nodes)| kept_off(key, taint, nodes, of));
            self.findings.extend(kept_off);
        } else if runs_on == 0 && of > 0 {
            self.findings.push(on_no_node(rule, key, of));
        } else if runs_on < of {
            self.notes.push(format!(
                "DaemonSet {key} runs on {runs_on} of the {of} nodes that the rule selects; the others do not wait for it"
            ));
        }
    }
}

/// The node's taints that will not go once the rule is in force.
fn staying<'a>(spec: &CompiledSpec, rules: &RuleSet, node: &'a Node) -> Vec<&'a Taint> {
    let passes = |it: &&Taint| rules.passing.contains(it) || it.is(&spec.taint.key, spec.effect);
    let taints = node.taints.iter();
    taints.filter(|it| !passes(it)).collect()
}

/// What this rule leaves out on this node: it does not tolerate the rule's taint, or another one that stays.
pub fn left_out_on(
    spec: &CompiledSpec,
    cluster: ClusterState<'_>,
    state: NodeState<'_>,
) -> Vec<Finding> {
    let staying = staying(spec, cluster.rules, state.node);
    let labelled = labelled(spec, cluster);
    let of_classes = labelled.iter().flat_map(|(index, daemon_sets)| {
        let daemon_sets = daemon_sets.iter().copied();
        daemon_sets.filter(|it| cluster.classes[*index].has(it))
    });
    let mut components = spec.components();
    let all = components.find(|it| **it == Component::AllDaemonSets);
    let all = all.and_then(|all| cluster.named(all)).into_iter();
    let all = all.flat_map(|named| cluster.daemon_sets(named.group).values());
    let all = all.map(|it| &**it);
    let all = all.filter(|it| it.deleted.is_none() && !it.ignored);
    let mut left_out = BTreeMap::new();
    for daemon_set in of_classes.chain(all).filter(|it| !spec.leaves_out(&it.key)) {
        let (key, is_selected) = (&daemon_set.key, selects(daemon_set, state.node));
        let mut pods = state.pods.values().flatten();
        let is_pod = || pods.any(|pod| pod.is_live() && daemon_set.owns(pod));
        let finding = match placement(daemon_set, is_selected, &staying, is_pod) {
            Placement::KeptAway(taint) => kept_away(key, taint),
            Placement::Meant if !tolerates(daemon_set, &spec.taint) => shut_out(spec, key, false),
            Placement::Meant | Placement::NotMeant => continue,
        };
        left_out.insert(key, finding);
    }
    left_out.into_values().collect()
}

/// Those of the classes that the rule waits for and that have been listed.
fn labelled<'a>(spec: &CompiledSpec, cluster: ClusterState<'a>) -> Labelled<'a> {
    let classes = 0..cluster.classes.len();
    let listed = classes.filter_map(|index| {
        let group = ComponentGroup::Class(index);
        let is_listed = !cluster.unseen.contains(&Watch::DaemonSets(group));
        let daemon_sets = cluster.daemon_sets(group).values().map(|it| &**it);
        let daemon_sets = daemon_sets.filter(|it| it.deleted.is_none());
        (spec.waits_for_class(index) && is_listed).then(|| (index, daemon_sets.collect()))
    });
    listed.collect()
}

/// Adds the `DaemonSet`s of these classes that the rule does not wait for; those of no class are left out in silence.
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
            // Of those outside, only the names are known.
            if is_well || spec.leaves_out(key) || !is_outside && !is_wanted(daemon_set) {
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
