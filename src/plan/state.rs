//! What a plan is made from: all that has been seen of the cluster and of one node, and what has been done about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::memory::Memory;
use super::stale_kinds::StaleKinds;
use crate::condition::{
    ByGroup, ComponentGroup, CriticalComponentClass, NamedDaemonSet, Observations, Source,
};
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod};
use crate::repair::{Karpenter, Situation};
use crate::rule::{CompiledSpec, RuleSet};

/// What is the same for every node.
#[derive(Debug, Clone, Copy)]
pub struct ClusterState<'a> {
    /// The configured critical component classes.
    pub classes: &'a [CriticalComponentClass],
    /// The `DaemonSet`s that rules wait for by name.
    pub named: &'a [NamedDaemonSet],
    /// The `DaemonSet`s of each group: those with the labels of a class, or the one that is waited for by name.
    pub daemon_sets: &'a ByGroup<BTreeMap<ObjectKey, DaemonSet>>,
    /// All rules.
    pub rules: &'a RuleSet,
    /// Whether synthesized conditions are published on nodes.
    pub publish_conditions: bool,
    /// What was seen that may not be so any more.
    pub doubts: &'a StaleKinds,
    /// What a node's repair depends on besides the node.
    pub repair: Situation<'a>,
}

impl<'a> ClusterState<'a> {
    /// A `DaemonSet` that rules wait for by name, if it is watched for them.
    #[must_use]
    pub fn named(self, key: &ObjectKey) -> Option<&'a NamedDaemonSet> {
        self.named.iter().find(|named| named.key == *key)
    }

    /// The `DaemonSet`s of a group.
    #[must_use]
    pub fn daemon_sets(self, group: ComponentGroup) -> &'a BTreeMap<ObjectKey, DaemonSet> {
        static NONE: BTreeMap<ObjectKey, DaemonSet> = BTreeMap::new();
        self.daemon_sets.get(group).unwrap_or(&NONE)
    }

    /// Whether something has still to be seen that a rule with this spec goes by. Until then nothing that could hurt is done
    /// for it, and no look helps.
    #[must_use]
    pub fn is_to_be_seen(self, spec: &CompiledSpec) -> bool {
        spec.conditions.iter().any(|requirement| {
            let Source::DaemonSet(key) = &requirement.source else {
                return false;
            };
            self.named(key).is_some_and(|named| !named.is_seen)
        })
    }
}

/// What has been seen of one node and of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct NodeState<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its `CSINode`, if there is one.
    pub csi_node: Option<&'a CsiNode>,
    /// The pods of each group that are bound to it.
    pub pods: &'a ByGroup<Vec<Pod>>,
    /// Indices of the active rules that select it ([`RuleSet::selecting`]).
    pub selecting: &'a [usize],
    /// What this process has seen of the node over time.
    pub observations: &'a Observations,
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
    pub looked: &'a StaleKinds,
    /// What this process remembers of continuous rules on the node.
    pub memories: &'a [Memory],
    /// UIDs of the rules whose disruption guard lets the node be closed now.
    pub may_close: &'a [Arc<str>],
    /// Since when this process has been in charge of nodes.
    pub watching_since: Timestamp,
}
