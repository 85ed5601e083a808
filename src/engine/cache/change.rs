//! What the watches have to say.

use crate::object::{
    CsiNodeObject, DaemonSetObject, NodeClaimObject, NodeObject, NodePoolObject, PodObject,
    RuleObject,
};

/// What a watch shows of its kind: a list of all objects first, whenever it begins anew, and then what happens to each.
#[derive(Debug)]
pub enum Event<K> {
    /// A list begins; what it does not name is gone.
    Init,
    /// An object of the list.
    InitApply(K),
    /// The list is complete.
    InitDone,
    /// An object is there, new or changed.
    Apply(K),
    /// An object is gone; this is the last that was known of it.
    Delete(K),
}

/// Something that one of the watches has to say.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]
pub enum Change {
    /// A node.
    Node(Event<NodeObject>),
    /// A `CSINode`.
    CsiNode(Event<CsiNodeObject>),
    /// A pod of the class with this index.
    Pod(usize, Event<PodObject>),
    /// A `DaemonSet` of the class with this index.
    DaemonSet(usize, Event<DaemonSetObject>),
    /// A rule.
    Rule(Event<RuleObject>),
    /// A Karpenter `NodeClaim`.
    NodeClaim(Event<NodeClaimObject>),
    /// The cluster has no `NodeClaim`s.
    NoNodeClaims,
    /// A Karpenter `NodePool`.
    NodePool(Event<NodePoolObject>),
    /// The cluster has no `NodePool`s.
    NoNodePools,
    /// The watch of this kind has failed, ended before its time, or brought no sign of life when one was due: from some
    /// moment before this on, things may have happened that have not been shown.
    Interrupted(Watch),
    /// Everything of this kind that happened before the confirmation of this number was asked for has been shown, and
    /// since then everything but what is under way.
    Confirmed(Watch, u64),
}

impl Change {
    /// The watch of which this shows something that it was told by the API server just now.
    pub fn shows(&self) -> Option<Watch> {
        match self {
            Self::Node(_) => Some(Watch::Nodes),
            Self::CsiNode(_) => Some(Watch::CsiNodes),
            Self::Pod(class, _) => Some(Watch::Pods(*class)),
            Self::DaemonSet(class, _) => Some(Watch::DaemonSets(*class)),
            Self::Rule(_) => Some(Watch::Rules),
            Self::NodeClaim(_) => Some(Watch::NodeClaims),
            Self::NodePool(_) => Some(Watch::NodePools),
            Self::NoNodeClaims | Self::NoNodePools | Self::Interrupted(_) | Self::Confirmed(..) => {
                None
            }
        }
    }

    /// Whether this shows that the API server can be reached.
    pub fn is_sign_of_life(&self) -> bool {
        !matches!(self, Self::Interrupted(_))
    }
}

/// The kinds of watches there are; pods and `DaemonSet`s have one for each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Nodes.
    Nodes,
    /// `CSINode`s.
    CsiNodes,
    /// Pods of the class with this index.
    Pods(usize),
    /// `DaemonSet`s of the class with this index.
    DaemonSets(usize),
    /// Rules.
    Rules,
    /// Karpenter's `NodeClaim`s. Nothing but repair waits for them.
    NodeClaims,
    /// Karpenter's `NodePool`s. Nothing but repair waits for them.
    NodePools,
}

impl Watch {
    /// One for each kind of object.
    pub const KINDS: [Self; 7] = [
        Self::Nodes,
        Self::CsiNodes,
        Self::Pods(0),
        Self::DaemonSets(0),
        Self::Rules,
        Self::NodeClaims,
        Self::NodePools,
    ];

    /// The kind of the objects that are watched.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Nodes => "Node",
            Self::CsiNodes => "CSINode",
            Self::Pods(_) => "Pod",
            Self::DaemonSets(_) => "DaemonSet",
            Self::Rules => "NodeReadinessRule",
            Self::NodeClaims => "NodeClaim",
            Self::NodePools => "NodePool",
        }
    }
}
