//! The `CSINode`: the CSI drivers that are registered on a node, and what they report of their storage.

use std::sync::Arc;

use serde::Deserialize;

use super::field::{Field, Unreadable, items, objects};
use super::meta::{self, Metadata};
use crate::wording::cut;

/// The longest text that is kept of a driver's report, in bytes: the API lets a driver write 1,024 characters for each node.
const MAX_TEXT: usize = 256;
/// The worst state of storage that drivers report.
const UNREACHABLE: &str = "StorageUnreachable";

/// A node's registered CSI drivers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiNode {
    /// The object's name, which is the node's.
    pub name: Arc<str>,
    /// The UID of the Node that owns the object, if it has an owner.
    pub owner: Option<Arc<str>>,
    /// The registered drivers.
    pub drivers: Vec<CsiDriver>,
    /// The drivers that report their storage as unhealthy (KEP-1432, Kubernetes 1.37). Apart from `drivers`, since a report is no
    /// registration.
    pub unhealthy: Vec<UnhealthyStorage>,
}

/// A CSI driver registered on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriver {
    /// The driver's name.
    pub name: String,
    /// Whether the driver reports how many volumes the node can attach (`allocatable.count`).
    pub has_allocatable_count: bool,
}

/// What a CSI driver reports to be wrong with its storage, as seen from the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnhealthyStorage {
    /// The driver's name.
    pub driver: String,
    /// The worst state that it reports: `StorageUnreachable`, `StorageDegraded`, or one that later versions add.
    pub status: String,
    /// The driver's reason for it, in at most 256 bytes.
    pub reason: String,
    /// The driver's message, in at most 256 bytes; may be empty.
    pub message: String,
    /// How many other conditions it reports.
    pub more: usize,
}

impl CsiNode {
    /// The driver of this name, if it is registered.
    pub fn driver(&self, name: &str) -> Option<&CsiDriver> {
        self.drivers.iter().find(|driver| driver.name == name)
    }

    /// What is wrong with this driver's storage, if anything is.
    pub fn unhealthy_storage(&self, driver: &str) -> Option<&UnhealthyStorage> {
        self.unhealthy.iter().find(|it| it.driver == driver)
    }

    /// Whether the object belongs to this node, and not to an earlier one of the same name.
    pub fn is_of(&self, node_uid: &str) -> bool {
        self.owner.as_deref().is_none_or(|owner| owner == node_uid)
    }
}

/// A `CSINode` on the wire.
#[derive(Debug, Clone, Default, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::storage::v1::CSINode")]
#[serde(remote = "Self", default)]
pub struct CsiNodeObject {
    metadata: Metadata,
    spec: Field<Spec>,
    status: Field<Status>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    drivers: Field<Vec<Field<DriverObject>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct DriverObject {
    name: Field<String>,
    allocatable: Field<Allocatable>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Allocatable {
    count: Field<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    storage_health: Field<Vec<Field<StorageHealth>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StorageHealth {
    name: Field<String>,
    health_conditions: Field<Vec<Field<HealthCondition>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct HealthCondition {
    status: Field<String>,
    reason: Field<String>,
    message: Field<String>,
}

items!(CsiNodeObject);
objects!(
    Spec,
    DriverObject,
    Allocatable,
    Status,
    StorageHealth,
    HealthCondition
);

impl StorageHealth {
    /// What is wrong. Drivers report only what is; a condition without a status says nothing.
    fn unhealthy(self) -> Option<UnhealthyStorage> {
        let driver = self.name.if_readable()?;
        let text = |field: Field<String>| cut(field.if_readable().unwrap_or_default(), MAX_TEXT);
        let mut conditions: Vec<_> = self
            .health_conditions
            .readable_elements()
            .map(|it| (text(it.status), it.reason, it.message))
            .filter(|(status, ..)| !status.is_empty())
            .collect();
        let worst = conditions
            .iter()
            .position(|(status, ..)| status == UNREACHABLE);
        let more = conditions.len().checked_sub(1)?;
        let (status, reason, message) = conditions.swap_remove(worst.unwrap_or_default());
        Some(UnhealthyStorage {
            driver,
            status,
            reason: text(reason),
            message: text(message),
            more,
        })
    }
}

impl CsiNodeObject {
    /// The node's registered drivers, and what they report of their storage.
    ///
    /// # Errors
    /// The object is unreadable. A driver without a name counts as absent, and so does a report that is malformed.
    pub fn read(self) -> Result<CsiNode, Unreadable> {
        let meta = self.metadata.read()?;
        let spec = self.spec.or_unreadable("spec")?.unwrap_or_default();
        let drivers = spec.drivers.or_unreadable("spec.drivers")?;
        let driver = |driver: DriverObject| {
            let allocatable = driver.allocatable.as_readable();
            Some(CsiDriver {
                has_allocatable_count: allocatable
                    .is_some_and(|allocatable| allocatable.count.as_readable().is_some()),
                name: driver.name.if_readable()?,
            })
        };
        let status = self.status.if_readable().unwrap_or_default();
        let reports = status.storage_health.readable_elements();
        Ok(CsiNode {
            unhealthy: reports.filter_map(StorageHealth::unhealthy).collect(),
            name: meta::name(&meta),
            owner: meta
                .owner_references
                .iter()
                .flatten()
                .find(|owner| owner.kind == "Node")
                .map(|owner| owner.uid.as_str().into()),
            drivers: drivers
                .into_iter()
                .flatten()
                .filter_map(|field| driver(field.if_readable()?))
                .collect(),
        })
    }
}
