//! The kinds of objects that are watched.

use std::sync::Arc;

use crate::condition::ComponentGroup;
use crate::object::ObjectKey;
use crate::selector::Selector;

/// The kinds of watches there are; pods and `DaemonSet`s have one for each class, and one for each `DaemonSet` that rules wait
/// for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Nodes.
    Nodes,
    /// `CSINode`s.
    CsiNodes,
    /// Pods of a group.
    Pods(ComponentGroup),
    /// `DaemonSet`s of a group.
    DaemonSets(ComponentGroup),
    /// Rules.
    Rules,
    /// Karpenter's `NodeClaim`s. Nothing but repair waits for them.
    NodeClaims,
    /// Karpenter's `NodePool`s. Nothing but repair waits for them.
    NodePools,
}

impl Watch {
    /// One for each kind of object.
    pub const KINDS: [Self; 7] = [
        Self::Nodes,
        Self::CsiNodes,
        Self::Pods(ComponentGroup::Class(0)),
        Self::DaemonSets(ComponentGroup::Class(0)),
        Self::Rules,
        Self::NodeClaims,
        Self::NodePools,
    ];

    /// The kind of the objects that are watched.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Nodes => "Node",
            Self::CsiNodes => "CSINode",
            Self::Pods(_) => "Pod",
            Self::DaemonSets(_) => "DaemonSet",
            Self::Rules => "NodeReadinessRule",
            Self::NodeClaims => "NodeClaim",
            Self::NodePools => "NodePool",
        }
    }

    /// What is watched, as the API calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::CsiNodes => "csinodes.storage.k8s.io",
            Self::Pods(_) => "pods",
            Self::DaemonSets(_) => "daemonsets.apps",
            Self::Rules => "nodereadinessrules.readiness.node.x-k8s.io",
            Self::NodeClaims => "nodeclaims.karpenter.sh",
            Self::NodePools => "nodepools.karpenter.sh",
        }
    }

    /// Whether a cluster may have no such resource.
    #[must_use]
    pub fn is_optional(self) -> bool {
        matches!(self, Self::NodeClaims | Self::NodePools)
    }
}

/// What is watched of its kind by a watch that is begun while the engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The `DaemonSet` of this name.
    DaemonSet(ObjectKey),
    /// Those pods of a namespace with labels that this selects.
    Pods(Arc<str>, Selector),
}
