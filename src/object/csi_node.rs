//! The `CSINode`: the CSI drivers that are registered on a node.

use std::sync::Arc;

use serde::Deserialize;

use super::field::{Field, Unreadable, items, objects};
use super::meta::{self, Metadata};

/// A node's registered CSI drivers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiNode {
    /// The object's name, which is the node's.
    pub name: Arc<str>,
    /// The UID of the Node that owns the object, if it has an owner.
    pub owner: Option<Arc<str>>,
    /// The registered drivers.
    pub drivers: Vec<CsiDriver>,
}

/// A CSI driver registered on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriver {
    /// The driver's name.
    pub name: String,
    /// Whether the driver reports how many volumes the node can attach (`allocatable.count`).
    pub has_allocatable_count: bool,
}

impl CsiNode {
    /// The driver of this name, if it is registered.
    #[must_use]
    pub fn driver(&self, name: &str) -> Option<&CsiDriver> {
        self.drivers.iter().find(|driver| driver.name == name)
    }

    /// Whether the object belongs to this node, and not to an earlier one of the same name.
    #[must_use]
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

items!(CsiNodeObject);
objects!(Spec, DriverObject, Allocatable);

impl CsiNodeObject {
    /// The node's registered drivers.
    ///
    /// # Errors
    /// The object is unreadable. A driver without a name counts as absent.
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
        Ok(CsiNode {
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
