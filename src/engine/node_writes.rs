//! The loop's writes of nodes' taints and annotations: how they are started, and what follows from how they end.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use json_patch::Patch as JsonPatch;
use tracing::debug;

use super::announce::{tell, tell_undone};
use super::nodes::NodeWork;
use super::reconcile::{Done, Reconciler};
use super::status::Failure;
use crate::controller::metrics::{
    ADD_TAINT_ERROR, EVALUATION_ERROR, REMOVE_TAINT_ERROR, seconds_between,
};
use crate::engine::RequestError;
use crate::engine::{Backoff, Pauses, Refusals, Retries};
use crate::object::{Node, NodeMetadata, NodeObject, Taint};
use crate::plan::{
    self, ChangeKind, ClusterState, Decision, History, NodePlan, NodeState, Outcome, Part,
    Standing, TaintChange, TaintId,
};

/// How often a node may change under a write before a pause is made.
const CONFLICTS_WITHOUT_PAUSE: u32 = 5;

/// A write of a node's taints and annotations.
#[derive(Debug)]
pub(super) struct NodeWrite {
    pub(super) name: Arc<str>,
    subject: Subject,
    /// The taints that the node has if this succeeds, where they change.
    pub(super) taints: Option<Vec<Taint>>,
    pub(super) changes: Vec<TaintChange>,
    pub(super) completions: Vec<Completion>,
}

impl NodeWrite {
    /// What carries out this plan.
    pub(super) fn of(node: &Node, plan: NodePlan<'_>, subject: Subject) -> Self {
        Self {
            name: node.name.clone(),
            subject,
            completions: completions(node, &plan),
            taints: plan.taints,
            changes: plan.changes,
        }
    }
}

/// What a write is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// All that there is to write, which may be more than one thing.
    Several,
    /// One taint, with what goes with it; or annotations that go with none.
    One(Option<TaintId>),
}

impl Subject {
    /// What the whole plan is about.
    fn of(plan: &NodePlan<'_>) -> Self {
        match &*plan.changes {
            [change]
                if plan
                    .annotations
                    .keys()
                    .all(|key| key.ends_with(&*change.rule_uid)) =>
            {
                Self::One(Some(change.taint()))
            }
            _ => Self::Several,
        }
    }
}

/// What of a node's plan is written now.
pub(super) enum Choice<'a> {
    /// This much of it.
    Write(Box<NodePlan<'a>>, Subject),
    /// Nothing before this time.
    Later(Instant),
    /// Nothing: there is nothing to write, or it is not the node's turn to try again.
    Nothing,
}

