//! The engine's inputs and outputs, as plain values.

#![allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use json_patch::Patch as JsonPatch;
use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::Value;

use super::count::Count;
use super::error::RequestError;
use super::notice::Notice;
use crate::condition::{ComponentGroup, Watch};
use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, Pod, ResourceSlice, RuleObject, Version, Watched,
};
use crate::selector::Filter;

/// The current time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Dates objects. It may be set at any time.
    pub wall: Timestamp,
    /// Measures durations. It is steady, but may stop while the machine is suspended.
    pub monotonic: Instant,
}

/// The time from `now` to `at`; zero if `at` is past.
pub fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

#[derive(Debug)]
pub enum Input {
    Seen(Seen),
    /// The answer to a request, or the error that prevented one.
    Answered(RequestId, Result<Answer, RequestError>),
    /// This instance has just acquired or renewed the lease. Without leader election, sent once.
    Leads,
    /// All rules are suspended or resumed.
    SuspendAll(bool),
    /// The cluster was restored from a backup: versions go backwards.
    Restored,
    /// Shut down: begin nothing new. Requests under way may end, and what was done is still reported.
    Stop,
}

#[derive(Debug)]
pub enum Seen {
    /// A list begins, which is asked for after this time. Objects that it has not shown when it is complete are gone.
    Init(Watch, Instant),
    /// An object was added or changed, or is one of a list that is under way.
    Apply(Object),
    /// An object was deleted; this is its last known state.
    Delete(Object),
    /// The list is complete.
    InitDone(Watch),
    /// The watch has begun at this version, or has shown everything up to it.
    Progress(Watch, Version),
    /// The cluster does not have this resource.
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
    /// What a watch shows as this JSON.
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

/// Identifies a request among all of this process.
pub type RequestId = u64;

#[derive(Debug)]
pub enum Effect {
    /// A request to make at once. It is answered by [`Input::Answered`], with an error if it times out.
    Request(RequestId, Request),
    /// Start this watch, or start it again: it lists.
    Watch(Watch, Filter),
    /// Stop this watch. Its events that are not taken in yet are ignored.
    Unwatch(Watch),
    Count(Count),
}

/// A request to the API server. The caller must not retry it: the engine does.
#[derive(Debug)]
pub enum Request {
    /// Patches a node's metadata and spec; answered by [`Answer::Node`] with an empty spec and status.
    PatchNode(Arc<str>, JsonPatch),
    /// Patches a node's conditions by a strategic merge patch of its status; answered by [`Answer::Node`].
    PatchNodeStatus(Arc<str>, Value),
    /// Reads a node; answered by [`Answer::Node`].
    ReadNode(Arc<str>),
    /// Patches a rule's metadata; answered by [`Answer::Rule`].
    PatchRule(Arc<str>, JsonPatch),
    /// Patches a rule's status; answered by [`Answer::Version`].
    PatchRuleStatus(Arc<str>, JsonPatch),
    /// Patches a `NodeClaim`'s metadata by a merge patch with the UID and version that it must have; answered by
    /// [`Answer::NodeClaim`].
    PatchNodeClaim(Arc<str>, Value),
    /// Deletes a `NodeClaim`, on condition of UID and version; answered by [`Answer::Done`].
    DeleteNodeClaim {
        name: Arc<str>,
        uid: Arc<str>,
        version: Version,
    },
    /// A consistent read of the cluster's version, of what a watch selects; answered by [`Answer::Version`].
    ReadVersion(Watch, Filter),
    /// Posts an Event; answered by [`Answer::Done`].
    PostEvent {
        notice: Box<Notice>,
        at: Timestamp,
        /// Its sequence number in this process.
        number: u64,
    },
}

impl Request {
    pub const fn is_write(&self) -> bool {
        !matches!(self, Self::ReadNode(..) | Self::ReadVersion(..))
    }
}

#[derive(Debug)]
pub enum Answer {
    Node(Box<Watched<Node>>),
    Rule(Box<Watched<RuleObject>>),
    /// The object's version now, or the cluster's.
    Version(Version),
    NodeClaim(Box<Watched<NodeClaim>>),
    Done,
}

impl Answer {
    pub(super) fn node(self) -> Result<Watched<Node>, RequestError> {
        match self {
            Self::Node(node) => Ok(*node),
            other => Err(other.is_unexpected()),
        }
    }

    pub(super) fn rule(self) -> Result<Watched<RuleObject>, RequestError> {
        match self {
            Self::Rule(rule) => Ok(*rule),
            other => Err(other.is_unexpected()),
        }
    }

    pub(super) fn version(self) -> Result<Version, RequestError> {
        match self {
            Self::Version(version) => Ok(version),
            other => Err(other.is_unexpected()),
        }
    }

    fn is_unexpected(&self) -> RequestError {
        RequestError::Failed(format!("the answer is not what was asked for: {self:?}"))
    }
}
