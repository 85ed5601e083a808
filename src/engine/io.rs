//! What goes into the engine and what comes out of it: values, all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use json_patch::Patch as JsonPatch;
use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::Value;

use super::error::RequestError;
use super::evidence::{ClusterEvidence, NodeEvidence};
use super::kind::{Scope, Watch};
use super::notice::Notice;
use crate::condition::ComponentGroup;
use crate::object::{
    CsiNodeObject, DaemonSetObject, NodeClaimObject, NodeMetadata, NodeObject, NodePoolObject,
    ObjectKey, PodObject, RuleObject, Version,
};
use crate::plan::{ChangeKind, StaleKinds, TaintChange};

/// The time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// What objects are dated by. It may be set at any time.
    pub wall: Timestamp,
    /// What every duration is measured by. It goes at an even pace, but not while the machine is suspended.
    pub monotonic: Instant,
}

/// How long it is to a time from another one by the same clock; nothing where it is past.
#[must_use]
pub fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// Something that the engine is told.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "what a watch shows is the most frequent, and boxing it would cost an allocation for each event"
)]
pub enum Input {
    /// What a watch has shown.
    Seen(Seen),
    /// The answer to the request of this number, or what kept it from being given.
    Answered(RequestId, Result<Answer, RequestError>),
    /// This instance leads, or goes on to lead: the lease has been taken or renewed just now. Where there is no election,
    /// it is told once.
    Leads,
    /// All rules are suspended, or go on.
    SuspendAll(bool),
    /// Nothing is to be begun any more. What is under way may end, and what has been done is told.
    Stop,
}

/// What a watch shows of its kind: the events of `kube::runtime::watcher`, and what that keeps to itself.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]
pub enum Seen {
    /// A list of all objects begins: what is not applied before it is done is gone.
    Init(Watch),
    /// An object is there, new or changed. Between `Init` and `InitDone` it is one of the list.
    Apply(Object),
    /// An object was deleted; this is the last that was known of it.
    Delete(Object),
    /// The list is complete. It shows the cluster as of this version.
    InitDone(Watch, Version),
    /// The cluster has no resource of this kind.
    NotInstalled(Watch),
    /// The watch of this kind has failed, ended before its time, or brought no sign of life when one was due: from some
    /// moment before this on, things may have happened that have not been shown.
    Interrupted(Watch),
    /// Everything of this kind has been shown that had happened by this time, as a consistent read says that was asked for then;
    /// and everything up to this version.
    Current(Watch, Instant, Version),
}

/// An object as it is on the wire.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nodes are the most frequent, and boxing them would cost an allocation for each event"
)]
pub enum Object {
    /// A node.
    Node(NodeObject),
    /// A `CSINode`.
    CsiNode(CsiNodeObject),
    /// A pod of a group.
    Pod(ComponentGroup, PodObject),
    /// A `DaemonSet` of a group.
    DaemonSet(ComponentGroup, DaemonSetObject),
    /// A rule.
    Rule(RuleObject),
    /// A Karpenter `NodeClaim`.
    NodeClaim(NodeClaimObject),
    /// A Karpenter `NodePool`.
    NodePool(NodePoolObject),
}

impl Seen {
    /// The watch that shows it.
    #[must_use]
    pub fn watch(&self) -> Watch {
        match self {
            Self::Apply(object) | Self::Delete(object) => object.watch(),
            Self::Init(watch)
            | Self::InitDone(watch, _)
            | Self::NotInstalled(watch)
            | Self::Interrupted(watch)
            | Self::Current(watch, ..) => *watch,
        }
    }

    /// The watch of which this shows something that it was told by the API server just now.
    #[must_use]
    pub fn shows(&self) -> Option<Watch> {
        match self {
            Self::Apply(object) | Self::Delete(object) => Some(object.watch()),
            Self::Init(watch) | Self::InitDone(watch, _) => Some(*watch),
            Self::NotInstalled(_) | Self::Interrupted(_) | Self::Current(..) => None,
        }
    }

    /// Whether this shows that the API server can be reached.
    #[must_use]
    pub fn is_sign_of_life(&self) -> bool {
        !matches!(self, Self::Interrupted(_))
    }
}

impl Object {
    /// The watch that shows it.
    #[must_use]
    pub fn watch(&self) -> Watch {
        match self {
            Self::Node(_) => Watch::Nodes,
            Self::CsiNode(_) => Watch::CsiNodes,
            Self::Pod(group, _) => Watch::Pods(*group),
            Self::DaemonSet(group, _) => Watch::DaemonSets(*group),
            Self::Rule(_) => Watch::Rules,
            Self::NodeClaim(_) => Watch::NodeClaims,
            Self::NodePool(_) => Watch::NodePools,
        }
    }

