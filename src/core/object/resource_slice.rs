//! `ResourceSlice`s: the DRA devices that a driver publishes for a node.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::kind::ResourceKind;
use super::watched::{Kind, Lean, Unreadable};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceSlice {
    /// The node that has the devices; empty if they belong to no single node.
    pub node: Arc<str>,
    pub pool: Arc<str>,
    /// The generation of the pool. Only the newest counts.
    pub generation: i64,
    /// How many slices the pool has at this generation.
    pub of: usize,
    pub devices: usize,
    /// How many of them have a taint with effect `NoSchedule` or `NoExecute`.
    pub tainted: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    node_name: Option<Arc<str>>,
    pool: Pool,
    devices: Option<Vec<Device>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Pool {
    name: Arc<str>,
    generation: i64,
    resource_slice_count: i64,
}

#[derive(Debug, Deserialize)]
struct Device {
    taints: Option<Vec<DeviceTaint>>,
}

#[derive(Debug, Deserialize)]
struct DeviceTaint {
    effect: String,
}

impl Kind for ResourceSlice {
    const RESOURCE: ResourceKind = ResourceKind::ResourceSlices;
    type Spec = Spec;
    type Status = IgnoredAny;

    fn read(object: &mut Lean<Self>) -> Result<Self, Unreadable> {
        let spec = object.spec.take().unwrap_or_default();
        let devices = spec.devices.unwrap_or_default();
        let declared = spec.pool.resource_slice_count;
        let keeps_off = |it: &DeviceTaint| it.effect == "NoSchedule" || it.effect == "NoExecute";
        let is_tainted = |device: &&Device| device.taints.iter().flatten().any(keeps_off);
        Ok(Self {
            node: spec.node_name.unwrap_or_default(),
            pool: spec.pool.name,
            generation: spec.pool.generation,
            of: declared.try_into().unwrap_or_default(),
            tainted: devices.iter().filter(is_tainted).count(),
            devices: devices.len(),
        })
    }

    fn node_name(&self) -> Option<&str> {
        Some(&self.node)
    }
}
