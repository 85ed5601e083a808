//! What happened, for metrics.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use nodegate_core::plan::{ChangeKind, TaintChange};

#[derive(Debug, Clone, PartialEq)]
pub enum Count {
    Rule(Arc<str>, RuleCount),
    /// A rule's status write was skipped because nothing had changed.
    StatusSpared,
    /// A change of a rule's status was written together with others.
    StatusCoalesced,
    /// An Event was dropped by the queue, or refused by the API server.
    EventDropped,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RuleCount {
    /// The rule was created or first seen.
    Came,
    /// The rule is gone, and its series end.
    Went,
    Evaluated,
    /// A condition was found unmet on a node; `is_new` if the previous evaluation did not find it so.
    Unmet {
        condition: Arc<str>,
        is_new: bool,
    },
    Changed(Box<TaintChange>),
    /// A node was released for the first time: the conditions, as far as it is known when each was met.
    StartedUp(Vec<Stage>),
    /// A taint could not be added or removed, for this reason in CamelCase.
    Failed(&'static str),
    /// A taint change met a conflict: the node had changed in the meantime.
    Conflicted(ChangeKind),
    /// Someone else undid a taint change.
    Undone,
    /// A node's bootstrap was completed, which began at `since`.
    BootstrapCompleted {
        since: Option<Timestamp>,
        hold: Option<Hold>,
    },
    /// The controller acted on a node that was not ready in time.
    Repaired(&'static str),
    RepairBlocked,
    RepairFailed,
}

/// A condition of a rule while a node starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    pub condition: Arc<str>,
    /// What it waited for last: a `DaemonSet` as `namespace/name`, a CSI driver, or else the condition's type.
    pub component: Arc<str>,
    /// How long it took since both the node and the rule existed; `None` while it has never been met.
    pub took: Option<SignedDuration>,
}

/// How a node was held before its bootstrap was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// When the taint was added, if that is known.
    pub since: Option<Timestamp>,
    /// Whether the node was created with the taint, or someone else added it.
    pub is_adopted: bool,
}
