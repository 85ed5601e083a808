//! Plans which conditions to publish on a node, and which to remove: the synthesized ones, and that it was not ready in time.

use smallvec::SmallVec;

use super::make::Draft;
use super::node_plan::{NewCondition, Urgency};
use super::outcome::{Outcome, Standing};
use crate::api::{ConditionStatus, names::NOT_READY_IN_TIME};
use crate::condition::{self, Condition};
use crate::object::NodeCondition;
use crate::repair::{Deadline, Spared, Verdict};

const LATE_REASON: &str = "ReadinessTTLPassed";

/// How many conditions are removed at a time: a kubelet could write any number that look like ours.
const WITHDRAWN: usize = 100;

/// How a condition differs from what is published of it; `None` if it does not.
fn urgency(published: Option<&NodeCondition>, condition: &Condition<'_>) -> Option<Urgency> {
    let detail = &condition.detail;
    match published {
        Some(known) if known.status == condition.status => {
            let reads = known.reason == detail.reason() && detail.reads(&known.message);
            (!reads).then_some(Urgency::Detail)
        }
        Some(known) if known.status != ConditionStatus::True => Some(Urgency::Status),
        _ => Some(Urgency::Unsettled),
    }
}

impl Draft<'_> {
    /// Compares the synthesized conditions that the node should carry with those that it does.
    pub(super) fn publish(&mut self) {
        let mut wanted: SmallVec<[&str; 8]> = SmallVec::new();
        let publishes = self.cluster.publish_conditions;
        let in_force = |it: &&Outcome| publishes && !it.is_dry_run() && !it.rule.is_suspended();
        let in_force = self.plan.outcomes.iter().filter(in_force);
        let all = in_force.flat_map(|outcome| &outcome.findings);
        // What one rule leaves out may be what another waits for: the condition of those that leave out nothing comes first.
        let whole = all.clone().filter(|it| it.requirement.except.is_empty());
        for result in whole.chain(all) {
            let Some(condition) = result.condition.as_ref() else {
                continue;
            };
            let kind = &*result.requirement.kind;
            if !result.requirement.source.is_synthesized() || wanted.contains(&kind) {
                continue;
            }
            wanted.push(kind);
            if let Some(urgency) = urgency(self.node.condition(kind), condition)
                && !result.is_to_be_seen()
            {
                self.plan.conditions.set.push(NewCondition {
                    kind,
                    status: condition.status,
                    reason: condition.detail.reason(),
                    message: condition.detail.to_string(),
                    urgency,
                });
            }
        }
        if publishes && self.publish_lateness() {
            wanted.push(NOT_READY_IN_TIME);
        }
        // The conditions of a rule that is suspended stay as they are.
        let outcomes = self.plan.outcomes.iter();
        let staying = outcomes.filter(|outcome| outcome.rule.is_suspended());
        let kinds = staying.flat_map(|outcome| &outcome.spec.conditions);
        wanted.extend(kinds.map(|it| &*it.kind));
        let unwanted = self.node.conditions.iter().filter(|published| {
            let is_ours = published.kind == NOT_READY_IN_TIME
                || condition::is_ours(&published.kind, &published.reason);
            is_ours && !wanted.contains(&published.kind.as_str())
        });
        let unwanted = unwanted.take(WITHDRAWN).map(|it| it.kind.as_str());
        self.plan.conditions.withdraw = unwanted.collect();
    }

    /// Sets the condition of a node that is late under a rule that holds it, unless `maxUnhealthy` forbids. Returns whether it
    /// stays: also while repair is postponed or suspended, and while the node is being released or its claim deleted.
    fn publish_lateness(&mut self) -> bool {
        let published = self.node.condition(NOT_READY_IN_TIME);
        let mut stays = false;
        for outcome in &self.plan.outcomes {
            if !outcome.tainted || !matches!(outcome.standing, Standing::Governs(_)) {
                continue;
            }
            let deadline = match outcome.deadline {
                Some(Ok(deadline)) => Some(deadline),
                _ if outcome.rule.is_suspended() => {
                    Deadline::recorded(self.node, &outcome.rule.uid)
                }
                _ => None,
            };
            if !deadline.is_some_and(|deadline| deadline.has_passed(self.now)) {
                continue;
            }
            match outcome.verdict {
                Some(Verdict::DeleteNodeClaim(_) | Verdict::Impossible(_) | Verdict::Report) => {}
                // A node that is about to be released is not to be replaced.
                None
                | Some(
                    Verdict::Release | Verdict::Spare(Spared::ClaimDeleting | Spared::ClaimUnseen),
                ) => {
                    stays = true;
                    continue;
                }
                Some(Verdict::Spare(_) | Verdict::Blocked(_)) => continue,
            }
            let (rule, late) = (&outcome.rule.name, outcome.lateness());
            let message = format!("Rule '{rule}' holds this node. {late}");
            let urgency = match published {
                Some(known) if known.status == ConditionStatus::True => {
                    let reads = known.reason == LATE_REASON && known.message == message;
                    (!reads).then_some(Urgency::Detail)
                }
                _ => Some(Urgency::Status),
            };
            if let Some(urgency) = urgency {
                self.plan.conditions.set.push(NewCondition {
                    kind: NOT_READY_IN_TIME,
                    status: ConditionStatus::True,
                    reason: LATE_REASON,
                    message,
                    urgency,
                });
            }
            return true;
        }
        stays
    }
}
