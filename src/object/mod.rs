//! The cluster's objects as compact values, decoded straight from the wire. Each file has a value (`Node`, `Pod`, ...) and the
//! wire type that it is decoded through (`NodeObject`, ...), which lists only the fields that are read, so that everything else
//! is skipped while parsing and never allocated. Decoding a wire type never fails: its `read` returns the value, or says why
//! the object is [`Unreadable`].

mod annotations;
mod csi_node;
mod daemon_set;
mod field;
pub mod karpenter;
mod meta;
mod node;
mod pod;
mod resource_slice;
mod resources;
mod rule;
mod taint;
#[cfg(test)]
mod tests;
mod whole;

pub(crate) use csi_node::CsiNodeObject;
pub use csi_node::{CsiNode, UnhealthyStorage};
pub(crate) use daemon_set::NodeAffinityTerm;
pub use daemon_set::{DaemonSet, DaemonSetObject};
pub use field::Unreadable;
pub use karpenter::{NodeClaim, NodePool};
pub(crate) use karpenter::{NodeClaimObject, NodePoolObject};
pub use meta::{Metadata, MetadataObject, ObjectKey, Version};
pub(crate) use meta::{name, resource_version, version};
pub(crate) use node::KUBELETS_CONDITIONS;
pub use node::{Node, NodeCondition, NodeMetadata, NodeObject};
pub use pod::{Pod, PodObject};
pub(crate) use pod::{PodPhase, PodReady};
pub use resource_slice::{ResourceSlice, ResourceSliceObject};
pub use resources::Resources;
pub use rule::RuleObject;

pub use taint::{Taint, Toleration};
