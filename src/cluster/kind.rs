//! The kinds of objects that are read.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::storage::v1::CSIDriver;
use kube::Resource;
use serde::{Deserialize, Serialize};

use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, Pod, ResourceSlice, RuleObject, Watched,
};

/// One line for each kind: its type, its name in the API, and what is unknown without it.
macro_rules! kinds {
    ($($kind:ident $object:ty, $name:literal: $tells:literal;)+) => {
        /// The kinds of objects that are read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum ResourceKind {
            $(#[serde(rename = $name)] $kind,)+
        }

        impl ResourceKind {
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),+];

            /// The resource's name in the API.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// What is unknown without this kind.
            pub(crate) const fn tells(self) -> &'static str {
                match self { $(Self::$kind => $tells,)+ }
            }

            /// The resource's path, in one namespace or in all.
            pub(crate) fn path(self, namespace: Option<&str>) -> String {
                match self { $(Self::$kind => <$object>::url_path(&(), namespace),)+ }
            }

            /// The kind of this name in manifests.
            pub(crate) fn of_manifest(kind: &str) -> Option<Self> {
                $(if <$object>::kind(&()) == kind { return Some(Self::$kind); })+
                None
            }
        }
    };
}

kinds! {
    Rules Watched<RuleObject>, "nodereadinessrules": "which nodes are held is unknown";
    Nodes Watched<Node>, "nodes": "the state of nodes is unknown";
    CsiNodes Watched<CsiNode>, "csinodes": "whether CSI drivers are registered is unknown";
    CsiDrivers CSIDriver, "csidrivers": "which CSI drivers the scheduler waits for is unknown";
    DaemonSets Watched<DaemonSet>, "daemonsets": "which DaemonSets nodes wait for is unknown";
    Pods Watched<Pod>, "pods": "whether critical pods are Ready is unknown";
    ResourceSlices Watched<ResourceSlice>, "resourceslices": "which devices nodes have is unknown";
    Leases Lease, "leases": "who leads is unknown";
    Events Event, "events": "the results of probes are unknown";
    ConfigMaps ConfigMap, "configmaps":
        "the default critical component classes are assumed; --config FILE names others";
    NodeClaims Watched<NodeClaim>, "nodeclaims": "whether late nodes are repaired is unknown";
    NodePools Watched<NodePool>, "nodepools": "whether late nodes are repaired is unknown";
    Deployments Deployment, "deployments":
        "the controller's arguments, and whether Cluster Autoscaler knows the taints, are unknown";
}

impl ResourceKind {
    /// Whether a cluster can be without this resource.
    pub(crate) const fn may_be_absent(self) -> bool {
        matches!(
            self,
            Self::Rules | Self::NodeClaims | Self::NodePools | Self::ResourceSlices
        )
    }

    /// One of its objects, for people.
    pub(crate) const fn singular(self) -> &'static str {
        match self {
            Self::Nodes => "node",
            Self::Pods => "pod",
            Self::DaemonSets => "DaemonSet",
            Self::Rules => "rule",
            kind => kind.name(),
        }
    }

    pub(crate) const fn is_namespaced(self) -> bool {
        matches!(self, Self::Pods | Self::DaemonSets)
    }

    /// The kind's file in a dump.
    pub(crate) fn file(self) -> String {
        format!("{}.json", self.name())
    }
}
