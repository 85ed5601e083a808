//! Changes of a node's published conditions.

use jiff::Timestamp;

use crate::api::ConditionStatus;

/// Changes of a node's published conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConditionChanges<'a> {
    /// Conditions to write, because they are new or different.
    pub set: Vec<NewCondition<'a>>,
    /// Types of conditions to remove, because nothing provides them any more.
    pub withdraw: Vec<&'a str>,
}

impl ConditionChanges<'_> {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.withdraw.is_empty()
    }

    /// The urgency of the most urgent change.
    pub fn urgency(&self) -> Urgency {
        let changes = self.set.iter().map(|condition| condition.urgency);
        let withdrawn = (!self.withdraw.is_empty()).then_some(Urgency::Status);
        changes.chain(withdrawn).max().unwrap_or(Urgency::Detail)
    }
}

/// How soon to write a change of a published condition, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Only reason or message change.
    Detail,
    /// The node lacks the condition, or it was `True` until now. What a joining node lacks changes constantly at first, and a
    /// lost component is often back within a moment: a pod is replaced, a kubelet restarts.
    Unsettled,
    /// Any other change of the status, or a removal.
    Status,
}

/// A condition to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition<'a> {
    /// The condition type.
    pub kind: &'a str,
    /// The status.
    pub status: ConditionStatus,
    /// The reason in CamelCase.
    pub reason: &'a str,
    /// The message.
    pub message: String,
    /// How it differs from the published condition.
    pub urgency: Urgency,
    /// The published transition time, which is kept if the status stays.
    pub transition: Option<Timestamp>,
}
