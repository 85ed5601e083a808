//! Plans which synthesized conditions to publish on a node, and which to remove.

use smallvec::SmallVec;

use super::conditions::{NewCondition, Urgency};
use super::draft::Draft;
use super::outcome::Outcome;
use crate::api::ConditionStatus;
use crate::condition::{self, Condition};
use crate::object::NodeCondition;

/// How a condition differs from what is published of it; `None` if it does not.
fn urgency(published: Option<&NodeCondition>, condition: &Condition<'_>) -> Option<Urgency> {
    let Some(published) = published else {
        return Some(Urgency::Unsettled);
    };
    if published.status != condition.status {
        let was_met = published.status == ConditionStatus::True;
        return Some(if was_met {
            Urgency::Unsettled
        } else {
            Urgency::Status
        });
    }
    let detail = &condition.detail;
    let reads = published.reason == detail.reason() && detail.reads(&published.message);
    (!reads).then_some(Urgency::Detail)
}

impl Draft<'_> {
    /// Compares the synthesized conditions that the node should carry with those that it does.
    pub(super) fn publish(&mut self) {
        let mut wanted: SmallVec<[&str; 8]> = SmallVec::new();
        if self.cluster.publish_conditions {
            let in_force =
                |outcome: &&Outcome| !outcome.is_dry_run() && !outcome.rule.is_suspended();
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
                    if result.is_to_be_seen() {
                        continue;
                    }
                    let published = self.node.condition(kind);
                    if let Some(urgency) = urgency(published, condition) {
                        self.plan.conditions.set.push(NewCondition {
                            kind,
                            status: condition.status,
                            reason: condition.detail.reason(),
                            message: condition.detail.to_string(),
                            urgency,
                            transition: published.and_then(|published| published.transition),
                        });
                    }
                }
            }
        }
        // The conditions of a rule that is suspended, or waits for another one, stay as they are.
        let stays = |outcome: &&Outcome| {
            let is_waiting = outcome.evaluation.waits_for.is_some() && !outcome.is_dry_run();
            outcome.rule.is_suspended() || is_waiting
        };
        let staying = self.plan.outcomes.iter().filter(stays);
        let specs = staying.filter_map(|outcome| outcome.rule.active());
        wanted.extend(specs.flat_map(|spec| &spec.conditions).map(|it| &*it.kind));
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
