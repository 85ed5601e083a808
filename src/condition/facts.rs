//! What a node's conditions are made from.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::class::CriticalComponentClass;
use super::observations::Observations;
use super::trust::Trust;
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod, Taint};

/// What is known about one node at one time.
///
/// `'a` is how long the objects live, `'f` how long this view of them does.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f, 'a> {
    /// The node itself.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// For each configured class what it has on this node, in the order of the configuration.
    pub classes: &'f [ClassFacts<'f, 'a>],
    /// The `DaemonSet`s that rules about this node wait for by name.
    pub named: &'f [NamedFacts<'f, 'a>],
    /// What this process has seen of the node over time.
    pub observations: &'a Observations,
    /// What counts as evidence.
    pub trust: Trust,
    /// The time for which to answer.
    pub now: Timestamp,
}

/// What one class has on one node.
#[derive(Debug, Clone, Copy)]
pub struct ClassFacts<'f, 'a> {
    /// The class.
    pub class: &'a CriticalComponentClass,
    /// Every `DaemonSet` of the class in the cluster.
    pub daemon_sets: &'a BTreeMap<ObjectKey, DaemonSet>,
    /// The class's pods that are bound to this node.
    pub pods: &'a [Pod],
    /// The node's taints that will not go by themselves: a `DaemonSet` that does not tolerate them is not meant
    /// for the node.
    pub staying: &'f [&'a Taint],
    /// The taints of the rules that wait for this class on this node.
    pub gates: &'f [&'a Taint],
}

/// What a `DaemonSet` that is waited for by name has on one node.
#[derive(Debug, Clone, Copy)]
pub struct NamedFacts<'f, 'a> {
    /// Its namespace and name.
    pub key: &'a ObjectKey,
    /// Whether everything has been seen that there is of it. Nothing is known of it before.
    pub is_seen: bool,
    /// The `DaemonSet`, if there is one.
    pub daemon_set: Option<&'a DaemonSet>,
    /// The pods that its selector selects, of this or another `DaemonSet`, that are bound to this node.
    pub pods: &'a [Pod],
    /// The node's taints that will not go by themselves.
    pub staying: &'f [&'a Taint],
    /// The taints of the rules that wait for it on this node.
    pub gates: &'f [&'a Taint],
}
