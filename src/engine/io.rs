//! The engine's inputs and outputs, as plain values.

#![allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use json_patch::Patch as JsonPatch;
use serde_json::Value;

use super::count::Count;
use super::error::RequestError;
use super::notice::Notice;
use nodegate_core::condition::Watch;
pub use nodegate_core::condition::{Object, Seen};
use nodegate_core::object::{Node, NodeClaim, RuleObject, Version, Watched};
use nodegate_core::selector::Filter;

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
    SuspendAll(bool),
    /// The cluster was restored from a backup: versions go backwards.
    Restored,
    /// Shut down: begin nothing new. Requests under way may end, and what was done is still reported.
    Stop,
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
    /// Patches a `NodeClaim`'s metadata by a merge patch with the UID and version it must have; answered by [`Answer::NodeClaim`].
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
