//! What a last look has read, past all watches.

use crate::condition::Cohort;
use crate::object::{CsiNodeObject, DaemonSetObject, NodeObject, PodObject, RuleObject, Version};

/// What there is of one node.
#[derive(Debug, Default)]
pub struct NodeEvidence {
    /// The node, where it was read.
    pub node: Option<NodeObject>,
    /// Its `CSINode`, where it was read: one or none.
    pub csi_node: Option<List<CsiNodeObject>>,
    /// Its pods, for each cohort whose pods were read.
    pub pods: Vec<(Cohort, List<PodObject>)>,
}

/// What is the same for all nodes.
#[derive(Debug)]
pub struct ClusterEvidence {
    /// All rules.
    pub rules: List<RuleObject>,
    /// The `DaemonSet`s of each cohort: the labelled ones of a class, or the one that is waited for by name.
    pub daemon_sets: Vec<(Cohort, List<DaemonSetObject>)>,
}

/// A complete list.
#[derive(Debug)]
pub struct List<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The version of the cluster that it shows.
    pub version: Version,
}
