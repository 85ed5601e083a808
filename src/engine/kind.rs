//! The kinds of watched objects.

use std::sync::Arc;

use crate::condition::ComponentGroup;
use crate::object::ObjectKey;
use crate::selector::Selector;

/// Identifies a watch. Pods and `DaemonSet`s have one for each class, and one for each `DaemonSet` that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Nodes.
    Nodes,
    /// `CSINode`s.
    CsiNodes,
    /// Pods of a component group.
    Pods(ComponentGroup),
    /// `DaemonSet`s of a component group.
    DaemonSets(ComponentGroup),
    /// Rules.
    Rules,
    /// Karpenter's `NodeClaim`s. Only repair waits for them.
    NodeClaims,
    /// Karpenter's `NodePool`s. Only repair waits for them.
    NodePools,
}

impl Watch {
    /// One watch of each kind.
    pub const KINDS: [Self; 7] = [
        Self::Nodes,
        Self::CsiNodes,
        Self::Pods(ComponentGroup::Class(0)),
        Self::DaemonSets(ComponentGroup::Class(0)),
        Self::Rules,
        Self::NodeClaims,
        Self::NodePools,
    ];

    /// Its kind, its resource, and the resource's short name.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Nodes => ["Node", "nodes", "nodes"],
            Self::CsiNodes => ["CSINode", "csinodes.storage.k8s.io", "csinodes"],
            Self::Pods(_) => ["Pod", "pods", "pods"],
            Self::DaemonSets(_) => ["DaemonSet", "daemonsets.apps", "daemonsets"],
            Self::Rules => [
                "NodeReadinessRule",
                "nodereadinessrules.readiness.node.x-k8s.io",
                "rules",
            ],
            Self::NodeClaims => ["NodeClaim", "nodeclaims.karpenter.sh", "nodeclaims"],
            Self::NodePools => ["NodePool", "nodepools.karpenter.sh", "nodepools"],
        }
    }

    /// The kind of the watched objects.
    #[must_use]
    pub fn kind(self) -> &'static str {
        self.names()[0]
    }

    /// The resource, as in the API's URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names()[1]
    }

    /// What metrics call the resource.
    pub(super) fn short_name(self) -> &'static str {
        self.names()[2]
    }

    /// Whether a cluster may lack this resource.
    #[must_use]
    pub fn is_optional(self) -> bool {
        matches!(self, Self::NodeClaims | Self::NodePools)
    }
}

/// The objects that a watch selects, for watches that start while the engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The `DaemonSet` of this name.
    DaemonSet(ObjectKey),
    /// The pods of a namespace that match a label selector.
    Pods(Arc<str>, Selector),
}
