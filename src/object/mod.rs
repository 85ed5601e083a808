//! What Nodegate reads of the cluster's objects: compact values, decoded straight from the wire.
//!
//! Each file has the value that is kept (`Node`, `Pod`, ...) and the wire type it is decoded through
//! (`NodeObject`, ...). A wire type lists only the fields that are read, so that everything else (managed
//! fields, images, volumes, containers) is skipped while parsing and never allocated. Nothing here decides.

mod csi_node;
mod daemon_set;
pub mod karpenter;
mod meta;
mod node;
mod pod;
mod rule;
mod taint;

pub use csi_node::{CsiDriver, CsiNode, CsiNodeObject};
pub use daemon_set::{DaemonSet, DaemonSetObject, NodeAffinityTerm};
pub use karpenter::{NodeClaim, NodeClaimObject, NodePool, NodePoolObject};
pub use meta::{MetadataObject, ObjectKey, Version};
pub(crate) use meta::{name, resource_version};
pub use node::{Node, NodeCondition, NodeMetadata, NodeObject, Written};
pub use pod::{Pod, PodObject, PodReady};
pub use rule::RuleObject;
pub use taint::{
    DAEMON_TOLERATIONS, NETWORK_UNAVAILABLE_TOLERATION, Taint, Toleration, TolerationOperator,
};
