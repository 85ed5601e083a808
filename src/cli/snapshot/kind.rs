//! The kinds of objects that are read, and which of them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::Resource;
use serde::Serialize;

use crate::object::{
    CsiNodeObject, DaemonSetObject, NodeClaimObject, NodeObject, NodePoolObject, PodObject,
    RuleObject,
};
use crate::selector::Selector;

/// The kinds of objects that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Rules.
    Rules,
    /// Nodes.
    Nodes,
    /// `CSINode`s.
    CsiNodes,
    /// `DaemonSet`s.
    DaemonSets,
    /// Pods.
    Pods,
    /// Leases: the controller's.
    Leases,
    /// Events about pods.
    Events,
    /// The controller's configuration.
    ConfigMaps,
    /// Karpenter's `NodeClaim`s.
    NodeClaims,
    /// Karpenter's `NodePool`s.
    NodePools,
    /// Deployments: the controller's and Cluster Autoscaler's among them.
    Deployments,
}

impl Kind {
    /// All that a dump has.
    pub const ALL: [Self; 11] = [
        Self::Rules,
        Self::Nodes,
        Self::CsiNodes,
        Self::DaemonSets,
        Self::Pods,
        Self::Leases,
        Self::Events,
        Self::ConfigMaps,
        Self::NodeClaims,
        Self::NodePools,
        Self::Deployments,
    ];

    /// The resource, as the API calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rules => "nodereadinessrules",
            Self::Nodes => "nodes",
            Self::CsiNodes => "csinodes",
            Self::DaemonSets => "daemonsets",
            Self::Pods => "pods",
            Self::Leases => "leases",
            Self::Events => "events",
            Self::ConfigMaps => "configmaps",
            Self::NodeClaims => "nodeclaims",
            Self::NodePools => "nodepools",
            Self::Deployments => "deployments",
        }
    }

    /// What cannot be said without it.
    #[must_use]
    pub const fn tells(self) -> &'static str {
        match self {
            Self::Rules => "which nodes are held cannot be said",
            Self::Nodes => "what becomes of nodes cannot be said",
            Self::CsiNodes => "whether CSI drivers are registered cannot be said",
            Self::DaemonSets => "which DaemonSets nodes wait for cannot be said",
            Self::Pods => "whether critical pods are Ready cannot be said",
            Self::Leases => "who leads cannot be said",
            Self::Events => "what probes answer cannot be said",
            Self::ConfigMaps => "how the controller is configured cannot be said",
            Self::NodeClaims | Self::NodePools => "what becomes of late nodes cannot be said",
            Self::Deployments => {
                "how the controller is started and whether Cluster Autoscaler knows the taints cannot be said"
            }
        }
    }

    /// The path of the resource, in a namespace or in all.
    #[must_use]
    pub fn path(self, namespace: Option<&str>) -> String {
        match self {
            Self::Rules => RuleObject::url_path(&(), None),
            Self::Nodes => NodeObject::url_path(&(), None),
            Self::CsiNodes => CsiNodeObject::url_path(&(), None),
            Self::DaemonSets => DaemonSetObject::url_path(&(), namespace),
            Self::Pods => PodObject::url_path(&(), namespace),
            Self::Leases => Lease::url_path(&(), namespace),
            Self::Events => Event::url_path(&(), namespace),
            Self::ConfigMaps => ConfigMap::url_path(&(), namespace),
            Self::NodeClaims => NodeClaimObject::url_path(&(), None),
            Self::NodePools => NodePoolObject::url_path(&(), None),
            Self::Deployments => Deployment::url_path(&(), namespace),
        }
    }

    /// The file of a dump that has them.
    #[must_use]
    pub fn file(self) -> String {
        format!("{}.json", self.name())
    }

    /// Whether a cluster may have no such resource.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::NodeClaims | Self::NodePools)
    }
}

/// Which objects of a kind are meant: those that are all of this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// In this namespace.
    pub namespace: Option<String>,
    /// Of this name.
    pub name: Option<String>,
    /// With labels that this selects.
    pub labels: Option<Selector>,
    /// A pod that is bound like this.
    pub binding: Binding,
    /// An event about this.
    pub about: About,
}

/// Where a pod is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Binding {
    /// It does not matter.
    #[default]
    Any,
    /// To a node, and it has not ended.
    Bound,
    /// To this node, and it has not ended.
    To(String),
    /// To none yet.
    Unbound,
}

/// What an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum About {
    /// It does not matter.
    #[default]
    Anything,
    /// The pod of this name, and it warns.
    Pod(String),
    /// A pod, and it warns.
    Pods,
    /// A node.
    Nodes,
}

/// What of an object tells whether a filter lets it through.
#[derive(Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// The node that a pod is bound to.
    pub node: &'a str,
    /// A pod's phase.
    pub phase: &'a str,
    /// The pod that an event is about.
    pub about_pod: Option<&'a str>,
    /// Whether an event is about a node.
    pub about_a_node: bool,
    /// An event's type.
    pub event_type: &'a str,
}

impl Filter {
    /// The object of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::default()
        }
    }

    /// As the API server takes it in the query for a list.
    #[must_use]
    pub fn fields(&self) -> Option<String> {
        const RUNS: &str = "status.phase!=Succeeded,status.phase!=Failed";
        const WARNS: &str = "involvedObject.kind=Pod,type=Warning";
        let name = self.name.as_ref();
        let parts: Vec<String> = [
            name.map(|name| format!("metadata.name={name}")),
            match &self.binding {
                Binding::Any => None,
                Binding::Bound => Some(format!("spec.nodeName!=,{RUNS}")),
                Binding::To(node) => Some(format!("spec.nodeName={node},{RUNS}")),
                Binding::Unbound => Some("spec.nodeName=".into()),
            },
            match &self.about {
                About::Anything => None,
                About::Pod(name) => Some(format!("involvedObject.name={name},{WARNS}")),
                About::Pods => Some(WARNS.into()),
                About::Nodes => Some("involvedObject.kind=Node".into()),
            },
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    /// Whether it lets an object through, where no API server does the filtering.
    #[must_use]
    pub fn lets_through(&self, object: &Facts<'_>) -> bool {
        let is = |wanted: &Option<String>, there: &str| {
            wanted.as_ref().is_none_or(|wanted| *wanted == *there)
        };
        let runs = !["Succeeded", "Failed"].contains(&object.phase);
        let warns = object.about_pod.is_some() && object.event_type == "Warning";
        is(&self.namespace, object.namespace)
            && is(&self.name, object.name)
            && (self.labels.as_ref()).is_none_or(|selector| selector.matches(object.labels))
            && match &self.binding {
                Binding::Any => true,
                Binding::Bound => !object.node.is_empty() && runs,
                Binding::To(node) => *object.node == **node && runs,
                Binding::Unbound => object.node.is_empty(),
            }
            && match &self.about {
                About::Anything => true,
                About::Pod(name) => warns && object.about_pod == Some(name),
                About::Pods => warns,
                About::Nodes => object.about_a_node,
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
        let (bound, labels) = (
            Filter {
                binding: Binding::Bound,
                ..Filter::default()
            },
            BTreeMap::new(),
        );
        for (node, phase, expected) in [
            ("n", "Running", true),
            ("", "Pending", false),
            ("n", "Failed", false),
        ] {
            let facts = Facts {
                namespace: "ns",
                name: "p",
                labels: &labels,
                node,
                phase,
                about_pod: None,
                about_a_node: false,
                event_type: "",
            };
            assert_eq!(bound.lets_through(&facts), expected, "{node} {phase}");
        }
    }
}