impl<'a> Choice<'a> {
    /// All of the plan, as long as the API server has refused none of it and nobody undoes it; else the first part of it
    /// that nothing stands against.
    pub(super) fn of(
        plan: NodePlan<'a>,
        cluster: ClusterState<'a>,
        (state, history): (NodeState<'a>, History<'a>),
        work: &mut NodeWork,
        retries: &mut Retries,
        now: Timestamp,
    ) -> Self {
        let clock = Instant::now();
        if !work.contention.is_empty() {
            let is_right =
                |taint: &TaintId, change| is_rightly_undone(state.node, &plan, taint, change);
            work.contention.forget(clock, is_right);
        }
        if !plan.writes_node() {
            work.retry = Backoff::default();
            work.conflicts = 0;
            work.refusals = Refusals::default();
            work.has_turn = false;
            retries.forget(&state.node.name);
            return Self::Nothing;
        }
        if let Some(at) = work.retry.not_before(clock) {
            return Self::Later(at);
        }
        let NodeWork {
            refusals,
            contention,
            has_turn,
            ..
        } = work;
        let undone_until = |change: &TaintChange| {
            let is_taint = |taint: &TaintId| taint.is_of(change);
            contention.not_before(is_taint, change.kind, clock)
        };
        let is_plain = |change: &TaintChange| {
            undone_until(change).is_none() && !retries.is_locked_out(&change.key)
        };
        if refusals.is_empty() && plan.changes.iter().all(is_plain) {
            let subject = Subject::of(&plan);
            return Self::Write(Box::new(plan), subject);
        }
        let parts = plan::parts(cluster, state, history, now);
        let taints: Vec<_> = parts.iter().map(|part| part.taint.clone()).collect();
        refusals.retain(&taints);
        let mut later: Option<Instant> = None;
        for Part { taint, plan } in parts {
            let undone_until = plan.changes.iter().filter_map(undone_until).max();
            let until = refusals.not_before(&taint, clock).max(undone_until);
            if let Some(until) = until {
                later = later.into_iter().chain([until]).min();
                continue;
            }
            let what = key_of(taint.as_ref());
            let times = refusals.times(&taint);
            let is_free = times == 0 && !retries.is_locked_out(what);
            if is_free
                || std::mem::take(has_turn)
                || retries.turn(&state.node.name, what, times, clock)
            {
                return Self::Write(Box::new(plan), Subject::One(taint));
            }
        }
        later.map_or(Self::Nothing, Self::Later)
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
        self.start(async move {
            let result = writer.patch_node(&write.name, patch).await;
            let fresh = match result {
                Err(RequestError::Conflict) => writer.read_node(&write.name).await.ok(),
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
        result: Result<NodeMetadata, RequestError>,
        fresh: Option<NodeObject>,
    ) {
        self.node_writes -= 1;
        let now = Timestamp::now();
        if result.is_ok() {
            self.count(&write, now);
        }
        let clock = Instant::now();
        let NodeWrite {
            name,
            subject,
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
                match &subject {
                    Subject::Several => {
                        for change in &changes {
                            self.retries.carried_out(&change.key, 0, clock);
                        }
                    }
                    Subject::One(taint) => {
                        let times = work.refusals.carried_out(taint);
                        self.retries
                            .carried_out(key_of(taint.as_ref()), times, clock);
                    }
                }
                for change in &changes {
                    tell(&self.events, &node, change);
                    let rule = &change.rule_name;
                    let taint = change.taint();
                    if let Some(undone) = work.contention.made(taint, change.kind, rule, clock) {
                        if self.cache.rules().contains_key(rule.as_str()) {
                            self.metrics.taints_undone.with_label_values(&[rule]).inc();
                        }
                        tell_undone(&self.events, &node, change, undone);
                    }
                    if change.kind == ChangeKind::Added
                        && let Some(rule) = self.rules.get_mut(&*change.rule_uid)
                    {
                        rule.closed(&name);
                    }
                }
                self.cache.patched_node(node, taints);
            }
            Err(RequestError::Conflict) => {
                debug!(node = %name, "the node has changed in the meantime; evaluating it again");
                work.conflicts += 1;
                if work.conflicts > CONFLICTS_WITHOUT_PAUSE {
                    work.retry.failed(Pauses::REFUSED, Instant::now());
                }
                if let Some(node) = fresh {
                    self.cache.update_node(node, now);
                }
            }
            Err(RequestError::Gone) => {
                // The watch will tell; should it lag, the pause keeps this from being asked over and over.
                work.retry.failed(Pauses::REFUSED, Instant::now());
            }
            // All wait for these together.
            Err(RequestError::Unreachable(_) | RequestError::Throttled { .. }) => {}
            Err(error) => match subject {
                // Who knows for the sake of what.
                Subject::Several => work.refusals.split(),
                Subject::One(taint) => {
                    let key = key_of(taint.as_ref()).to_owned();
                    let before = work.refusals.refused(taint, clock);
                    self.retries.refused(&key, before, clock);
                    self.blame(&name, &changes, &error.to_string(), now);
                    self.complain("cannot write the node", &name, &error);
                }
            },
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

/// Whether a change of a taint has been undone, and no rule wants it made again.
fn is_rightly_undone(
    node: &Node,
    plan: &NodePlan<'_>,
    taint: &TaintId,
    change: ChangeKind,
) -> bool {
    let is_there = node.taint(&taint.key, taint.effect).is_some();
    let is_undone = is_there != (change == ChangeKind::Added);
    let waits = |outcome: &Outcome<'_>| {
        let spec = outcome.rule.active();
        matches!(outcome.standing, Standing::Governs(Decision::Wait(_)))
            && spec.is_some_and(|spec| spec.taint.is(&taint.key, taint.effect))
    };
    is_undone
        && plan.look.is_empty()
        && !plan.changes.iter().any(|change| taint.is_of(change))
        && !plan.outcomes.iter().any(waits)
}

/// What is refused on node after node is known by the taint's key.
fn key_of(taint: Option<&TaintId>) -> &str {
    taint.map_or("", |taint| &taint.key)
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
