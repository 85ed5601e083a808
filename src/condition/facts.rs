//! Inputs of a node's conditions.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::class::CriticalComponentClass;
use super::observations::Observations;
use super::trust::Trust;
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod, Taint};

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
    /// The `DaemonSet`s that rules of this node wait for by name.
    pub named: &'f [NamedFacts<'f, 'a>],
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

/// A `DaemonSet` on one node, for rules that wait for it by name.
#[derive(Debug, Clone, Copy)]
pub struct NamedFacts<'f, 'a> {
    /// Its namespace and name.
    pub key: &'a ObjectKey,
    /// Whether the `DaemonSet` and its pods have been seen. Nothing is known before.
    pub is_seen: bool,
    /// The `DaemonSet`, if there is one.
    pub daemon_set: Option<&'a DaemonSet>,
    /// The pods on this node that match its selector, whether or not they are its own.
    pub pods: &'a [Pod],
    /// The node's taints that will not go.
    pub staying: &'f [&'a Taint],
    /// The taints of the rules that wait for it on this node.
    pub gates: &'f [&'a Taint],
}
