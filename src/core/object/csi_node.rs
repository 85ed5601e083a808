//! The `CSINode`: the CSI drivers that are registered on a node, and what they report of their storage.

use std::sync::Arc;

use k8s_openapi::api::storage::v1::VolumeNodeResources;
use serde::Deserialize;

use super::kind::ResourceKind;
use super::watched::{Kind, Lean, Unreadable, lenient};
use crate::text::{cut, printable};

/// The longest text that is kept of a driver's report, in bytes: the API lets a driver write 1,024 characters for each node.
const MAX_TEXT: usize = 256;
/// The worst state of storage that drivers report.
const UNREACHABLE: &str = "StorageUnreachable";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiNode {
    /// The UID of the Node that owns the object, if it has an owner.
    pub owner: Option<Arc<str>>,
    /// Sorted by name.
    pub drivers: Vec<CsiDriver>,
    /// The drivers that report unhealthy storage (KEP-1432, Kubernetes 1.37); such a report is no registration.
    pub unhealthy: Vec<UnhealthyStorage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriver {
    pub name: String,
    /// Whether the driver reports how many volumes the node can attach (`allocatable.count`).
    pub has_allocatable_count: bool,
}

/// What a CSI driver reports to be wrong with its storage, as seen from the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnhealthyStorage {
    pub driver: String,
    /// The worst state that it reports: `StorageUnreachable`, `StorageDegraded`, or one that later versions add.
    pub status: String,
    pub reason: String,
    pub message: String,
    pub more: usize,
}

impl CsiNode {
    pub fn driver(&self, name: &str) -> Option<&CsiDriver> {
        let at = self.drivers.partition_point(|it| *it.name < *name);
        self.drivers.get(at).filter(|it| it.name == name)
    }

    /// Whether the object belongs to this node, and not to an earlier one of the same name.
    pub fn is_of(&self, node_uid: &str) -> bool {
        self.owner.as_deref().is_none_or(|owner| owner == node_uid)
    }
}

#[derive(Debug, Deserialize)]
pub struct Spec {
    drivers: Option<Vec<DriverObject>>,
}

#[derive(Debug, Deserialize)]
struct DriverObject {
    name: String,
    allocatable: Option<VolumeNodeResources>,
}

/// What drivers report is malformed where a later version of the API gives it another form. It counts as absent then.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default, deserialize_with = "lenient")]
    storage_health: Vec<StorageHealth>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StorageHealth {
    name: String,
    #[serde(default)]
    health_conditions: Vec<HealthCondition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HealthCondition {
    status: String,
    reason: String,
    message: String,
}

impl StorageHealth {
    /// What is wrong. Drivers report only what is; a condition without a status says nothing.
    fn unhealthy(mut self) -> Option<UnhealthyStorage> {
        let conditions = &mut self.health_conditions;
        conditions.retain(|condition| !condition.status.is_empty());
        let more = conditions.len().checked_sub(1)?;
        let worst = conditions.iter().position(|it| it.status == UNREACHABLE);
        let condition = conditions.swap_remove(worst.unwrap_or_default());
        Some(UnhealthyStorage {
            driver: self.name,
            status: printable(cut(condition.status, MAX_TEXT)),
            reason: printable(cut(condition.reason, MAX_TEXT)),
            message: printable(cut(condition.message, MAX_TEXT)),
            more,
        })
    }
}

impl Kind for CsiNode {
    const RESOURCE: ResourceKind = ResourceKind::CsiNodes;
    const BUDGET: usize = 256 << 10;
    type Spec = Spec;
    type Status = Status;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        let drivers = object.spec.take().and_then(|spec| spec.drivers);
        let drivers = drivers.into_iter().flatten().map(|driver| CsiDriver {
            name: driver.name,
            has_allocatable_count: driver.allocatable.is_some_and(|it| it.count.is_some()),
        });
        let mut drivers: Vec<_> = drivers.collect();
        drivers.sort_by(|a, b| a.name.cmp(&b.name));
        let reports = object.status.take().map(|status| status.storage_health);
        let unhealthy = (reports.into_iter().flatten()).filter_map(StorageHealth::unhealthy);
        Ok(Self {
            owner: object.owner(|owner| owner.kind == "Node"),
            drivers,
            unhealthy: unhealthy.collect(),
        })
    }
}
