//! How fast a rule may gate nodes, with the names and semantics of the Kubernetes node lifecycle controller
//! (`pkg/controller/nodelifecycle`), and how many as it comes into force.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::node_share::NodeShare;

/// How fast a continuous rule may taint nodes that were not held, zone by zone, and how many of them any rule may taint as it
/// comes into force.
///
/// What is absent falls back to the controller's flags.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Disruption {
    /// How many nodes a second this rule may taint in a zone that is healthy. Kubernetes uses 0.1, which is one node
    /// in ten seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self > 0.0",
        "evictionRate must be above 0 nodes a second, for example 0.1; to add no taint at all set taintPolicy: remove-only",
    ))]
    pub eviction_rate: Option<f64>,

    /// How many nodes a second this rule may taint in a zone that is partially disrupted. Kubernetes uses 0.01, which
    /// is one node in a hundred seconds; 0 stops tainting there until the zone recovers. In a zone of at most
    /// `largeClusterSizeThreshold` nodes, tainting always stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self >= 0.0",
        "secondaryEvictionRate must not be negative: write nodes a second, for example 0.01, or 0 to stop tainting in a partially disrupted zone",
    ))]
    pub secondary_eviction_rate: Option<f64>,

    /// From which share of its nodes with unmet conditions a zone counts as partially disrupted, above 0 and at most 1.
    /// Kubernetes uses 0.55.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self > 0.0 && self <= 1.0",
        "unhealthyZoneThreshold must be above 0 and at most 1, for example 0.55",
    ))]
    pub unhealthy_zone_threshold: Option<f64>,

    /// Up to which number of nodes a zone counts as small; in a small zone that is partially disrupted no more nodes
    /// are gated. Kubernetes uses 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self >= 0",
        "largeClusterSizeThreshold must not be negative: write a number of nodes, for example 50",
    ))]
    pub large_cluster_size_threshold: Option<i32>,

    /// How many nodes in use the rule may gate of those that come under it within a minute: as it is created, edited or resumed,
    /// ends to be a dry run, an earlier rule goes, or labels change. A node is in use if it does not have the rule's taint, and does not join just now. If the rule would gate more,
    /// it gates none of them, gets the condition `HeldBack`, and goes on once they are few enough, or this is raised. A number
    /// of nodes or a percentage of those in use, rounded up; 3 nodes may always be gated. Nodes that join are gated in any
    /// case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",
        "maxFirstGated must be a number of nodes that is not negative, or a percentage from 0% to 100%, for example 10%",
    ))]
    pub max_first_gated: Option<NodeShare>,
}
