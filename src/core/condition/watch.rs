//! The watches that decisions depend on: which objects each shows.

use std::time::Duration;

use super::groups::{ComponentGroup, CriticalComponentClass};
use crate::object::ResourceKind;
use crate::selector::Filter;

/// The timeout of a watch request. The API server sends a bookmark 2 s before: `nextBookmarkTime` of its `cache_watcher.go`.
pub const WATCH_LENGTH: Duration = Duration::from_secs(14);

/// Identifies a watch. There are some for each component group: of a class, or of what a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    Nodes,
    CsiNodes,
    Pods(ComponentGroup),
    DaemonSets(ComponentGroup),
    ResourceSlices(ComponentGroup),
    Rules,
    /// Only repair waits for them.
    NodeClaims,
    NodePools,
}

impl Watch {
    /// One watch of each kind.
    pub const KINDS: [Self; 8] = [
        Self::Nodes,
        Self::CsiNodes,
        Self::Pods(ComponentGroup::Class(0)),
        Self::DaemonSets(ComponentGroup::Class(0)),
        Self::ResourceSlices(ComponentGroup::Class(0)),
        Self::Rules,
        Self::NodeClaims,
        Self::NodePools,
    ];

    pub const fn resource(self) -> ResourceKind {
        match self {
            Self::Nodes => ResourceKind::Nodes,
            Self::CsiNodes => ResourceKind::CsiNodes,
            Self::Pods(_) => ResourceKind::Pods,
            Self::DaemonSets(_) => ResourceKind::DaemonSets,
            Self::ResourceSlices(_) => ResourceKind::ResourceSlices,
            Self::Rules => ResourceKind::Rules,
            Self::NodeClaims => ResourceKind::NodeClaims,
            Self::NodePools => ResourceKind::NodePools,
        }
    }

    pub fn kind(self) -> &'static str {
        self.resource().kind()
    }

    /// The resource's name with its group, for logs and metrics of watches.
    pub fn name(self) -> &'static str {
        self.resource().full_name()
    }

    pub fn is_optional(self) -> bool {
        self != Self::Rules && self.resource().may_be_absent()
    }

    pub fn group(self) -> Option<ComponentGroup> {
        match self {
            Self::Pods(group) | Self::DaemonSets(group) | Self::ResourceSlices(group) => {
                Some(group)
            }
            _ => None,
        }
    }
}

impl CriticalComponentClass {
    /// What a watch of the class selects: `DaemonSet`s of all namespaces, to report those outside; bound pods that have not ended.
    pub fn filter(&self, watch: Watch) -> Filter {
        let labelled = Filter::labelled(self.selector.clone());
        match watch {
            Watch::Pods(_) => (labelled.within(self.namespaces.single()).bound()).unfinished(),
            _ => labelled,
        }
    }
}
