//! The cluster's objects as compact values. [`Watched`] decodes any of them: only the fields that are read, and never with an
//! error; its `read` returns the value, or says why the object is [`Unreadable`].

mod budget;
mod csi_node;
mod daemon_set;
pub mod karpenter;
mod kept;
mod kind;
mod meta;
mod node;
mod pod;
mod resource_slice;
mod resources;
mod rule;
mod taint;
#[cfg(test)]
mod tests;
mod watched;

pub use csi_node::{CsiDriver, CsiNode, UnhealthyStorage};
pub(crate) use daemon_set::DELETION_LASTS;
pub use daemon_set::{DaemonSet, NodeAffinityTerm};
pub use karpenter::{NodeClaim, NodePool};
pub use kept::{Kept, State};
pub use kind::ResourceKind;
pub use meta::{ObjectKey, Version, name, resource_version, version, whole_second};
pub use node::{KUBELETS_CONDITIONS, Node, NodeCondition};
pub use pod::{Pod, PodPhase, PodReady, REVISION_LABEL};
pub use resource_slice::ResourceSlice;
pub use resources::Resources;
pub use rule::RuleObject;
pub use taint::Taint;
pub use watched::{Kind, Unreadable, Watched};
