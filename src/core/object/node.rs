//! The Node: labels, taints, conditions and Nodegate's own annotations.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::karpenter;
use super::kind::ResourceKind;
use super::resources::Resources;
use super::taint::Taint;
use super::watched::{Kind, Lean, Unreadable, lenient};
use crate::api::names::{BOOTSTRAP_COMPLETED_PREFIX, READY_DEADLINE_PREFIX, TAINT_ADDED_BY_PREFIX};
use crate::api::{ConditionStatus, TaintEffect};

const OWN_ANNOTATIONS: [&str; 3] = [
    BOOTSTRAP_COMPLETED_PREFIX,
    TAINT_ADDED_BY_PREFIX,
    READY_DEADLINE_PREFIX,
];

/// Taints that a node has until the cloud provider, Cluster API and Karpenter have set it up, whatever their effect.
const INTRODUCTION_TAINTS: [&str; 3] = [
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cluster.x-k8s.io/uninitialized",
    "karpenter.sh/unregistered",
];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub created: Option<Timestamp>,
    pub deleting: bool,
    pub labels: BTreeMap<String, String>,
    /// Our annotations; `None` if the node has no annotations at all, which matters to patches.
    pub annotations: Option<BTreeMap<String, String>>,
    pub do_not_repair: Option<&'static str>,
    pub provider_id: Option<Arc<str>>,
    /// All taints, in the API server's order.
    pub taints: Vec<Taint>,
    /// Sorted by type.
    pub conditions: Vec<NodeCondition>,
    pub resources: Resources,
    /// Identifies the node's present boot; empty before the kubelet has reported it.
    pub boot_id: Arc<str>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct NodeCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// The condition's status. Anything other than `True` and `False` is `Unknown`.
    #[serde(default, deserialize_with = "lenient")]
    pub status: ConditionStatus,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
    #[serde(default, rename = "lastTransitionTime", deserialize_with = "lenient")]
    pub transition: Option<Timestamp>,
    /// The reporter's heartbeat, by its own clock. Ignored by comparisons.
    #[serde(default, rename = "lastHeartbeatTime", deserialize_with = "lenient")]
    pub heartbeat: Option<Timestamp>,
}

/// The conditions that a kubelet writes together with its boot ID.
pub const KUBELETS_CONDITIONS: [&str; 4] =
    ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The conditions that are `True` during maintenance (KEP-5683). Such a node is not broken, and returns to service afterwards.
const MAINTENANCE_CONDITIONS: [&str; 3] = [
    "MaintenanceInProgress",
    "DrainInProgress",
    "GracefulNodeShutdownInProgress",
];

impl Node {
    /// When the kubelet last wrote its conditions, by its own clock.
    pub fn kubelet_wrote(&self) -> Option<Timestamp> {
        let conditions = KUBELETS_CONDITIONS.iter();
        let conditions = conditions.filter_map(|kind| self.condition(kind));
        conditions.filter_map(NodeCondition::written).max()
    }

