//! The kinds of objects that are read, and filters for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::storage::v1::CSIDriver;
use kube::Resource;
use serde::{Deserialize, Serialize};

use crate::engine::kind::{Scope, Watch};
use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, Pod, ResourceSlice, RuleObject, Watched,
};
use crate::selector::Selector;

/// The kinds of objects that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceKind {
    /// `NodeReadinessRule`s.
    Rules,
    /// `Node`s.
    Nodes,
    /// `CSINode`s.
    CsiNodes,
    /// `CSIDriver`s.
    CsiDrivers,
    /// `DaemonSet`s.
    DaemonSets,
    /// `Pod`s.
    Pods,
    /// `ResourceSlice`s.
    ResourceSlices,
    /// The controller's Lease.
    Leases,
    /// Events about pods and nodes.
    Events,
    /// The controller's configuration.
    ConfigMaps,
    /// Karpenter's `NodeClaim`s.
    NodeClaims,
    /// Karpenter's `NodePool`s.
    NodePools,
    /// Deployments, such as the controller's and Cluster Autoscaler's.
    Deployments,
}

impl ResourceKind {
    /// All kinds that a dump contains.
    pub(crate) const ALL: [Self; 13] = [
        Self::Rules,
        Self::Nodes,
        Self::CsiNodes,
        Self::CsiDrivers,
        Self::DaemonSets,
        Self::Pods,
        Self::ResourceSlices,
        Self::Leases,
        Self::Events,
        Self::ConfigMaps,
        Self::NodeClaims,
        Self::NodePools,
        Self::Deployments,
    ];

    /// The kind of a watch's objects.
    pub(crate) const fn of(watch: Watch) -> Self {
        match watch {
            Watch::Nodes => Self::Nodes,
            Watch::CsiNodes => Self::CsiNodes,
            Watch::Pods(_) => Self::Pods,
            Watch::DaemonSets(_) => Self::DaemonSets,
            Watch::ResourceSlices(_) => Self::ResourceSlices,
            Watch::Rules => Self::Rules,
            Watch::NodeClaims => Self::NodeClaims,
            Watch::NodePools => Self::NodePools,
        }
    }

    /// Whether a cluster can be without this resource.
    pub(crate) const fn may_be_absent(self) -> bool {
        matches!(
            self,
            Self::Rules | Self::NodeClaims | Self::NodePools | Self::ResourceSlices
        )
    }

    /// The resource's name in the API.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rules => "nodereadinessrules",
            Self::Nodes => "nodes",
            Self::CsiNodes => "csinodes",
            Self::CsiDrivers => "csidrivers",
            Self::DaemonSets => "daemonsets",
            Self::Pods => "pods",
            Self::ResourceSlices => "resourceslices",
            Self::Leases => "leases",
            Self::Events => "events",
            Self::ConfigMaps => "configmaps",
            Self::NodeClaims => "nodeclaims",
            Self::NodePools => "nodepools",
            Self::Deployments => "deployments",
        }
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

    /// What is unknown without this kind.
    pub(crate) const fn tells(self) -> &'static str {
        match self {
            Self::Rules => "which nodes are held is unknown",
            Self::Nodes => "the state of nodes is unknown",
            Self::CsiNodes => "whether CSI drivers are registered is unknown",
            Self::CsiDrivers => "which CSI drivers the scheduler waits for is unknown",
            Self::DaemonSets => "which DaemonSets nodes wait for is unknown",
            Self::Pods => "whether critical pods are Ready is unknown",
            Self::ResourceSlices => "which devices nodes have is unknown",
            Self::Leases => "who leads is unknown",
            Self::Events => "the results of probes are unknown",
            Self::ConfigMaps => {
                "the default critical component classes are assumed; --config FILE names others"
            }
            Self::NodeClaims | Self::NodePools => "whether late nodes are repaired is unknown",
            Self::Deployments => {
                "the controller's arguments, and whether Cluster Autoscaler knows the taints, are unknown"
            }
        }
    }

    /// The resource's path, in one namespace or in all.
    pub(crate) fn path(self, namespace: Option<&str>) -> String {
        match self {
            Self::Rules => Watched::<RuleObject>::url_path(&(), None),
            Self::Nodes => Watched::<Node>::url_path(&(), None),
            Self::CsiNodes => Watched::<CsiNode>::url_path(&(), None),
            Self::CsiDrivers => CSIDriver::url_path(&(), None),
            Self::DaemonSets => Watched::<DaemonSet>::url_path(&(), namespace),
            Self::Pods => Watched::<Pod>::url_path(&(), namespace),
            Self::ResourceSlices => Watched::<ResourceSlice>::url_path(&(), None),
            Self::Leases => Lease::url_path(&(), namespace),
            Self::Events => Event::url_path(&(), namespace),
            Self::ConfigMaps => ConfigMap::url_path(&(), namespace),
            Self::NodeClaims => Watched::<NodeClaim>::url_path(&(), None),
            Self::NodePools => Watched::<NodePool>::url_path(&(), None),
            Self::Deployments => Deployment::url_path(&(), namespace),
        }
    }

    /// The kind's file in a dump.
    pub(crate) fn file(self) -> String {
        format!("{}.json", self.name())
    }
}

/// Selects objects of a kind that match all of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub labels: Option<Selector>,
    /// The DRA driver of a `ResourceSlice`.
    pub driver: Option<String>,
    pub binding: Binding,
    /// Whether bound pods that have ended are wanted, too.
    pub with_ended: bool,
    pub about: EventAbout,
}

