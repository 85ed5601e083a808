//! Counters and histograms, updated as things happen.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prometheus::{HistogramVec, IntCounterVec};

use super::metrics::Metrics;
use nodegate_core::api::RepairAction;
use nodegate_core::plan::{ChangeKind, TaintChange};
use nodegate_engine::error::{ADD_TAINT_ERROR, EVALUATION_ERROR, REMOVE_TAINT_ERROR};
use nodegate_engine::io::Effect;
use nodegate_engine::{Count, RuleCount};

/// How many components have series of their own: whoever may create `DaemonSet`s makes components.
const MOST_COMPONENTS: usize = 64;

#[derive(Debug)]
pub(super) struct Counter {
    metrics: Metrics,
    /// The names of the existing rules.
    known: HashSet<Arc<str>>,
    /// The components with series of their own.
    components: HashSet<Arc<str>>,
}

impl Counter {
    pub(super) fn new(metrics: Metrics) -> Self {
        // Prometheus sees no increase in a series that starts above 0, so it must exist at 0 first.
        for counter in [
            &metrics.status_unchanged,
            &metrics.status_coalesced,
            &metrics.events_dropped,
        ] {
            counter.with_label_values::<&str>(&[]);
        }
        Self {
            metrics,
            known: HashSet::new(),
            components: HashSet::new(),
        }
    }

    /// Counts an engine step's effects and duration. Rules that are gone are skipped: nothing would remove their series again.
    pub(super) fn count(&mut self, effects: &[Effect], took: Duration) {
        let evaluations = effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Count(Count::Rule(_, RuleCount::Evaluated))));
        let evaluations = u32::try_from(evaluations.count()).unwrap_or(u32::MAX);
        let each = took / evaluations.max(1);
        let now = Timestamp::now();
        for effect in effects {
            let Effect::Count(count) = effect else {
                continue;
            };
            let metrics = &self.metrics;
            match count {
                Count::Rule(rule, count) => self.count_for(rule, count, each, now),
                Count::StatusSpared => inc(&metrics.status_unchanged, &[]),
                Count::StatusCoalesced => inc(&metrics.status_coalesced, &[]),
                Count::EventDropped => inc(&metrics.events_dropped, &[]),
            }
        }
    }

    fn count_for(&mut self, rule: &Arc<str>, count: &RuleCount, took: Duration, now: Timestamp) {
        if !matches!(count, RuleCount::Came) && !self.known.contains(rule) {
            return;
        }
        let (metrics, name) = (&self.metrics, &**rule);
        match count {
            RuleCount::Came => self.know_rule(rule),
            RuleCount::Went => {
                metrics.forget_rule(rule);
                self.known.remove(rule);
            }
            RuleCount::Evaluated => {
                observe(&metrics.evaluation_duration, &[name], took.as_secs_f64());
                let last = metrics.last_reconciliation.with_label_values(&[name]);
                last.set(now.as_duration().as_secs_f64());
            }
            RuleCount::Unmet { condition, is_new } => {
                inc(&metrics.condition_failures, &[name, condition]);
                if *is_new {
                    inc(&metrics.turned_unmet, &[name, condition]);
                }
            }
            RuleCount::Changed(change) => self.count_change(change, now),
            RuleCount::Failed(reason) => inc(&metrics.failures, &[name, reason]),
            RuleCount::Undone => inc(&metrics.taints_undone, &[name]),
            RuleCount::Conflicted(kind) => inc(&metrics.api_conflicts, &[name, kind.as_str()]),
            RuleCount::StartedUp(stages) => {
                let met = stages.iter();
                let met = met.filter_map(|it| Some((it, it.took?.as_secs_f64())));
                for (stage, took) in met.clone() {
                    observe(&metrics.startup_stage, &[name, &stage.condition], took);
                }
                if let Some((last, took)) = met.max_by(|a, b| a.1.total_cmp(&b.1)) {
                    inc(&metrics.startup_last, &[name, &last.condition]);
                    let component = bounded(&mut self.components, &last.component);
                    observe(&metrics.startup_component, &[component], took);
                }
            }
            RuleCount::BootstrapCompleted { since, hold } => {
                inc(&metrics.bootstrap_completed, &[name]);
                if let Some(since) = since {
                    let took = seconds_between(*since, now);
                    observe(&metrics.bootstrap_duration, &[name], took);
                }
                if let Some(hold) = hold
                    && let Some(since) = hold.since
                {
                    // Who added the taint under which the bootstrap completed.
                    let origin = if hold.is_adopted {
                        "adopted"
                    } else {
                        "controller"
                    };
                    let took = seconds_between(since, now);
                    observe(&metrics.bootstrap_hold, &[name, origin], took);
                }
            }
            RuleCount::Repaired(action) => inc(&metrics.repairs, &[name, action]),
            RuleCount::RepairBlocked => inc(&metrics.repairs_blocked, &[name]),
            RuleCount::RepairFailed => inc(&metrics.repair_failures, &[name]),
        }
    }

    /// A rule's counters start at 0 so that Prometheus sees the first increase.
    fn know_rule(&mut self, rule: &Arc<str>) {
        self.known.insert(rule.clone());
        let (rule, metrics) = (&**rule, &self.metrics);
        for counter in [
            &metrics.bootstrap_completed,
            &metrics.taints_undone,
            &metrics.repairs_blocked,
            &metrics.repair_failures,
        ] {
            counter.with_label_values(&[rule]);
        }
        for operation in ChangeKind::WORDS {
            let labels = [rule, *operation];
            metrics.taint_operations.with_label_values(&labels);
            metrics.api_conflicts.with_label_values(&labels);
        }
        for reason in [ADD_TAINT_ERROR, REMOVE_TAINT_ERROR, EVALUATION_ERROR] {
            metrics.failures.with_label_values(&[rule, reason]);
        }
        for action in RepairAction::WORDS {
            metrics.repairs.with_label_values(&[rule, action]);
        }
    }

    fn count_change(&self, change: &TaintChange, now: Timestamp) {
        let metrics = &self.metrics;
        let (rule, operation) = (change.rule_name.as_str(), change.kind.as_str());
        inc(&metrics.taint_operations, &[rule, operation]);
        if change.gave_up {
            inc(&metrics.repairs, &[rule, RepairAction::Release.as_str()]);
        }
        if let Some(transition) = change.transition {
            let took = seconds_between(transition, now);
            observe(&metrics.enforcement_latency, &[rule, operation], took);
            let operation = &*format!("{operation}_taint");
            observe(&metrics.reconciliation_latency, &[rule, operation], took);
        }
    }
}

