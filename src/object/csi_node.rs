//! The `CSINode`: which CSI drivers are registered on a node.

use std::sync::Arc;

use kube::api::ObjectMeta;
use serde::Deserialize;

use super::meta::{self, Version};

/// A node's registered CSI drivers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiNode {
    /// The name, which is the node's.
    pub name: Arc<str>,
    /// The version of this state.
    pub version: Version,
    /// The UID of the Node that owns the object, if one does.
    pub owner: Option<Arc<str>>,
    /// The registered drivers.
    pub drivers: Vec<CsiDriver>,
}

/// A CSI driver registered on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriver {
    /// The driver's name.
    pub name: String,
    /// Whether the driver says how many volumes the node can attach (`allocatable.count`).
    pub has_allocatable_count: bool,
}

impl CsiNode {
    /// The driver of this name, if it is registered.
    #[must_use]
    pub fn driver(&self, name: &str) -> Option<&CsiDriver> {
        self.drivers.iter().find(|driver| driver.name == name)
    }

    /// Whether the object speaks of this node, and not of one that had the same name before.
    #[must_use]
    pub fn is_of(&self, node_uid: &str) -> bool {
        self.owner.as_deref().is_none_or(|owner| owner == node_uid)
    }
}

/// A `CSINode` on the wire.
#[derive(Debug, Clone, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::storage::v1::CSINode")]
pub struct CsiNodeObject {
    #[serde(deserialize_with = "meta::pruned")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    drivers: Option<Vec<DriverObject>>,
}

#[derive(Debug, Clone, Deserialize)]
struct DriverObject {
    name: String,
    #[serde(default)]
    allocatable: Option<Allocatable>,
}

#[derive(Debug, Clone, Deserialize)]
struct Allocatable {
    #[serde(default)]
    count: Option<i32>,
}

impl From<CsiNodeObject> for CsiNode {
    fn from(object: CsiNodeObject) -> Self {
        let meta = object.metadata;
        Self {
            name: meta::name(&meta),
            version: meta::resource_version(&meta),
            owner: meta
                .owner_references
                .iter()
                .flatten()
                .find(|owner| owner.kind == "Node")
                .map(|owner| owner.uid.as_str().into()),
            drivers: object
                .spec
                .drivers
                .unwrap_or_default()
                .into_iter()
                .map(|driver| CsiDriver {
                    name: driver.name,
                    has_allocatable_count: driver
                        .allocatable
                        .and_then(|allocatable| allocatable.count)
                        .is_some(),
                })
                .collect(),
        }
    }
}
