//! What changes in a node's published conditions.

use jiff::Timestamp;

use crate::api::ConditionStatus;

/// What changes in a node's published conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConditionChanges<'a> {
    /// Conditions to write, because they are new or say something else now.
    pub set: Vec<NewCondition<'a>>,
    /// Types of conditions to take away, because nothing makes them any more.
    pub withdraw: Vec<&'a str>,
}

impl ConditionChanges<'_> {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.withdraw.is_empty()
    }

    /// How soon somebody may wait for these changes.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        let changes = self.set.iter().map(|condition| condition.urgency);
        let withdrawn = (!self.withdraw.is_empty()).then_some(Urgency::Status);
        changes.chain(withdrawn).max().unwrap_or(Urgency::Detail)
    }
}

/// How soon somebody may wait for a change of a published condition, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Reason or message say something else of the same status.
    Detail,
    /// The node does not carry the condition yet, or it was True until now. What a node that joins lacks changes every moment, at
    /// first, and what a node has lost is often back in a moment: a pod is replaced, a kubelet starts anew.
    Unsettled,
    /// The status changes otherwise, or the condition is withdrawn.
    Status,
}

/// A condition to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition<'a> {
    /// The condition type.
    pub kind: &'a str,
    /// The status.
    pub status: ConditionStatus,
    /// The reason in one word.
    pub reason: &'a str,
    /// The message.
    pub message: String,
    /// What changes against what is published.
    pub urgency: Urgency,
    /// When the status that is published changed last, to be kept where it stays.
    pub transition: Option<Timestamp>,
}
