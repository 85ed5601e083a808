//! What Nodegate reads of the cluster's objects: compact values, decoded straight from the wire.
//!
//! Each file has the value that is kept (`Node`, `Pod`, ...) and the wire type it is decoded through
//! (`NodeObject`, ...). A wire type lists only the fields that are read, so that everything else (managed
//! fields, images, volumes, containers) is skipped while parsing and never allocated. Nothing here decides.
//!
//! A wire type is decoded from anything at all, so that one object of an unexpected form takes neither its list nor its watch
//! with it. Its `read` then gives the value, or says why the object cannot be understood ([`Unreadable`]).

mod annotations;
mod csi_node;
mod daemon_set;
mod field;
pub mod karpenter;
mod meta;
mod node;
mod pod;
mod rule;
mod taint;
#[cfg(test)]
mod tests;
mod whole;

pub use csi_node::{CsiDriver, CsiNode, CsiNodeObject};
pub use daemon_set::{DaemonSet, DaemonSetObject, NodeAffinityTerm};
pub use field::Unreadable;
pub use karpenter::{NodeClaim, NodeClaimObject, NodePool, NodePoolObject};
pub use meta::{Metadata, MetadataObject, ObjectKey, Version};
pub(crate) use meta::{name, resource_version, version};
pub use node::{KUBELETS_CONDITIONS, Node, NodeCondition, NodeMetadata, NodeObject};
pub use pod::{Pod, PodObject, PodReady};
pub use rule::RuleObject;
pub use taint::{
    DAEMON_TOLERATIONS, NETWORK_UNAVAILABLE_TOLERATION, Taint, Toleration, TolerationOperator,
};
