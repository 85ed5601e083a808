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
