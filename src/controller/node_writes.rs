//! The loop's writes of nodes' taints and annotations: how they are started, and what follows from how they end.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use json_patch::Patch as JsonPatch;
use tracing::{debug, warn};

use super::announce::tell;
use super::metrics::{ADD_TAINT_ERROR, EVALUATION_ERROR, REMOVE_TAINT_ERROR, seconds_between};
use super::reconcile::{Done, Reconciler};
use super::status::Failure;
use super::writer::WriteError;
use crate::engine::{Backoff, Pauses};
use crate::object::{Node, NodeMetadata, NodeObject, Taint};
use crate::rule::{ChangeKind, Decision, NodePlan, Outcome, Standing, TaintChange};

/// How often a node may change under a write before a pause is made.
const CONFLICTS_WITHOUT_PAUSE: u32 = 5;

/// A write of a node's taints and annotations.
#[derive(Debug)]
pub(super) struct NodeWrite {
    pub(super) name: Arc<str>,
    /// The taints that the node has if this succeeds, where they change.
    pub(super) taints: Option<Vec<Taint>>,
    pub(super) changes: Vec<TaintChange>,
    pub(super) completions: Vec<Completion>,
}

impl NodeWrite {
    /// What carries out this plan.
    pub(super) fn of(node: &Node, plan: NodePlan<'_>) -> Self {
        Self {
            name: node.name.clone(),
            completions: completions(node, &plan),
            taints: plan.taints,
            changes: plan.changes,
        }
    }
}

/// A bootstrap that a write completes.
#[derive(Debug)]
pub(super) struct Completion {
    rule: Arc<str>,
    /// Since when both the node and the rule have been there; since the reboot, where the node is gated again for that.
    since: Option<Timestamp>,
}

impl Reconciler {
    pub(super) fn write_node(&mut self, write: NodeWrite, patch: JsonPatch) {
        self.node_writes += 1;
        let writer = self.writer.clone();
        self.in_flight.spawn(async move {
            let result = writer.patch_node(&write.name, patch).await;
            let fresh = match result {
                Err(WriteError::Conflict) => writer.read_node(&write.name).await.ok(),
                _ => None,
            };
            Done::Node {
                write,
                result,
                fresh,
            }
        });
    }

    /// Counts what a write has done, save for rules that are gone: nothing would take their series away again.
    fn count(&self, write: &NodeWrite, now: Timestamp) {
        let is_there = |rule: &str| self.cache.rules().contains_key(rule);
        let changes = write.changes.iter();
        for change in changes.filter(|change| is_there(&change.rule_name)) {
            self.metrics.count_change(change, now);
        }
        let completions = write.completions.iter().filter(|done| is_there(&done.rule));
        for Completion { rule, since } in completions {
            self.metrics
                .bootstrap_completed
                .with_label_values(&[rule])
                .inc();
            if let Some(since) = since {
                let duration = self.metrics.bootstrap_duration.with_label_values(&[rule]);
                duration.observe(seconds_between(*since, now));
            }
        }
    }

    pub(super) fn finish_node(
        &mut self,
        write: NodeWrite,
        result: Result<NodeMetadata, WriteError>,
        fresh: Option<NodeObject>,
    ) {
        self.node_writes -= 1;
        let now = Timestamp::now();
        if result.is_ok() {
            self.count(&write, now);
        }
        let NodeWrite {
            name,
            taints,
            changes,
            ..
        } = write;
        let Some(work) = self.nodes.get_mut(&name) else {
            return;
        };
        work.writing = false;
        match result {
            Ok(node) => {
                work.retry = Backoff::default();
                work.conflicts = 0;
                for change in &changes {
                    tell(&self.events, &node, change);
                    if change.kind == ChangeKind::Added
                        && let Some(rule) = self.rules.get_mut(&*change.rule_uid)
                    {
                        rule.closed(&name);
                    }
                }
                self.cache.patched_node(node, taints);
            }
            Err(WriteError::Conflict) => {
                debug!(node = %name, "the node has changed in the meantime; evaluating it again");
                work.conflicts += 1;
                if work.conflicts > CONFLICTS_WITHOUT_PAUSE {
                    work.retry.failed(Pauses::REFUSED, Instant::now());
                }
                if let Some(node) = fresh {
                    self.cache.update_node(node, now);
                }
            }
            Err(WriteError::Gone) => {
                // The watch will tell; should it lag, the pause keeps this from being asked over and over.
                work.retry.failed(Pauses::REFUSED, Instant::now());
            }
            Err(WriteError::Unreachable(_)) => {}
            Err(WriteError::Failed(message)) => {
                warn!(node = %name, "cannot write the node: {message}");
                work.retry.failed(Pauses::REFUSED, Instant::now());
                self.blame(&name, &changes, &message, now);
            }
        }
        self.cache.mark(&name);
    }

    /// Notes that these changes of a node have failed, and why.
    fn blame(&mut self, name: &Arc<str>, changes: &[TaintChange], message: &str, now: Timestamp) {
        let Some(work) = self.nodes.get_mut(name) else {
            return;
        };
        for change in changes {
            let (reason, what) = match change.kind {
                ChangeKind::Added => (ADD_TAINT_ERROR, "add"),
                ChangeKind::Removed => (REMOVE_TAINT_ERROR, "remove"),
            };
            let failure = Failure {
                reason: EVALUATION_ERROR,
                message: format!("failed to {what} taint: {message}"),
            };
            let Some(rule) = self.rules.get_mut(&*change.rule_uid) else {
                continue;
            };
            for reason in [reason, EVALUATION_ERROR] {
                let labels = [&*change.rule_name, reason];
                self.metrics.failures.with_label_values(&labels).inc();
            }
            if rule.tally.fail(name, failure, now) {
                rule.status_changed(&mut self.timers);
            }
            if !work.recorded_by.contains(rule.uid()) {
                work.recorded_by.push(rule.uid().clone());
            }
        }
    }
}

/// The bootstraps that this plan completes.
fn completions(node: &Node, plan: &NodePlan<'_>) -> Vec<Completion> {
    let completes = |outcome: &&Outcome<'_>| match outcome.standing {
        // A node that is given up does not count as one that got ready.
        Standing::Governs(Decision::GiveUp) => false,
        Standing::Governs(decision) => decision.completes_bootstrap(),
        _ => false,
    };
    plan.outcomes
        .iter()
        .filter(completes)
        .map(|outcome| Completion {
            rule: outcome.rule.name.clone(),
            since: outcome.rebooted.or(node.created.max(outcome.rule.created)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, at, node, rule, world};

    #[test]
    fn a_bootstrap_after_a_reboot_is_timed_from_the_reboot() {
        let gate = rule("r")
            .waits_for("Net")
            .bootstrap_only()
            .spec("regateOnReboot: true");
        let booted = |boot: &str| node("n").boot_id(boot).condition("Net", "True");
        let since = |world: &crate::testing::World| {
            let completions = completions(&world.node, &world.plan());
            completions
                .into_iter()
                .map(|it| it.since)
                .collect::<Vec<_>>()
        };
        let first = world(&booted("a")).rule(&gate);
        assert_eq!(since(&first), [Some(at(0))]);
        let done = r#"{"rule-name":"r","boot-id":"a"}"#;
        let again = booted("b").annotation("readiness.k8s.io/bootstrap-completed-r-uid", done);
        let again = first.sees(&again, at(5000)).now(at(6000));
        assert_eq!(since(&again), [Some(at(5000))]);
    }
}
