//! What has happened once, counted.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::metrics::Metrics;
use crate::api::RepairAction;
use crate::engine::io::{ADD_TAINT_ERROR, Count, EVALUATION_ERROR, Effect, REMOVE_TAINT_ERROR};
use crate::plan::{ChangeKind, TaintChange};

/// Label of a taint that is put on.
const OPERATION_ADD: &str = "add";
/// Label of a taint that is lifted.
const OPERATION_REMOVE: &str = "remove";

/// Who put on the taint under which a node's bootstrap was completed.
const CONTROLLER: &str = "controller";
const ADOPTED: &str = "adopted";

/// What became of a look.
const LOOK_ANSWERED: &str = "answered";
const LOOK_FAILED: &str = "failed";

/// The label of a change.
const fn operation(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => OPERATION_ADD,
        ChangeKind::Removed => OPERATION_REMOVE,
    }
}

/// The same operation as the latency histogram's label has it.
fn latency_operation(operation: &str) -> String {
    format!("{operation}_taint")
}

/// Moves the counters and histograms.
#[derive(Debug)]
pub struct Counter {
    metrics: Metrics,
    /// The rules there are, by name.
    known: HashSet<Arc<str>>,
}

impl Counter {
    /// Moves these.
    pub fn new(metrics: Metrics) -> Self {
        // An increase from nothing is none to Prometheus.
        for result in [LOOK_ANSWERED, LOOK_FAILED] {
            metrics.last_looks.with_label_values(&[result]);
        }
        Self {
            metrics,
            known: HashSet::new(),
        }
    }

    /// Counts what has happened in one turn of the engine, which took so long. Of rules that are gone nothing is counted:
    /// nothing would take their series away again.
    pub fn count(&mut self, effects: &[Effect], took: Duration) {
        let counts = || {
            effects.iter().filter_map(|effect| match effect {
                Effect::Count(count) => Some(count),
                _ => None,
            })
        };
        let is_evaluation = |count: &&Count| matches!(count, Count::Evaluated { .. });
        let evaluations = u32::try_from(counts().filter(is_evaluation).count()).unwrap_or(u32::MAX);
        let each = took / evaluations.max(1);
        let now = Timestamp::now();
        for count in counts() {
            self.count_one(count, each, now);
        }
    }

    fn count_one(&mut self, count: &Count, took: Duration, now: Timestamp) {
        if count.rule().is_some_and(|rule| !self.known.contains(rule)) {
            return;
        }
        let metrics = &self.metrics;
        match count {
            Count::RuleCame { rule } => self.know_rule(rule),
            Count::RuleWent { rule, conditions } => self.forget_rule(rule, conditions),
            Count::Evaluated { rule } => {
                let duration = metrics.evaluation_duration.with_label_values(&[rule]);
                duration.observe(took.as_secs_f64());
                let last = metrics.last_reconciliation.with_label_values(&[rule]);
                last.set(now.as_duration().as_secs_f64());
            }
            Count::TurnedUnmet { rule, condition } => {
                let failures = &metrics.condition_failures;
                failures.with_label_values(&[rule, condition]).inc();
            }
            Count::Changed(change) => self.count_change(change, now),
            Count::Failed { rule, reason } => {
                let failures = &metrics.failures;
                failures.with_label_values(&[&**rule, reason]).inc();
            }
            Count::Undone { rule } => metrics.taints_undone.with_label_values(&[rule]).inc(),
            Count::Conflicted { rule, kind } => {
                let labels = [&**rule, operation(*kind)];
                metrics.api_conflicts.with_label_values(&labels).inc();
            }
            Count::StartedUp { rule, stages } => {
                for stage in stages {
                    let labels = [&**rule, &*stage.condition];
                    let took = metrics.startup_stage.with_label_values(&labels);
                    took.observe(stage.took.as_secs_f64());
                }
                if let Some(last) = stages.iter().max_by_key(|stage| stage.took) {
                    let labels = [&**rule, &*last.condition];
                    metrics.startup_last.with_label_values(&labels).inc();
                }
            }
            Count::BootstrapCompleted { rule, since, hold } => {
                metrics.bootstrap_completed.with_label_values(&[rule]).inc();
                if let Some(since) = since {
                    let duration = metrics.bootstrap_duration.with_label_values(&[rule]);
                    duration.observe(seconds_between(*since, now));
                }
                if let Some(hold) = hold
                    && let Some(since) = hold.since
                {
                    let origin = if hold.is_adopted { ADOPTED } else { CONTROLLER };
                    let duration = metrics.bootstrap_hold.with_label_values(&[&**rule, origin]);
                    duration.observe(seconds_between(since, now));
                }
            }
            Count::Repaired { rule, action } => {
                let repairs = &metrics.repairs;
                repairs.with_label_values(&[&**rule, action]).inc();
            }
            Count::RepairBlocked { rule } => {
                metrics.repairs_blocked.with_label_values(&[rule]).inc();
            }
            Count::RepairFailed { rule } => {
                metrics.repair_failures.with_label_values(&[rule]).inc();
            }
            Count::Looked { answered } => {
                let result = if *answered {
                    LOOK_ANSWERED
                } else {
                    LOOK_FAILED
                };
                metrics.last_looks.with_label_values(&[result]).inc();
            }
            Count::StatusSpared => metrics.status_unchanged.inc(),
            Count::StatusCoalesced => metrics.status_coalesced.inc(),
            Count::EventDropped => metrics.events_dropped.inc(),
        }
    }