    /// Its metadata, as far as they could be read.
    #[must_use]
    pub fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Node(node) => node.meta(),
            Self::CsiNode(csi_node) => csi_node.meta(),
            Self::Pod(_, pod) => pod.meta(),
            Self::DaemonSet(_, daemon_set) => daemon_set.meta(),
            Self::Rule(rule) => rule.meta(),
            Self::NodeClaim(claim) => claim.meta(),
            Self::NodePool(pool) => pool.meta(),
        }
    }
}

/// What tells a request from all others of this process.
pub type RequestId = u64;

/// Something that is to be done.
#[derive(Debug)]
pub enum Effect {
    /// A request to the API server, to be made at once and answered by [`Input::Answered`], in time or by an error.
    Request(RequestId, Request),
    /// Every watch is to be current as of now as soon as can be, and to tell when it is.
    Confirm,
    /// This is watched from now on, too.
    Watch(Watch, Scope),
    /// This is watched no longer. What it has shown and has not been told yet says nothing any more.
    Unwatch(Watch),
    /// Something to be counted.
    Count(Count),
}

/// A request to the API server. None may be made twice on its own: the engine sees to that.
#[derive(Debug)]
pub enum Request {
    /// Patches a node's metadata and spec; answered by [`Answer::NodeMetadata`].
    PatchNode {
        /// The node.
        name: Arc<str>,
        /// What is tested and changed.
        patch: JsonPatch,
    },
    /// Patches a node's conditions by a strategic merge patch of its status; answered by [`Answer::Node`].
    PatchNodeStatus {
        /// The node.
        name: Arc<str>,
        /// What is changed.
        patch: Value,
    },
    /// Reads a node; answered by [`Answer::Node`].
    ReadNode {
        /// The node.
        name: Arc<str>,
    },
    /// Patches a rule's metadata; answered by [`Answer::Rule`].
    PatchRule {
        /// The rule.
        name: Arc<str>,
        /// What is tested and changed.
        patch: JsonPatch,
    },
    /// Patches a rule's status; answered by [`Answer::Version`].
    PatchRuleStatus {
        /// The rule.
        name: Arc<str>,
        /// What is tested and changed.
        patch: JsonPatch,
    },
    /// Patches a `NodeClaim`'s metadata by a merge patch; answered by [`Answer::NodeClaim`].
    PatchNodeClaim {
        /// The claim.
        name: Arc<str>,
        /// What is changed, with the UID and the version that the claim has to have.
        patch: Value,
    },
    /// Deletes a `NodeClaim`, if it is just this one; answered by [`Answer::Done`].
    DeleteNodeClaim {
        /// The claim.
        name: Arc<str>,
        /// The UID that it has to have.
        uid: Arc<str>,
        /// The version that it has to have.
        version: Version,
    },
    /// Reads what there is of one node, of the kinds that are in doubt; answered by [`Answer::NodeEvidence`].
    LookAtNode {
        /// The node.
        name: Arc<str>,
        /// What is read.
        kinds: StaleKinds,
        /// Which pods are read besides those of the classes.
        pods: Vec<(ComponentGroup, Scope)>,
    },
    /// Reads what is the same for all nodes: the rules, and the `DaemonSet`s of each class; answered by
    /// [`Answer::ClusterEvidence`].
    LookAtCluster {
        /// Which `DaemonSet`s are read besides those of the classes.
        daemon_sets: Vec<(ComponentGroup, ObjectKey)>,
    },
    /// Posts an Event; answered by [`Answer::Done`].
    PostEvent {
        /// What it says.
        notice: Box<Notice>,
        /// When that happened.
        at: Timestamp,
        /// Its number among all of this process.
        number: u64,
    },
}

impl Request {
    /// Whether it changes something.
    #[must_use]
    pub const fn is_write(&self) -> bool {
        !matches!(
            self,
            Self::ReadNode { .. } | Self::LookAtNode { .. } | Self::LookAtCluster { .. }
        )
    }
}

/// What the API server has answered.
#[derive(Debug)]
pub enum Answer {
    /// A node's metadata as they are now, and nothing else of it.
    NodeMetadata(NodeMetadata),
    /// A node as it is now.
    Node(Box<NodeObject>),
    /// A rule as it is now.
    Rule(Box<RuleObject>),
    /// The version that the object has now.
    Version(Version),
    /// A claim as it is now.
    NodeClaim(Box<NodeClaimObject>),
    /// What was read of a node.
    NodeEvidence(Box<NodeEvidence>),
    /// What was read of the cluster.
    ClusterEvidence(ClusterEvidence),
    /// It has been done.
    Done,
}

