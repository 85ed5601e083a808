//! The Node: labels, taints, conditions and Nodegate's own annotations.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use super::annotations;
use super::field::{Field, Unreadable, items, objects};
use super::karpenter;
use super::meta::{self, Metadata, MetadataObject, Version};
use super::resources::Resources;
use super::taint::{Taint, TaintObject};
use crate::api::{ConditionStatus, TaintEffect};

/// Taints that a node has until the cloud provider and Karpenter have set it up, whatever their effect.
const INTRODUCTION_TAINTS: [&str; 2] = [
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/unregistered",
];

/// The parts of a node that decisions need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The node's name.
    pub name: Arc<str>,
    /// The node's UID. A new node of the same name has another.
    pub uid: Arc<str>,
    /// When the Node object was created.
    pub created: Option<Timestamp>,
    /// Whether the node is being deleted.
    pub deleting: bool,
    /// The node's labels.
    pub labels: BTreeMap<String, String>,
    /// Our annotations on the node. `None` if the node has no annotations at all, which matters
    /// to patches.
    pub annotations: Option<BTreeMap<String, String>>,
    /// The annotation that forbids repair, if there is one.
    pub do_not_repair: Option<&'static str>,
    /// The cloud provider's name for the instance.
    pub provider_id: Option<Arc<str>>,
    /// All taints, in the API server's order.
    pub taints: Vec<Taint>,
    /// All conditions.
    pub conditions: Vec<NodeCondition>,
    /// What the node has to allocate.
    pub resources: Resources,
    /// Identifies the node's present boot; empty before the kubelet has reported it.
    pub boot_id: Arc<str>,
}

/// A node's metadata: the API server's response to a patch of taints and annotations contains nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMetadata {
    /// As [`Node::name`].
    pub name: Arc<str>,
    /// As [`Node::uid`].
    pub uid: Arc<str>,
    /// The object's resource version.
    pub version: Version,
    created: Option<Timestamp>,
    deleting: bool,
    labels: BTreeMap<String, String>,
    annotations: Option<BTreeMap<String, String>>,
    do_not_repair: Option<&'static str>,
}

/// A condition of a node's status.
#[derive(Debug, Clone)]
pub struct NodeCondition {
    /// The condition's type.
    pub kind: String,
    /// The condition's status. Anything other than `True` and `False` is `Unknown`.
    pub status: ConditionStatus,
    /// The reporter's reason.
    pub reason: String,
    /// The reporter's message.
    pub message: String,
    /// When the status last changed.
    pub transition: Option<Timestamp>,
    /// When its reporter last wrote it, by the reporter's clock: the later of heartbeat and transition. Ignored by comparisons.
    pub written: Option<Timestamp>,
}

/// The conditions that a kubelet writes together with its boot ID.
pub(crate) const KUBELETS_CONDITIONS: [&str; 4] =
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
        let is_kubelets = |it: &&NodeCondition| KUBELETS_CONDITIONS.contains(&&*it.kind);
        let conditions = self.conditions.iter().filter(is_kubelets);
        conditions.filter_map(|condition| condition.written).max()
    }

    /// Takes in the response to a patch: the new metadata, and the taints if the patch replaced them. Changes of the status
    /// come by the watch. Returns whether labels have changed.
    pub fn take_in(&mut self, patched: NodeMetadata, taints: Option<Vec<Taint>>) -> bool {
        let relabelled = self.labels != patched.labels;
        self.deleting = patched.deleting;
        self.labels = patched.labels;
        self.annotations = patched.annotations;
        self.do_not_repair = patched.do_not_repair;
        if let Some(taints) = taints {
            self.taints = taints;
        }
        relabelled
    }

    /// The condition of this type, if the node reports one.
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == kind)
    }

    /// Whether the node is in maintenance.
    pub fn is_in_maintenance(&self) -> bool {
        self.conditions.iter().any(|condition| {
            condition.status == ConditionStatus::True
                && MAINTENANCE_CONDITIONS.contains(&condition.kind.as_str())
        })
    }

    /// The taint with this key and effect, if the node has it.
    pub fn taint(&self, key: &str, effect: TaintEffect) -> Option<&Taint> {
        self.taints.iter().find(|taint| taint.is(key, effect))
    }

    /// When the taint with this key and effect was added: its own `timeAdded`, or the creation of the node for a taint that it
    /// registered with.
    pub fn tainted_since(&self, key: &str, effect: TaintEffect) -> Option<Timestamp> {
        let added = self.taint(key, effect)?.time_added.as_deref();
        added.and_then(|at| at.parse().ok()).or(self.created)
    }

    /// Whether the cloud provider and Karpenter have set up the node. Before that it may lack labels, so `DaemonSet`s that
    /// select nodes by them do not run yet.
    pub fn is_introduced(&self) -> bool {
        let mut taints = self.taints.iter();
        !taints.any(|taint| INTRODUCTION_TAINTS.contains(&taint.key.as_str()))
    }

    /// The value of one of our annotations.
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

    /// The value of our annotation with this prefix for this ID.
    pub fn annotation_about(&self, prefix: &'static str, id: &str) -> Option<&str> {
        let mut annotations = self.annotations_about(prefix);
        annotations.find_map(|(it, value)| (it == id).then_some(value))
    }
}

