//! What a plan is made from: all that has been seen of the cluster and of one node, and what has been done about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::doubts::Doubts;
use super::memory::Memory;
use crate::condition::{CriticalComponentClass, Sightings};
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod};
use crate::repair::{Karpenter, Situation};
use crate::rule::RuleSet;

/// What is the same for every node.
#[derive(Debug, Clone, Copy)]
pub struct ClusterState<'a> {
    /// The configured critical component classes.
    pub classes: &'a [CriticalComponentClass],
    /// The labelled `DaemonSet`s of each class, in the order of `classes`.
    pub daemon_sets: &'a [BTreeMap<ObjectKey, DaemonSet>],
    /// All rules.
    pub rules: &'a RuleSet,
    /// Whether synthesized conditions are published on nodes.
    pub publish_conditions: bool,
    /// What was seen that may not be so any more.
    pub doubts: Doubts,
    /// What a node's repair depends on besides the node.
    pub repair: Situation<'a>,
}

/// What has been seen of one node and of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct NodeState<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// The pods of each class that are bound to it, in the order of the classes.
    pub pods: &'a [Vec<Pod>],
    /// Indices of the active rules that select it ([`RuleSet::selecting`]).
    pub selecting: &'a [usize],
    /// What this process has seen of the node over time.
    pub sightings: &'a Sightings,
    /// When the node came, where this process saw it come.
    pub joined: Option<Timestamp>,
    /// What Karpenter has to say about the node.
    pub karpenter: Karpenter<'a>,
}

/// What has been done about one node so far, and what may be done.
#[derive(Debug, Clone, Copy)]
pub struct NodeHistory<'a> {
    /// Whether the node has been evaluated before, by this process while it was in charge.
    pub is_known: bool,
    /// What was read for this node only just now, so that there is no doubt about it.
    pub looked: Doubts,
    /// What this process remembers of continuous rules on the node.
    pub memories: &'a [Memory],
    /// UIDs of the rules whose disruption guard lets the node be closed now.
    pub may_close: &'a [Arc<str>],
    /// Since when this process has been in charge of nodes.
    pub watching_since: Timestamp,
}