    /// Has the counters of a rule start at zero: an increase from nothing is none to Prometheus.
    fn know_rule(&mut self, rule: &Arc<str>) {
        self.known.insert(rule.clone());
        for operation in [OPERATION_ADD, OPERATION_REMOVE] {
            for counters in [&self.metrics.taint_operations, &self.metrics.api_conflicts] {
                counters.with_label_values(&[rule, operation]);
            }
        }
        for reason in [ADD_TAINT_ERROR, REMOVE_TAINT_ERROR, EVALUATION_ERROR] {
            self.metrics.failures.with_label_values(&[rule, reason]);
        }
        self.metrics.bootstrap_completed.with_label_values(&[rule]);
        self.metrics.taints_undone.with_label_values(&[rule]);
        for action in RepairAction::WORDS {
            self.metrics.repairs.with_label_values(&[&**rule, action]);
        }
        self.metrics.repairs_blocked.with_label_values(&[rule]);
        self.metrics.repair_failures.with_label_values(&[rule]);
    }

    /// Takes away the counters and histograms of a rule that is gone; the gauges are worked out anew each time.
    fn forget_rule(&mut self, rule: &str, conditions: &[Arc<str>]) {
        self.known.remove(rule);
        // A series that was never there cannot be removed, which is as good.
        for operation in [OPERATION_ADD, OPERATION_REMOVE] {
            for counters in [&self.metrics.taint_operations, &self.metrics.api_conflicts] {
                let _ = counters.remove_label_values(&[rule, operation]);
            }
            let _ = self
                .metrics
                .enforcement_latency
                .remove_label_values(&[rule, operation]);
            let _ = self
                .metrics
                .reconciliation_latency
                .remove_label_values(&[rule, &latency_operation(operation)]);
        }
        for reason in [ADD_TAINT_ERROR, REMOVE_TAINT_ERROR, EVALUATION_ERROR] {
            let _ = self.metrics.failures.remove_label_values(&[rule, reason]);
        }
        for condition in conditions {
            let labels = [rule, condition.as_ref()];
            let _ = self.metrics.startup_stage.remove_label_values(&labels);
            for counters in [&self.metrics.condition_failures, &self.metrics.startup_last] {
                let _ = counters.remove_label_values(&labels);
            }
        }
        for action in RepairAction::WORDS {
            let _ = self.metrics.repairs.remove_label_values(&[rule, action]);
        }
        let _ = self.metrics.repairs_blocked.remove_label_values(&[rule]);
        let _ = self.metrics.repair_failures.remove_label_values(&[rule]);
        let _ = self.metrics.taints_undone.remove_label_values(&[rule]);
        let _ = self
            .metrics
            .bootstrap_completed
            .remove_label_values(&[rule]);
        let _ = self.metrics.bootstrap_duration.remove_label_values(&[rule]);
        for origin in [CONTROLLER, ADOPTED] {
            let _ = self
                .metrics
                .bootstrap_hold
                .remove_label_values(&[rule, origin]);
        }
        let _ = self
            .metrics
            .evaluation_duration
            .remove_label_values(&[rule]);
        let _ = self
            .metrics
            .last_reconciliation
            .remove_label_values(&[rule]);
    }

    /// Counts a taint change that has been made.
    fn count_change(&self, change: &TaintChange, now: Timestamp) {
        let rule = change.rule_name.as_str();
        let operation = operation(change.kind);
        self.metrics
            .taint_operations
            .with_label_values(&[rule, operation])
            .inc();
        if change.gave_up {
            let action = RepairAction::Release.as_str();
            self.metrics
                .repairs
                .with_label_values(&[rule, action])
                .inc();
        }
        if let Some(transition) = change.transition {
            self.metrics
                .reconciliation_latency
                .with_label_values(&[rule, &latency_operation(operation)])
                .observe(seconds_between(transition, now));
            self.metrics
                .enforcement_latency
                .with_label_values(&[rule, operation])
                .observe(seconds_between(transition, now));
        }
    }
}

/// Seconds from one time to a later one; 0 where clocks disagree about which is later.
fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}
