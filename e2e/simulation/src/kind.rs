//! The kinds of object that the model knows: their paths, their subresources and how they are deleted.

use std::fmt;

/// A kind of object that Nodegate reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Node,
    Pod,
    DaemonSet,
    /// A `CSINode`: the CSI drivers of a node.
    CsiNode,
    /// A `ResourceSlice`: DRA devices of a node.
    ResourceSlice,
    NodeReadinessRule,
    /// Karpenter's request for a node.
    NodeClaim,
    /// A Karpenter `NodePool`, the template of `NodeClaim`s.
    NodePool,
}

/// Identifies an object. Ordered as the API server lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// The key of a cluster-scoped object.
    pub fn cluster(kind: Kind, name: &str) -> Self {
        Self::namespaced(kind, "", name)
    }

    /// The key of an object in a namespace.
    pub fn namespaced(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
        } = self;
        write!(formatter, "{} ", kind.plural())?;
        if !namespace.is_empty() {
            write!(formatter, "{namespace}/")?;
        }
        write!(formatter, "{name}")
    }
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Node,
        Self::Pod,
        Self::DaemonSet,
        Self::CsiNode,
        Self::ResourceSlice,
        Self::NodeReadinessRule,
        Self::NodeClaim,
        Self::NodePool,
    ];

    /// The kind and its group and version, as objects carry them, and the plural of the resource, as in paths.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Node => ["Node", "v1", "nodes"],
            Self::Pod => ["Pod", "v1", "pods"],
            Self::DaemonSet => ["DaemonSet", "apps/v1", "daemonsets"],
            Self::CsiNode => ["CSINode", "storage.k8s.io/v1", "csinodes"],
            Self::ResourceSlice => ["ResourceSlice", "resource.k8s.io/v1", "resourceslices"],
            Self::NodeReadinessRule => [
                "NodeReadinessRule",
                "readiness.node.x-k8s.io/v1alpha1",
                "nodereadinessrules",
            ],
            Self::NodeClaim => ["NodeClaim", "karpenter.sh/v1", "nodeclaims"],
            Self::NodePool => ["NodePool", "karpenter.sh/v1", "nodepools"],
        }
    }

    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    pub fn api_version(self) -> &'static str {
        self.names()[1]
    }

    pub fn plural(self) -> &'static str {
        self.names()[2]
    }

    /// Whether its objects are namespaced.
    pub fn is_namespaced(self) -> bool {
        matches!(self, Self::Pod | Self::DaemonSet)
    }

    /// Whether a `CustomResourceDefinition` defines it.
    pub fn is_custom(self) -> bool {
        matches!(
            self,
            Self::NodeReadinessRule | Self::NodeClaim | Self::NodePool
        )
    }

    /// Whether only a status subresource writes its status.
    pub fn has_status(self) -> bool {
        !matches!(self, Self::CsiNode | Self::ResourceSlice)
    }

    /// Whether a created object keeps the status in the request.
    pub(crate) fn is_created_with_status(self) -> bool {
        self == Self::Node
    }

    /// Whether its objects count a generation.
    pub(crate) fn has_generation(self) -> bool {
        self.is_custom() || matches!(self, Self::Pod | Self::DaemonSet | Self::ResourceSlice)
    }
}
