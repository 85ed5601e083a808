//! The kinds of objects that are read, and which of them.

use std::collections::BTreeMap;

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
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
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
    /// A pod that is bound to this node.
    pub node: Option<String>,
    /// A pod that is bound to any node and has not ended.
    pub bound: bool,
    /// An event about the pod of this name.
    pub about_pod: Option<String>,
    /// An event that warns of a pod.
    pub warns_of_pods: bool,
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
        let is = |field: &str, value: &Option<String>| {
            let value = value.as_ref();
            value.map(|value| format!("{field}={value}"))
        };
        let parts: Vec<String> = [
            is("metadata.name", &self.name),
            is("spec.nodeName", &self.node),
            self.bound.then(|| {
                let any = if self.node.is_none() {
                    "spec.nodeName!=,"
                } else {
                    ""
                };
                format!("{any}status.phase!=Succeeded,status.phase!=Failed")
            }),
            is("involvedObject.name", &self.about_pod),
            (self.about_pod.is_some() || self.warns_of_pods)
                .then(|| "involvedObject.kind=Pod,type=Warning".into()),
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
        let has_ended = ["Succeeded", "Failed"].contains(&object.phase);
        is(&self.namespace, object.namespace)
            && is(&self.name, object.name)
            && is(&self.node, object.node)
            && (!self.bound || (!object.node.is_empty() && !has_ended))
            && (self.labels.as_ref()).is_none_or(|selector| selector.matches(object.labels))
            && (self.about_pod.as_deref()).is_none_or(|pod| object.about_pod == Some(pod))
            && (!self.warns_of_pods
                || (object.about_pod.is_some() && object.event_type == "Warning"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_reads_as_the_api_server_takes_it() {
        let filter = Filter {
            node: Some("n".into()),
            bound: true,
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
                bound: true,
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
                event_type: "",
            };
            assert_eq!(bound.lets_through(&facts), expected, "{node} {phase}");
        }
    }
}
