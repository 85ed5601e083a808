//! The gauges, worked out from what the loop knows when they are asked for.

use std::collections::HashMap;
use std::time::Instant;

use jiff::Timestamp;

use super::reconcile::Reconciler;
use crate::api::ConditionStatus;
use crate::condition::Source;
use crate::controller::metrics::{gauge, seconds_between};
use crate::plan::WhyPassedOver;

impl Reconciler {
    /// Brings the gauges up to date.
    pub(super) fn survey(&self) {
        let metrics = &self.metrics;
        metrics.reset_gauges();
        metrics.queue_depth.set(gauge(self.cache.dirty_count()));
        metrics.writes_in_flight.set(gauge(self.in_flight.len()));
        for (kind, size) in self.cache.sizes() {
            metrics
                .cache_objects
                .with_label_values(&[kind])
                .set(gauge(size));
        }
        for (kind, number) in self.cache.unreadable_counts() {
            let gauges = &metrics.unreadable_objects;
            gauges.with_label_values(&[kind]).set(gauge(number));
        }
        self.survey_rules();
    }

    /// Brings the gauges about rules up to date.
    fn survey_rules(&self) {
        let now = Timestamp::now();
        let classes = self.cache.cluster().classes;
        let mut synthesized: HashMap<(&str, &str, &str), ConditionStatus> = HashMap::new();
        for work in self.rules.values() {
            let Some(cached) = self.cache.rules().get(&work.name) else {
                continue;
            };
            let Ok(spec) = &cached.rule.spec else {
                let held = self
                    .metrics
                    .rule_nodes
                    .with_label_values(&[&*work.name, "held"]);
                held.set(gauge(work.tally.lingering()));
                continue;
            };
            let states = work.tally.states(spec.mode);
            let held = states.not_ready + states.bootstrapping;
            if !spec.dry_run {
                // A dry run neither holds a node nor has it released one.
                for (state, number) in [("held", held), ("released", states.ready)] {
                    let gauges = &self.metrics.rule_nodes;
                    gauges
                        .with_label_values(&[&*work.name, state])
                        .set(gauge(number));
                }
            }
            for (state, number) in [
                ("ready", states.ready),
                ("not_ready", states.not_ready),
                ("bootstrapping", states.bootstrapping),
            ] {
                let gauges = &self.metrics.nodes_by_state;
                gauges
                    .with_label_values(&[&*work.name, state])
                    .set(gauge(number));
            }
            for (why, gauges) in [
                (WhyPassedOver::ShutOut, &self.metrics.shut_out),
                (
                    WhyPassedOver::OutsideNamespaces,
                    &self.metrics.outside_namespaces,
                ),
            ] {
                let number = work.passed_over.iter().filter(|it| it.why == why).count();
                gauges.with_label_values(&[&*work.name]).set(gauge(number));
            }
            if let Some(disruption) = &work.disruption {
                self.metrics.survey_zones(&work.name, &disruption.report());
            }
            self.metrics
                .taints_contended
                .with_label_values(&[&*work.name]);
            let longest_held = self.metrics.longest_held.with_label_values(&[&*work.name]);
            let since = work.tally.longest_closed_since();
            longest_held.set(since.map_or(0.0, |since| seconds_between(since, now)));
            for (node, statuses) in work.tally.all_statuses() {
                for (requirement, status) in spec.conditions.iter().zip(statuses) {
                    let class = match requirement.source {
                        Source::Class { class, .. } => &*classes[class].name,
                        _ => "",
                    };
                    if requirement.source.is_synthesized() {
                        let status = status.unwrap_or(ConditionStatus::Unknown);
                        synthesized.insert((class, &*requirement.kind, node), status);
                    }
                }
            }
        }
        let clock = Instant::now();
        let contentions = self.nodes.values().map(|node| &node.contention);
        for rule in contentions.flat_map(|contention| contention.contended(clock)) {
            if self.cache.rules().contains_key(rule) {
                let gauges = &self.metrics.taints_contended;
                gauges.with_label_values(&[rule]).inc();
            }
        }
        for ((class, kind, _), status) in synthesized {
            let gauges = &self.metrics.synthesized_conditions;
            gauges
                .with_label_values(&[class, kind, status.as_str()])
                .inc();
        }
    }
}
