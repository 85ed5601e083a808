//! What watches show, as plain values.

#![allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]

use std::time::Instant;

use kube::Resource;
use kube::core::ObjectMeta;

use super::groups::ComponentGroup;
use super::watch::Watch;
use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, Pod, ResourceSlice, RuleObject, Version, Watched,
};

#[derive(Debug)]
pub enum Seen {
    /// A list begins, which is asked for after this time. Objects that it has not shown when it is complete are gone.
    Init(Watch, Instant),
    /// An object was added or changed, or is one of a list that is under way.
    Apply(Object),
    /// An object was deleted; this is its last known state.
    Delete(Object),
    InitDone(Watch),
    /// The watch has begun at this version, or has shown everything up to it.
    Progress(Watch, Version),
    NotInstalled(Watch),
}

/// An object as decoded from the wire.
#[derive(Debug)]
pub enum Object {
    Node(Watched<Node>),
    CsiNode(Watched<CsiNode>),
    Pod(ComponentGroup, Watched<Pod>),
    DaemonSet(ComponentGroup, Watched<DaemonSet>),
    ResourceSlice(ComponentGroup, Watched<ResourceSlice>),
    Rule(Watched<RuleObject>),
    NodeClaim(Watched<NodeClaim>),
    NodePool(Watched<NodePool>),
}

impl Seen {
    pub fn watch(&self) -> Watch {
        match self {
            Self::Apply(object) | Self::Delete(object) => object.watch(),
            Self::Init(watch, _)
            | Self::InitDone(watch)
            | Self::Progress(watch, _)
            | Self::NotInstalled(watch) => *watch,
        }
    }

    /// Whether this proves that the API server is reachable.
    pub fn is_sign_of_life(&self) -> bool {
        !matches!(self, Self::Init(..))
    }
}

impl Object {
    pub fn of(watch: Watch, json: &str) -> Self {
        match watch {
            Watch::Nodes => Self::Node(Watched::of(json)),
            Watch::CsiNodes => Self::CsiNode(Watched::of(json)),
            Watch::Pods(group) => Self::Pod(group, Watched::of(json)),
            Watch::DaemonSets(group) => Self::DaemonSet(group, Watched::of(json)),
            Watch::ResourceSlices(group) => Self::ResourceSlice(group, Watched::of(json)),
            Watch::Rules => Self::Rule(Watched::of(json)),
            Watch::NodeClaims => Self::NodeClaim(Watched::of(json)),
            Watch::NodePools => Self::NodePool(Watched::of(json)),
        }
    }

    pub fn watch(&self) -> Watch {
        self.parts().0
    }

    /// Its metadata, as far as they are readable.
    pub fn meta(&self) -> &ObjectMeta {
        self.parts().1
    }

    fn parts(&self) -> (Watch, &ObjectMeta) {
        match self {
            Self::Node(it) => (Watch::Nodes, it.meta()),
            Self::CsiNode(it) => (Watch::CsiNodes, it.meta()),
            Self::Pod(group, it) => (Watch::Pods(*group), it.meta()),
            Self::DaemonSet(group, it) => (Watch::DaemonSets(*group), it.meta()),
            Self::ResourceSlice(group, it) => (Watch::ResourceSlices(*group), it.meta()),
            Self::Rule(it) => (Watch::Rules, it.meta()),
            Self::NodeClaim(it) => (Watch::NodeClaims, it.meta()),
            Self::NodePool(it) => (Watch::NodePools, it.meta()),
        }
    }
}