/// A Node on the wire.
#[derive(Debug, Clone, Default, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::core::v1::Node")]
#[serde(remote = "Self", default)]
pub struct NodeObject {
    metadata: Metadata,
    spec: Field<Spec>,
    status: Field<Status>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    taints: Field<Vec<Field<TaintObject>>>,
    #[serde(rename = "providerID")]
    provider_id: Field<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Field<Vec<Field<ConditionObject>>>,
    allocatable: Field<Resources>,
    node_info: Field<NodeInfo>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeInfo {
    #[serde(rename = "bootID")]
    boot_id: Field<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConditionObject {
    #[serde(rename = "type")]
    kind: Field<String>,
    status: Field<String>,
    reason: Field<String>,
    message: Field<String>,
    last_heartbeat_time: Field<Timestamp>,
    last_transition_time: Field<Timestamp>,
}

items!(NodeObject);
objects!(Spec, Status, NodeInfo, ConditionObject);

impl ConditionObject {
    fn status(&self) -> ConditionStatus {
        match self.status.as_readable().map(String::as_str) {
            Some("True") => ConditionStatus::True,
            Some("False") => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        }
    }

    /// The later of heartbeat and transition.
    fn written_at(&self) -> Option<Timestamp> {
        let times = [&self.last_heartbeat_time, &self.last_transition_time];
        times
            .into_iter()
            .filter_map(Field::as_readable)
            .max()
            .copied()
    }
}

impl NodeObject {
    /// The node.
    ///
    /// # Errors
    /// The object is unreadable. Fields that decisions depend on must be well-formed; other malformed fields count as absent.
    pub fn read(self) -> Result<Node, Unreadable> {
        let meta = NodeMetadata::try_from(self.metadata)?;
        let spec = self.spec.or_unreadable("spec")?.unwrap_or_default();
        let status = self.status.or_unreadable("status")?.unwrap_or_default();
        let taints = spec.taints.elements_or_unreadable("spec.taints")?;
        let conditions = status.conditions.or_unreadable("status.conditions")?;
        let node_info = status.node_info.if_readable().unwrap_or_default();
        Ok(Node {
            name: meta.name,
            uid: meta.uid,
            do_not_repair: meta.do_not_repair,
            created: meta.created,
            deleting: meta.deleting,
            labels: meta.labels,
            annotations: meta.annotations,
            provider_id: spec
                .provider_id
                .if_readable()
                .filter(|id| !id.is_empty())
                .map(Arc::from),
            taints: taints
                .into_iter()
                .map(Taint::try_from)
                .collect::<Result<_, _>>()?,
            conditions: conditions
                .into_iter()
                .flatten()
                .filter_map(|condition| NodeCondition::of(condition.if_readable()?))
                .collect(),
            resources: status.allocatable.if_readable().unwrap_or_default(),
            boot_id: node_info.boot_id.if_readable().unwrap_or_default().into(),
        })
    }
}

impl TryFrom<MetadataObject> for NodeMetadata {
    type Error = Unreadable;

    fn try_from(object: MetadataObject) -> Result<Self, Unreadable> {
        object.metadata.try_into()
    }
}

impl TryFrom<Metadata> for NodeMetadata {
    type Error = Unreadable;

    fn try_from(metadata: Metadata) -> Result<Self, Unreadable> {
        let meta = metadata.read_with_uid()?;
        Ok(Self {
            name: meta::name(&meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            version: meta::resource_version(&meta),
            do_not_repair: karpenter::forbids_repair(&meta),
            created: meta.creation_timestamp.map(|time| time.0),
            deleting: meta.deletion_timestamp.is_some(),
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.map(annotations::own),
        })
    }
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
    /// The condition; `None` if it has no type.
    fn of(object: ConditionObject) -> Option<Self> {
        Some(Self {
            status: object.status(),
            written: object.written_at(),
            kind: object.kind.if_readable()?,
            reason: object.reason.if_readable().unwrap_or_default(),
            message: object.message.if_readable().unwrap_or_default(),
            transition: object.last_transition_time.if_readable(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(value: serde_json::Value) -> Node {
        let object: NodeObject = serde_json::from_value(value).unwrap();
        object.read().unwrap()
    }

    #[test]
    fn a_node_is_decoded_without_what_is_never_read() {
        let node = node(json!({
            "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "annotations": {"kubelet": "x"},
                         "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"fieldsV1": {"f:x": {}}}]},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"images": [{"names": ["a"]}],
                       "allocatable": {"nvidia.com/gpu": "2", "example.com/none": "0",
                                       "hugepages-2Mi": "64Mi", "hugepages-1Gi": "0"},
                       "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": null},
                                      {"type": "Odd", "status": "Maybe"}]}
        }));
        assert_eq!((&*node.name, &*node.uid), ("n", "u"));
        assert_eq!(node.annotations, Some(BTreeMap::new()));
        let units = ["nvidia.com/gpu", "example.com/none", "hugepages-1Gi"]
            .map(|resource| node.resources.units(resource));
        assert_eq!(units, [2, 0, 0]);
        assert!(node.resources.has("hugepages-2Mi"));
        assert_eq!(
            node.condition("Ready").unwrap().status,
            ConditionStatus::True
        );
        assert_eq!(
            node.condition("Odd").unwrap().status,
            ConditionStatus::Unknown
        );
    }
}
