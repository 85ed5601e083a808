//! Inputs of a plan: the observed state of the cluster and of one node, and the controller's history with the node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::outcome::{ConditionOutcome, Memory, unmet};
use crate::api::Setback;
use crate::condition::{
    ByGroup, Component, ComponentGroup, Condition, CriticalComponentClass, Detail, NamedComponent,
    Observations, Watch,
};
use crate::guard::Zones;
use crate::object::{CsiNode, DaemonSet, Kept, Node, ObjectKey, Pod, PodReady, ResourceSlice};
use crate::repair::{Census, Karpenter};
use crate::rule::{CompiledSpec, RuleSet};

/// State that all nodes share.
#[derive(Debug, Clone, Copy)]
pub struct ClusterState<'a> {
    pub classes: &'a [CriticalComponentClass],
    pub named: &'a [NamedComponent],
    /// The `DaemonSet`s of each group: those with the labels of a class, or those that a rule names.
    pub daemon_sets: &'a ByGroup<BTreeMap<ObjectKey, Kept<DaemonSet>>>,
    pub rules: &'a RuleSet,
    pub publish_conditions: bool,
    /// The watches that are not known to be current.
    pub stale: &'a BTreeSet<Watch>,
    /// The watches that rules depend on and that have not listed yet, but for those of what rules name.
    pub unseen: &'a BTreeSet<Watch>,
    pub nodes_as_of: Timestamp,
    /// The health of all nodes, for late ones; `None` while any evidence is stale, Karpenter's included: repair is postponed.
    pub census: Option<&'a Census>,
    /// Until when repair is postponed, because evidence was stale.
    pub repair_after: Option<Timestamp>,
}

impl<'a> ClusterState<'a> {
    /// A component that rules wait for by name, if it is watched.
    pub fn named(self, component: &Component) -> Option<&'a NamedComponent> {
        self.named
            .iter()
            .find(|named| named.component == *component)
    }

    pub fn daemon_sets(self, group: ComponentGroup) -> &'a BTreeMap<ObjectKey, Kept<DaemonSet>> {
        static NONE: BTreeMap<ObjectKey, Kept<DaemonSet>> = BTreeMap::new();
        self.daemon_sets.get(&group).unwrap_or(&NONE)
    }

    /// The stale watches that these findings of a rule with this spec depend on. A reporter is silent only if the nodes are known
    /// as of a time after its heartbeat was due.
    pub fn stale_for(
        self,
        spec: &CompiledSpec,
        findings: &[ConditionOutcome<'_>],
    ) -> impl Iterator<Item = Watch> {
        let is_early = |it: &Condition<'_>| {
            matches!(it.detail, Detail::HeartbeatMissed { .. })
                && it.transition > Some(self.nodes_as_of)
        };
        let mut unmet = unmet(findings).filter_map(|it| it.condition.as_ref());
        let early = unmet.any(is_early).then_some(Watch::Nodes);
        let stale = self.stale.iter().copied();
        let stale = stale.filter(|watch| spec.depends_on(*watch, self.named));
        stale.chain(early)
    }

    /// Whether something that a rule with this spec depends on has not been seen yet: until then nothing harmful is done for it.
    pub fn is_to_be_seen(self, spec: &CompiledSpec) -> bool {
        let (mut components, mut unseen) = (spec.components(), self.unseen.iter());
        unseen.any(|watch| spec.depends_on(*watch, &[]))
            || components.any(|it| self.named(it).is_some_and(|named| !named.is_seen))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct NodeState<'a> {
    pub node: &'a Node,
    pub csi_node: Option<&'a CsiNode>,
    pub pods: &'a ByGroup<Vec<Kept<Pod>>>,
    pub slices: &'a ByGroup<Vec<Kept<ResourceSlice>>>,
    /// Indices of the active rules that select it ([`RuleSet::recalled`]).
    pub selecting: &'a [usize],
    pub observations: &'a Observations,
    /// When the node joined, if this process saw that.
    pub joined: Option<Timestamp>,
    /// Whether the rules are known as of a time after the node's latest state came: a watch may show a node before its rule.
    pub knows_rules: bool,
    pub karpenter: Karpenter<'a>,
}

impl<'a> NodeState<'a> {
    pub fn zones(&self) -> Zones {
        self.karpenter.zones(self.node, self.observations)
    }

    /// Whether this `DaemonSet` has a Ready pod on the node.
    pub fn runs(&self, daemon_set: &ObjectKey, cluster: ClusterState<'_>) -> bool {
        let mut pods = self.pods.iter().flat_map(|(group, pods)| {
            let known = cluster.daemon_sets(*group).get(daemon_set);
            pods.iter()
                .filter(move |pod| known.is_some_and(|it| it.owns(pod)))
        });
        pods.any(|pod| pod.is_live() && pod.ready != PodReady::No)
    }

    /// This pod on the node, and the `DaemonSet` that made it.
    pub fn made_by(
        &self,
        pod: &ObjectKey,
        cluster: ClusterState<'a>,
    ) -> Option<(&'a Pod, &'a ObjectKey)> {
        self.pods.iter().find_map(|(group, pods)| {
            let pod = pods.iter().find(|it| it.key == *pod)?;
            let mut daemon_sets = cluster.daemon_sets(*group).values();
            daemon_sets
                .find(|it| it.owns(pod))
                .map(|it| (&**pod, &it.key))
        })
    }

    /// How many objects and parts of the node an evaluation looks at: what a kubelet or a tenant can make many of.
    pub fn size(&self, cluster: ClusterState<'_>) -> usize {
        let daemon_sets = cluster.daemon_sets.values().flat_map(BTreeMap::values);
        let daemon_sets: usize = daemon_sets.map(|it| it.size()).sum();
        let pods = self.pods.values().flatten();
        let pods: usize = pods.map(|pod| 1 + pod.annotations.len()).sum();
        let slices: usize = self.slices.values().map(Vec::len).sum();
        let drivers = self.csi_node.map_or(0, |it| it.drivers.len());
        let annotations = self.node.annotations.as_ref().map_or(0, BTreeMap::len);
        let node = annotations + self.node.taints.len() + self.node.conditions.len();
        daemon_sets + pods + slices + drivers + node
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NodeHistory<'a> {
    /// Whether this process has evaluated the node before, as leader.
    pub is_known: bool,
    pub memories: &'a [Memory],
    /// UIDs of the rules whose disruption guard permits to gate the node now.
    pub may_gate: &'a [Arc<str>],
    /// UIDs of the rules that may not gate the node yet if it is in use.
    pub held_back: &'a [Arc<str>],
    /// UIDs of rules, each with its last repair in the node's pool.
    pub setbacks: &'a [(Arc<str>, Setback)],
    /// Since when this process has been the leader.
    pub watching_since: Timestamp,
}