/// The component, if it has a series of its own or may get one.
fn bounded<'a>(known: &mut HashSet<Arc<str>>, component: &'a Arc<str>) -> &'a str {
    if known.len() < MOST_COMPONENTS {
        known.insert(component.clone());
    }
    known.get(component).map_or("other", |_| component)
}

fn inc(counter: &IntCounterVec, labels: &[&str]) {
    counter.with_label_values(labels).inc();
}

fn observe(histogram: &HistogramVec, labels: &[&str], seconds: f64) {
    histogram.with_label_values(labels).observe(seconds);
}

/// Seconds from one time to a later one; 0 if the clocks disagree about the order.
fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector;

    use super::*;
    use nodegate_engine::Stage;

    #[test]
    fn no_more_than_64_components_have_series_of_their_own() {
        let metrics = Metrics::new();
        let components = metrics.startup_component.clone();
        let mut counter = Counter::new(metrics);
        let rule: Arc<str> = "r".into();
        let starts = (0..100).flat_map(|index| [index, 0]).map(|index| {
            let stage = |component: String, seconds| Stage {
                condition: "Ready".into(),
                component: component.into(),
                took: Some(jiff::SignedDuration::from_secs(seconds)),
            };
            let stages = vec![stage(format!("a/{index}"), 7), stage("a/first".into(), 5)];
            Count::Rule(rule.clone(), RuleCount::StartedUp(stages))
        });
        let came = Count::Rule(rule.clone(), RuleCount::Came);
        let counts: Vec<_> = [came]
            .into_iter()
            .chain(starts)
            .map(Effect::Count)
            .collect();
        counter.count(&counts, Duration::ZERO);
        let of = |component: &str| {
            let series = components.with_label_values(&[component]);
            (series.get_sample_count(), series.get_sample_sum())
        };
        assert_eq!(of("a/0"), (101, 707.0));
        assert_eq!(of("a/63"), (1, 7.0));
        assert_eq!(of("other"), (36, 252.0));
        let series: usize = components
            .collect()
            .iter()
            .map(|it| it.get_metric().len())
            .sum();
        assert_eq!(series, 65);
    }

    #[test]
    fn a_rule_is_counted_until_it_is_gone() {
        let metrics = Metrics::new();
        let evaluations = metrics.evaluation_duration.clone();
        let mut counter = Counter::new(metrics);
        let rule: Arc<str> = "r".into();
        let came = Count::Rule(rule.clone(), RuleCount::Came);
        let went = Count::Rule(rule.clone(), RuleCount::Went);
        for (name, before, series) in [
            ("before it is known", None, 0),
            ("while it is there", Some(came), 1),
            ("when it is gone", Some(went), 0),
        ] {
            let evaluated = Count::Rule(rule.clone(), RuleCount::Evaluated);
            let counts = before.into_iter().chain([evaluated]);
            let effects: Vec<_> = counts.map(Effect::Count).collect();
            counter.count(&effects, Duration::from_millis(1));
            let collected: usize = evaluations
                .collect()
                .iter()
                .map(|it| it.get_metric().len())
                .sum();
            assert_eq!(collected, series, "{name}");
        }
    }
}
