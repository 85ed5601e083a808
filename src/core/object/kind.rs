//! The kinds of objects that are read.

use kube::Resource;
use kube::core::{ApiResource, DynamicObject, GroupVersion, GroupVersionKind};
use serde::{Deserialize, Serialize};

/// One line for each kind: its plural and API group, its version, its name in manifests, and what is unknown without it.
macro_rules! kinds {
    ($($kind:ident $plural:literal $(in $group:literal)?, $version:literal $name:literal: $tells:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ResourceKind {
            $(#[serde(rename = $plural)] $kind,)+
        }

        impl ResourceKind {
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Its group (empty for Kubernetes' core), version, name in manifests, plural, and full name; and what is unknown without it.
            pub const fn row(self) -> [&'static str; 6] {
                match self {
                    $(Self::$kind => {
                        [concat!($($group)?), $version, $name, $plural, concat!($plural $(, ".", $group)?), $tells]
                    })+
                }
            }
        }
    };
}

kinds! {
    Rules "nodereadinessrules" in "readiness.node.x-k8s.io", "v1alpha1" "NodeReadinessRule":
        "which nodes are held is unknown";
    Nodes "nodes", "v1" "Node": "the state of nodes is unknown";
    CsiNodes "csinodes" in "storage.k8s.io", "v1" "CSINode": "whether CSI drivers are registered is unknown";
    CsiDrivers "csidrivers" in "storage.k8s.io", "v1" "CSIDriver":
        "which CSI drivers the scheduler waits for is unknown";
    DaemonSets "daemonsets" in "apps", "v1" "DaemonSet": "which DaemonSets nodes wait for is unknown";
    Pods "pods", "v1" "Pod": "whether critical pods are Ready is unknown";
    ResourceSlices "resourceslices" in "resource.k8s.io", "v1" "ResourceSlice": "which devices nodes have is unknown";
    Leases "leases" in "coordination.k8s.io", "v1" "Lease": "who leads is unknown";
    Events "events", "v1" "Event": "the results of probes are unknown";
    ConfigMaps "configmaps", "v1" "ConfigMap":
        "the default critical component classes are assumed; --config FILE names others";
    Namespaces "namespaces", "v1" "Namespace": "whether a namespace keeps pods of DaemonSets off nodes is unknown";
    NodeClaims "nodeclaims" in "karpenter.sh", "v1" "NodeClaim": "whether late nodes are repaired is unknown";
    NodePools "nodepools" in "karpenter.sh", "v1" "NodePool": "whether late nodes are repaired is unknown";
    Deployments "deployments" in "apps", "v1" "Deployment":
        "the controller's arguments, and whether Cluster Autoscaler knows the taints, are unknown";
}

impl ResourceKind {
    pub const fn kind(self) -> &'static str {
        self.row()[2]
    }

    pub fn api_version(self) -> String {
        let [group, version, ..] = self.row();
        GroupVersion::gv(group, version).api_version()
    }

    pub const fn name(self) -> &'static str {
        self.row()[3]
    }

    /// The resource's name with its group, as in the name of its `CustomResourceDefinition`.
    pub const fn full_name(self) -> &'static str {
        self.row()[4]
    }

    pub const fn tells(self) -> &'static str {
        self.row()[5]
    }

    pub fn of_manifest(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.kind() == kind)
    }

    /// The resource's path, in one namespace or in all.
    pub fn path(self, namespace: Option<&str>) -> String {
        let [group, version, kind, plural, ..] = self.row();
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        DynamicObject::url_path(&resource, namespace)
    }

    pub const fn may_be_absent(self) -> bool {
        matches!(
            self,
            Self::Rules | Self::NodeClaims | Self::NodePools | Self::ResourceSlices
        )
    }

    /// One of its objects, for people.
    pub const fn singular(self) -> &'static str {
        match self {
            Self::Nodes => "node",
            Self::Pods => "pod",
            Self::DaemonSets => "DaemonSet",
            Self::Rules => "rule",
            kind => kind.name(),
        }
    }

    pub const fn is_namespaced(self) -> bool {
        matches!(self, Self::Pods | Self::DaemonSets)
    }

    /// The kind's file in a dump.
    pub fn file(self) -> String {
        format!("{}.json", self.name())
    }
}
