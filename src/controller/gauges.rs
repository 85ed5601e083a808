//! Gauges of the current state, updated for each scrape.

use std::sync::PoisonError;

use super::metrics::Metrics;
use crate::engine::{RuleSurvey, Survey};
use crate::guard::Report;

impl Metrics {
    /// Sets every gauge from this survey.
    pub(crate) fn survey(&self, survey: &Survey) {
        let _whole = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        self.reset_gauges();
        self.leader.set(survey.leads.into());
        self.suspended.set(survey.suspended.into());
        self.rules.set(gauge(survey.rules.len()));
        self.queue_depth.set(gauge(survey.queue_depth));
        self.writes_in_flight.set(gauge(survey.under_way));
        self.write_limit.set(gauge(survey.write_limit));
        for (kind, number) in &survey.objects {
            let gauges = &self.cache_objects;
            gauges.with_label_values(&[kind]).set(gauge(*number));
        }
        for (kind, number) in &survey.unreadable {
            let gauges = &self.unreadable_objects;
            gauges.with_label_values(&[kind]).set(gauge(*number));
        }
        for rule in &survey.rules {
            self.survey_rule(rule);
            if let Some((mode, dry_run)) = rule.kind {
                let labels = [mode.as_str(), if dry_run { "true" } else { "false" }];
                self.rules_by_kind.with_label_values(&labels).inc();
            }
        }
        for ((class, kind, status), number) in &survey.synthesized {
            let gauges = &self.synthesized_conditions;
            gauges
                .with_label_values(&[&**class, &**kind, status])
                .set(gauge(*number));
        }
    }

    fn survey_rule(&self, survey: &RuleSurvey) {
        let rule = &*survey.rule;
        for (state, number) in [("held", survey.held), ("released", survey.released)] {
            if let Some(number) = number {
                let gauges = &self.rule_nodes;
                gauges.with_label_values(&[rule, state]).set(gauge(number));
            }
        }
        if let Some(number) = survey.matched {
            let gauges = &self.rule_matched_nodes;
            gauges.with_label_values(&[rule]).set(gauge(number));
        }
        for (condition, number) in &survey.blocked {
            let gauges = &self.blocked_nodes;
            gauges
                .with_label_values(&[rule, condition])
                .set(gauge(*number));
        }
        let Some(states) = survey.states else {
            return;
        };
        for (state, number) in states {
            let gauges = &self.nodes_by_state;
            gauges.with_label_values(&[rule, state]).set(gauge(number));
        }
        for (gauges, number) in [
            (&self.shut_out, survey.shut_out),
            (&self.outside_namespaces, survey.outside_namespaces),
            (&self.taints_contended, survey.contended),
        ] {
            gauges.with_label_values(&[rule]).set(gauge(number));
        }
        if let Some(report) = &survey.zones {
            self.survey_zones(rule, report);
        }
        let longest_held = self.longest_held.with_label_values(&[rule]);
        longest_held.set(survey.longest_held.as_secs_f64());
    }

    /// Clears the gauges, so that no series outlives what it measures.
    fn reset_gauges(&self) {
        let gauges = [
            &self.rules_by_kind,
            &self.rule_matched_nodes,
            &self.blocked_nodes,
            &self.nodes_by_state,
            &self.rule_nodes,
            &self.taints_contended,
            &self.synthesized_conditions,
            &self.shut_out,
            &self.outside_namespaces,
            &self.disruption_waiting,
            &self.disruption_zone_state,
            &self.cache_objects,
            &self.unreadable_objects,
        ];
        for gauge in gauges {
            gauge.reset();
        }
        self.longest_held.reset();
    }

    fn survey_zones(&self, rule: &str, report: &Report) {
        for zone in &report.zones {
            let name = zone.zone.to_string();
            self.disruption_waiting
                .with_label_values(&[rule, &name])
                .set(gauge(zone.waiting));
            self.disruption_zone_state
                .with_label_values(&[rule, &name, zone.state.as_str()])
                .set(1);
        }
    }
}

fn gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn a_scrape_finds_no_gauges_half_done_while_another_has_them_worked_out() {
        let metrics = Metrics::new();
        let survey = Survey {
            objects: vec![("Node", 1)],
            ..Survey::default()
        };
        metrics.survey(&survey);
        std::thread::scope(|scope| {
            let surveys = scope.spawn(|| (0..5_000).for_each(|_| metrics.survey(&survey)));
            while !surveys.is_finished() {
                let body = metrics.exposition().into_body().collect().now_or_never();
                let body = body.expect("all of it").expect("no error").to_bytes();
                let text = String::from_utf8_lossy(&body);
                assert!(text.contains("kind=\"Node\"} 1"), "{text}");
            }
        });
    }
}
