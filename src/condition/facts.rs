//! Inputs of a node's conditions.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::class::CriticalComponentClass;
use super::groups::NamedComponent;
use super::observations::Observations;
use super::trust::Trust;
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod, ResourceSlice, Taint};

/// What is known about one node at one time.
///
/// `'a` is the lifetime of the objects, `'f` that of this view of them.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f, 'a> {
    /// The node itself.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// The state of each configured class on this node, in the order of the configuration.
    pub classes: &'f [ClassFacts<'f, 'a>],
    /// What rules of this node wait for by name.
    pub components: &'f [ComponentFacts<'f, 'a>],
    /// What this process has observed of the node over time.
    pub observations: &'a Observations,
    /// What counts as current evidence.
    pub trust: Trust,
    /// The time of the evaluation.
    pub now: Timestamp,
}

/// One class on one node.
#[derive(Debug, Clone, Copy)]
pub struct ClassFacts<'f, 'a> {
    /// The class.
    pub class: &'a CriticalComponentClass,
    /// Every `DaemonSet` of the class in the cluster.
    pub daemon_sets: &'a BTreeMap<ObjectKey, DaemonSet>,
    /// The class's pods that are bound to this node.
    pub pods: &'a [Pod],
    /// The node's taints that will not go: a `DaemonSet` that does not tolerate them does not run here.
    pub staying: &'f [&'a Taint],
    /// The taints of the rules that wait for this class on this node.
    pub gates: &'f [&'a Taint],
}

/// A component on one node, for rules that wait for it by name.
#[derive(Debug, Clone, Copy)]
pub struct ComponentFacts<'f, 'a> {
    /// The component.
    pub named: &'a NamedComponent,
    /// Its `DaemonSet`s in the cluster.
    pub daemon_sets: &'a BTreeMap<ObjectKey, DaemonSet>,
    /// Its pods on this node. Those that match a `DaemonSet`'s selector are not all its own.
    pub pods: &'a [Pod],
    /// Its `ResourceSlice`s of this node.
    pub slices: &'a [ResourceSlice],
    /// The node's taints that will not go.
    pub staying: &'f [&'a Taint],
    /// The taints of the rules that wait for it on this node.
    pub gates: &'f [&'a Taint],
}