/// The node that a pod is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Binding {
    #[default]
    Any,
    /// Bound to any node.
    Bound,
    /// Bound to this node.
    To(String),
    /// Not bound yet.
    Unbound,
}

/// The object that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum EventAbout {
    #[default]
    Anything,
    /// Warnings about the pod of this name.
    Pod(String),
    /// Warnings about any pod.
    Pods,
    Nodes,
}

/// The fields of an object that filters use.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outline {
    metadata: Meta,
    spec: Spec,
    status: Status,
    involved_object: Option<Involved>,
    #[serde(rename = "type")]
    event_type: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    namespace: String,
    name: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
    driver: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved {
    kind: String,
    name: String,
}

pub(crate) fn name(json: &str) -> Option<String> {
    let outline: Outline = serde_json::from_str(json).ok()?;
    Some(outline.metadata.name).filter(|name| !name.is_empty())
}

impl Filter {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::default()
        }
    }

    /// The controller's own objects, by the label in the manifests.
    pub(crate) fn of_controllers(namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            labels: Some(Selector::of_label("control-plane", "controller-manager")),
            ..Self::default()
        }
    }

    /// One object by namespace and name.
    pub(crate) fn one(namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..Self::named(name)
        }
    }

    /// The objects of what a rule names.
    pub(crate) fn of_scope(scope: &Scope) -> Self {
        let text = |it: &Option<Arc<str>>| it.as_ref().map(ToString::to_string);
        Self {
            namespace: text(&scope.namespace),
            name: text(&scope.name),
            labels: scope.labels.clone(),
            driver: text(&scope.driver),
            with_ended: scope.with_ended,
            ..Self::default()
        }
    }

    /// The field selector for the API server.
    pub(crate) fn fields(&self) -> Option<String> {
        const WARNS: &str = "involvedObject.kind=Pod,type=Warning";
        let runs = if self.with_ended {
            ""
        } else {
            ",status.phase!=Succeeded,status.phase!=Failed"
        };
        let name = self.name.as_ref();
        let driver = self.driver.as_ref();
        let parts: Vec<String> = [
            name.map(|name| format!("metadata.name={name}")),
            driver.map(|driver| format!("spec.driver={driver}")),
            match &self.binding {
                Binding::Any => None,
                Binding::Bound => Some(format!("spec.nodeName!={runs}")),
                Binding::To(node) => Some(format!("spec.nodeName={node}{runs}")),
                Binding::Unbound => Some("spec.nodeName=".into()),
            },
            match &self.about {
                EventAbout::Anything => None,
                EventAbout::Pod(name) => Some(format!("involvedObject.name={name},{WARNS}")),
                EventAbout::Pods => Some(WARNS.into()),
                EventAbout::Nodes => Some("involvedObject.kind=Node".into()),
            },
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    /// Whether an object in JSON passes, for sources without an API server.
    pub(crate) fn lets_through(&self, json: &str) -> bool {
        let Ok(mut object) = serde_json::from_str::<Outline>(json) else {
            return false;
        };
        let is = |wanted: &Option<String>, there: &str| {
            wanted.as_ref().is_none_or(|wanted| *wanted == *there)
        };
        let labels = object.metadata.labels.take().unwrap_or_default();
        let (meta, node) = (&object.metadata, &object.spec.node_name);
        let runs = self.with_ended || !["Succeeded", "Failed"].contains(&&*object.status.phase);
        let about = |kind: &str| object.involved_object.as_ref().filter(|it| it.kind == kind);
        let is_warning = object.event_type.as_deref() == Some("Warning");
        let warned = about("Pod").filter(|_| is_warning);
        is(&self.namespace, &meta.namespace)
            && is(&self.name, &meta.name)
            && is(&self.driver, &object.spec.driver)
            && (self.labels.as_ref()).is_none_or(|selector| selector.matches(&labels))
            && match &self.binding {
                Binding::Any => true,
                Binding::Bound => !node.is_empty() && runs,
                Binding::To(wanted) => node == wanted && runs,
                Binding::Unbound => node.is_empty(),
            }
            && match &self.about {
                EventAbout::Anything => true,
                EventAbout::Pod(name) => warned.is_some_and(|it| it.name == *name),
                EventAbout::Pods => warned.is_some(),
                EventAbout::Nodes => about("Node").is_some(),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_reads_as_the_api_server_takes_it() {
        let filter = Filter {
            binding: Binding::To("n".into()),
            ..Filter::default()
        };
        assert_eq!(
            filter.fields().as_deref(),
            Some("spec.nodeName=n,status.phase!=Succeeded,status.phase!=Failed")
        );
        assert_eq!(
            Filter::named("a").fields().as_deref(),
            Some("metadata.name=a")
        );
        assert_eq!(Filter::default().fields(), None);
    }

    #[test]
    fn a_pod_that_has_ended_is_not_bound() {
        let bound = Filter {
            binding: Binding::Bound,
            ..Filter::default()
        };
        for (node, phase, expected) in [
            ("n", "Running", true),
            ("", "Pending", false),
            ("n", "Failed", false),
        ] {
            let pod = serde_json::json!({
                "metadata": {"namespace": "ns", "name": "p"},
                "spec": {"nodeName": node},
                "status": {"phase": phase},
            });
            assert_eq!(
                bound.lets_through(&pod.to_string()),
                expected,
                "{node} {phase}"
            );
        }
    }
}
