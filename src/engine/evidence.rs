//! What a last look has read, past all watches.

use super::error::RequestError;
use crate::condition::ComponentGroup;
use crate::object::{CsiNodeObject, DaemonSetObject, NodeObject, PodObject, RuleObject, Version};
use crate::plan::StaleKinds;

/// What there is of one node.
#[derive(Debug, Default)]
pub struct NodeEvidence {
    /// The node, where it was read.
    pub node: Option<NodeObject>,
    /// Its `CSINode`, where it was read: one or none.
    pub csi_node: Option<List<CsiNodeObject>>,
    /// Its pods, for each group whose pods were read.
    pub pods: Vec<(ComponentGroup, List<PodObject>)>,
    /// What could not be read.
    pub unread: Unread,
}

/// What a look was to read and did not.
#[derive(Debug, Clone, Default)]
pub struct Unread {
    /// These kinds.
    pub kinds: StaleKinds,
    /// Why; `None` where it has only to be read once more.
    pub error: Option<RequestError>,
}

impl Unread {
    /// Answers what was read, if anything was to be; where that failed, these kinds were not.
    pub fn or_read<T>(
        &mut self,
        read: Option<Result<T, RequestError>>,
        kinds: impl FnOnce(&mut StaleKinds),
    ) -> Option<T> {
        match read? {
            Ok(read) => Some(read),
            Err(error) => {
                kinds(&mut self.kinds);
                self.error.get_or_insert(error);
                None
            }
        }
    }
}

/// What is the same for all nodes.
#[derive(Debug)]
pub struct ClusterEvidence {
    /// All rules.
    pub rules: List<RuleObject>,
    /// The `DaemonSet`s of each group: the labelled ones of a class, or the one that is waited for by name.
    pub daemon_sets: Vec<(ComponentGroup, List<DaemonSetObject>)>,
    /// What could not be read of these.
    pub unread: Unread,
}

/// A complete list.
#[derive(Debug)]
pub struct List<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The version of the cluster that it shows.
    pub version: Version,
}
