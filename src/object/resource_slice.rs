//! `ResourceSlice`s: the DRA devices that a driver publishes for a node.

use std::sync::Arc;

use serde::Deserialize;

use super::field::{Field, Unreadable, items, objects};
use super::meta::{self, Metadata};

/// The parts of a `ResourceSlice` that decisions need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceSlice {
    /// The object's name.
    pub name: Arc<str>,
    /// The node that has the devices; empty if they belong to no single node.
    pub node: Arc<str>,
    /// The pool that the slice is part of.
    pub pool: Arc<str>,
    /// The generation of the pool. Only the newest counts.
    pub generation: i64,
    /// How many slices the pool has at this generation.
    pub of: usize,
    /// How many devices are in this slice.
    pub devices: usize,
    /// How many of them have a taint with effect `NoSchedule` or `NoExecute`.
    pub tainted: usize,
}

/// A `ResourceSlice` on the wire.
#[derive(Debug, Clone, Default, Deserialize, kube::Resource)]
#[resource(inherit = "k8s_openapi::api::resource::v1::ResourceSlice")]
#[serde(remote = "Self", default)]
pub struct ResourceSliceObject {
    metadata: Metadata,
    spec: Field<Spec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Field<String>,
    pool: Field<Pool>,
    devices: Field<Vec<Field<Device>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Pool {
    name: Field<String>,
    generation: Field<i64>,
    resource_slice_count: Field<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Device {
    taints: Field<Vec<Field<DeviceTaint>>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct DeviceTaint {
    effect: Field<String>,
}

items!(ResourceSliceObject);
objects!(Spec, Pool, Device, DeviceTaint);

impl ResourceSliceObject {
    /// The node that has the devices, if that is readable.
    pub fn node_name(&self) -> Option<&str> {
        let name = self.spec.as_readable()?.node_name.as_readable()?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// The slice.
    ///
    /// # Errors
    /// The object is unreadable.
    pub fn read(self) -> Result<ResourceSlice, Unreadable> {
        let meta = self.metadata.read()?;
        let spec = self.spec.or_unreadable("spec")?.unwrap_or_default();
        let node = spec.node_name.or_unreadable("spec.nodeName")?;
        let pool = spec.pool.or_unreadable("spec.pool")?.unwrap_or_default();
        let name = pool.name.or_unreadable("spec.pool.name")?;
        let generation = pool.generation.or_unreadable("spec.pool.generation")?;
        let count = "spec.pool.resourceSliceCount";
        let of = pool.resource_slice_count.or_unreadable(count)?;
        let devices = spec.devices.elements_or_unreadable("spec.devices")?;
        let total = devices.len();
        let mut tainted = 0;
        for device in devices {
            let taints = "spec.devices.taints";
            let taints = device.taints.elements_or_unreadable(taints)?;
            let keeps_off = |taint: DeviceTaint| {
                let effect = taint.effect.if_readable();
                effect.is_some_and(|it| it == "NoSchedule" || it == "NoExecute")
            };
            tainted += usize::from(taints.into_iter().any(keeps_off));
        }
        Ok(ResourceSlice {
            name: meta::name(&meta),
            node: node.unwrap_or_default().into(),
            pool: name.unwrap_or_default().into(),
            generation: generation.unwrap_or_default(),
            of: of.and_then(|of| of.try_into().ok()).unwrap_or_default(),
            devices: total,
            tainted,
        })
    }
}