    /// Takes in a patch's response: metadata, and the taints if it replaced them, not the status.
    pub fn take_in(&mut self, patched: Self, taints: Option<Vec<Taint>>) {
        self.deleting = patched.deleting;
        self.labels = patched.labels;
        self.annotations = patched.annotations;
        self.do_not_repair = patched.do_not_repair;
        if let Some(taints) = taints {
            self.taints = taints;
        }
    }

    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        let at = self.conditions.partition_point(|it| *it.kind < *kind);
        self.conditions.get(at).filter(|it| it.kind == kind)
    }

    pub fn is_in_maintenance(&self) -> bool {
        let mut conditions = MAINTENANCE_CONDITIONS.iter();
        let is_true = |it: &NodeCondition| it.status == ConditionStatus::True;
        conditions.any(|kind| self.condition(kind).is_some_and(is_true))
    }

    pub fn taint(&self, key: &str, effect: TaintEffect) -> Option<&Taint> {
        self.taints.iter().find(|taint| taint.is(key, effect))
    }

    /// When this taint was added, by `timeAdded`, or by the creation of the node that registered with it; not before this time.
    pub fn tainted_since(
        &self,
        key: &str,
        effect: TaintEffect,
        not_before: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let added = self.taint(key, effect)?.time_added.as_deref();
        let added = added.and_then(|at| at.parse().ok());
        added.or(self.created.max(not_before))
    }

    /// Whether the node has been set up. Before that it may lack labels by which `DaemonSet`s select it.
    pub fn is_introduced(&self) -> bool {
        let mut taints = self.taints.iter();
        !taints.any(|taint| INTRODUCTION_TAINTS.contains(&taint.key.as_str()))
    }

    /// Whether it may get labels yet. Not under the cloud provider's taint alone, whose controller may have to run there.
    pub fn awaits_labels(&self) -> bool {
        let mut taints = self.taints.iter();
        taints.any(|taint| INTRODUCTION_TAINTS[1..].contains(&taint.key.as_str()))
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Our annotations with this prefix: the IDs that follow it, with the values.
    pub fn annotations_about(&self, prefix: &'static str) -> impl Iterator<Item = (&str, &str)> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let annotations = self.annotations.as_ref().unwrap_or(&NONE);
        let since = annotations.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        since.map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
    }
}

#[derive(Debug, Default, Deserialize)]
pub struct Spec {
    taints: Option<Vec<Taint>>,
    #[serde(default, rename = "providerID", deserialize_with = "lenient")]
    provider_id: Option<Arc<str>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    conditions: Option<Vec<NodeCondition>>,
    #[serde(default, deserialize_with = "lenient")]
    allocatable: Resources,
    #[serde(default, deserialize_with = "lenient")]
    node_info: NodeInfo,
}

#[derive(Debug, Default, Deserialize)]
struct NodeInfo {
    #[serde(rename = "bootID")]
    boot_id: Arc<str>,
}

impl Kind for Node {
    const RESOURCE: ResourceKind = ResourceKind::Nodes;
    const BUDGET: usize = 2 << 20;
    type Spec = Spec;
    type Status = Status;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        let spec = object.spec.take().unwrap_or_default();
        let status = object.status.take().unwrap_or_default();
        let mut conditions = status.conditions.unwrap_or_default();
        conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok(Self {
            name: object.name(),
            uid: object.uid()?,
            do_not_repair: karpenter::forbids_repair(object),
            created: object.created(),
            deleting: object.is_deleting(),
            labels: object.metadata.labels.take().unwrap_or_default(),
            annotations: object.metadata.annotations.take().map(own),
            provider_id: spec.provider_id.filter(|id| !id.is_empty()),
            taints: spec.taints.unwrap_or_default(),
            conditions,
            resources: status.allocatable,
            boot_id: status.node_info.boot_id,
        })
    }
}

fn own(mut annotations: BTreeMap<String, String>) -> BTreeMap<String, String> {
    annotations.retain(|key, _| OWN_ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix)));
    annotations
}

impl PartialEq for NodeCondition {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.transition == other.transition
    }
}

impl Eq for NodeCondition {}

impl NodeCondition {
    /// Whether its reporter renews it: the heartbeat is later than the transition, by more than a second, or has moved alone.
    pub fn beats(&self, known: Option<&Self>) -> bool {
        let has_moved = |known: &Self| known == self && known.heartbeat < self.heartbeat;
        let times = self.heartbeat.zip(self.transition);
        let later = times.map(|(beat, turned)| beat.duration_since(turned).as_secs());
        later > Some(1) || known.is_some_and(has_moved)
    }

    /// When its reporter last wrote it, by the reporter's clock.
    pub(crate) fn written(&self) -> Option<Timestamp> {
        self.heartbeat.max(self.transition)
    }
}
