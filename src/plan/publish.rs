//! Which synthesized conditions a node should carry, and how that differs from what it does.

use jiff::Timestamp;
use smallvec::SmallVec;

use super::draft::Draft;
use super::{Outcome, Standing};
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
    /// The node does not carry the condition yet. What a node that joins lacks changes every moment, at first.
    First,
    /// The status changes, or the condition is withdrawn.
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

impl Draft<'_> {
    /// Finds out which synthesized conditions the node should carry, and how that differs from what it does.
    pub(super) fn publish(&mut self) {
        let mut wanted: SmallVec<[&str; 8]> = SmallVec::new();
        if self.cluster.publish_conditions {
            let in_force = |outcome: &&Outcome| !matches!(outcome.standing, Standing::DryRun(_));
            for outcome in self.plan.outcomes.iter().filter(in_force) {
                for result in &outcome.evaluation.results {
                    let Some(condition) = result.condition.as_ref() else {
                        continue;
                    };
                    let kind = &*result.requirement.kind;
                    if !result.requirement.source.is_synthesized() || wanted.contains(&kind) {
                        continue;
                    }
                    wanted.push(kind);
                    let reason = condition.detail.reason();
                    let published = self.node.condition(kind);
                    let urgency = match published {
                        None => Some(Urgency::First),
                        Some(published) if published.status != condition.status => {
                            Some(Urgency::Status)
                        }
                        Some(published) => (published.reason != reason
                            || !condition.detail.reads(&published.message))
                        .then_some(Urgency::Detail),
                    };
                    if let Some(urgency) = urgency {
                        self.plan.conditions.set.push(NewCondition {
                            kind,
                            status: condition.status,
                            reason,
                            message: condition.detail.to_string(),
                            urgency,
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
                    && !wanted.contains(&published.kind.as_str())
            })
            .map(|published| published.kind.as_str())
            .collect();
    }
}