/// Each of these takes what its request is answered by.
macro_rules! expect {
    ($($name:ident: $variant:ident($given:ident) -> $type:ty = $taken:expr;)*) => {
        impl Answer {
            $(pub(super) fn $name(self) -> Result<$type, RequestError> {
                match self {
                    Self::$variant($given) => Ok($taken),
                    other => Err(other.is_unexpected()),
                }
            })*
        }
    };
}

expect! {
    metadata: NodeMetadata(it) -> NodeMetadata = it;
    node: Node(it) -> NodeObject = *it;
    rule: Rule(it) -> RuleObject = *it;
    version: Version(it) -> Version = it;
    node_evidence: NodeEvidence(it) -> NodeEvidence = *it;
    cluster_evidence: ClusterEvidence(it) -> ClusterEvidence = it;
}

impl Answer {
    fn is_unexpected(&self) -> RequestError {
        RequestError::Failed(format!("the answer is not what was asked for: {self:?}"))
    }
}

/// How a node was closed whose bootstrap is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    /// Whether the node came with the taint, or somebody else put it on: the rule did not.
    pub is_adopted: bool,
}

/// A condition that a node met while it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The condition's type.
    pub condition: Arc<str>,
    /// How long after node and rule were both there.
    pub took: SignedDuration,
}

/// Something that has happened once.
#[derive(Debug, Clone, PartialEq)]
pub enum Count {
    /// A rule is there from now on.
    RuleCame {
        /// Its name.
        rule: Arc<str>,
    },
    /// A rule is gone, with all that was counted of it.
    RuleWent {
        /// Its name.
        rule: Arc<str>,
        /// The types of the conditions that it named.
        conditions: Vec<Arc<str>>,
    },
    /// A rule was evaluated on a node.
    Evaluated {
        /// Its name.
        rule: Arc<str>,
    },
    /// A condition of a rule was found unmet on a node.
    Unmet {
        /// The rule's name.
        rule: Arc<str>,
        /// The condition's type.
        condition: Arc<str>,
        /// Whether it was not found so before.
        is_new: bool,
    },
    /// A taint has been put on or lifted.
    Changed(Box<TaintChange>),
    /// A node has been opened for the first time.
    StartedUp {
        /// The rule's name.
        rule: Arc<str>,
        /// The rule's conditions, save those of which nobody knows when they were met.
        stages: Vec<Stage>,
    },
    /// A taint could not be put on or lifted, for this reason.
    Failed {
        /// The rule's name.
        rule: Arc<str>,
        /// One word.
        reason: &'static str,
    },
    /// A taint could not be put on or lifted because the node had changed in the meantime.
    Conflicted {
        /// The rule's name.
        rule: Arc<str>,
        /// What was to be done.
        kind: ChangeKind,
    },
    /// A taint change has been undone by somebody else.
    Undone {
        /// The rule's name.
        rule: Arc<str>,
    },
    /// A node's bootstrap has been completed.
    BootstrapCompleted {
        /// The rule's name.
        rule: Arc<str>,
        /// Since when it was under way, where that is known.
        since: Option<Timestamp>,
        /// For how long the taint kept pods off, where it did.
        hold: Option<Hold>,
    },
    /// Something was done about a node that was not ready in time.
    Repaired {
        /// The rule's name.
        rule: Arc<str>,
        /// What was done.
        action: &'static str,
    },
    /// Too many unhealthy nodes have held a repair back.
    RepairBlocked {
        /// The rule's name.
        rule: Arc<str>,
    },
    /// The API server has refused a repair.
    RepairFailed {
        /// The rule's name.
        rule: Arc<str>,
    },
    /// A look was answered, or was not.
    Looked {
        /// Whether it was answered.
        answered: bool,
    },
    /// A rule's status was not written, because nothing had changed.
    StatusSpared,
    /// A change of a rule's status went out together with others.
    StatusCoalesced,
    /// An Event was dropped, or refused.
    EventDropped,
}

impl Count {
    /// The rule in whose name it is counted, unless it is about the rule's coming and going, or about none.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Evaluated { rule }
            | Self::Unmet { rule, .. }
            | Self::Failed { rule, .. }
            | Self::Conflicted { rule, .. }
            | Self::StartedUp { rule, .. }
            | Self::Undone { rule }
            | Self::BootstrapCompleted { rule, .. }
            | Self::Repaired { rule, .. }
            | Self::RepairBlocked { rule }
            | Self::RepairFailed { rule } => Some(rule),
            Self::Changed(change) => Some(&change.rule_name),
            Self::RuleCame { .. }
            | Self::RuleWent { .. }
            | Self::Looked { .. }
            | Self::StatusSpared
            | Self::StatusCoalesced
            | Self::EventDropped => None,
        }
    }
}
