//! What a live read returns: objects read from the API server itself, past all watches.

use crate::condition::ComponentGroup;
use crate::engine::error::RequestError;
use crate::object::{CsiNode, DaemonSet, Node, Pod, ResourceSlice, RuleObject, Version, Watched};
use crate::plan::StaleKinds;

/// A live read of one node.
#[derive(Debug, Default)]
pub struct NodeEvidence {
    /// The node, if it was read.
    pub node: Option<Watched<Node>>,
    /// Its `CSINode`, if it was read: one or none.
    pub csi_node: Option<List<Watched<CsiNode>>>,
    /// Its pods, for each component group that was read.
    pub pods: Vec<(ComponentGroup, List<Watched<Pod>>)>,
    /// Its `ResourceSlice`s, for each component group that was read.
    pub slices: Vec<(ComponentGroup, List<Watched<ResourceSlice>>)>,
    /// What could not be read.
    pub unread: Unread,
}

/// What a live read failed to read.
#[derive(Debug, Clone, Default)]
pub struct Unread {
    /// The kinds.
    pub kinds: StaleKinds,
    /// Why; `None` if they only have to be read again.
    pub error: Option<RequestError>,
}

impl Unread {
    /// Returns the result if it was wanted and succeeded; a failure adds these kinds to what was not read.
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

/// A live read of what all nodes share.
#[derive(Debug)]
pub struct ClusterEvidence {
    /// All rules.
    pub rules: List<Watched<RuleObject>>,
    /// The `DaemonSet`s of each group: the labelled ones of a class, or those that a rule names.
    pub daemon_sets: Vec<(ComponentGroup, List<Watched<DaemonSet>>)>,
    /// What could not be read of these.
    pub unread: Unread,
}

/// A complete list.
#[derive(Debug)]
pub struct List<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The cluster's version that it shows.
    pub version: Version,
}
