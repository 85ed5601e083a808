//! Which synthesized conditions a node should carry, and how that differs from what it does.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::draft::Draft;
use crate::api::ConditionStatus;
use crate::condition;

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

    /// Whether more changes than the message of what is published already.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        !self.withdraw.is_empty()
            || self
                .set
                .iter()
                .any(|condition| condition.status_changes || condition.reason_changes)
    }
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
    /// Whether the status differs from what is published, or nothing is.
    pub status_changes: bool,
    /// Whether the reason differs from what is published, or nothing is.
    pub reason_changes: bool,
    /// When the status that is published changed last, to be kept where it stays.
    pub transition: Option<Timestamp>,
}

impl Draft<'_> {
    /// Finds out which synthesized conditions the node should carry, and how that differs from what it does.
    pub(super) fn publish(&mut self) {
        let mut wanted = BTreeSet::new();
        if self.cluster.publish_conditions {
            for outcome in &self.plan.outcomes {
                for result in &outcome.evaluation.results {
                    let Some(condition) = result.condition.as_ref() else {
                        continue;
                    };
                    let kind = &*result.requirement.kind;
                    if !result.requirement.source.is_synthesized() || !wanted.insert(kind) {
                        continue;
                    }
                    let (reason, message) =
                        (condition.detail.reason(), condition.detail.to_string());
                    let published = self.node.condition(kind);
                    let status_changes =
                        published.is_none_or(|published| published.status != condition.status);
                    let reason_changes =
                        published.is_none_or(|published| published.reason != reason);
                    let message_changes =
                        published.is_none_or(|published| published.message != message);
                    if status_changes || reason_changes || message_changes {
                        self.plan.conditions.set.push(NewCondition {
                            kind,
                            status: condition.status,
                            reason,
                            message,
                            status_changes,
                            reason_changes,
                            transition: published.and_then(|published| published.transition),
                        });
                    }
                }
            }
        }
        self.plan.conditions.withdraw = self
            .node
            .conditions
            .iter()
            .filter(|published| {
                condition::is_ours(&published.kind, &published.reason)
                    && !wanted.contains(published.kind.as_str())
            })
            .map(|published| published.kind.as_str())
            .collect();
    }
}
