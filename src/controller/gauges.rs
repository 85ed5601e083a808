//! Gauges of the current state, updated for each scrape.

use prometheus::GaugeVec;

use super::metrics::Metrics;
use crate::engine::{RuleSurvey, Survey};

impl Metrics {
    /// Sets every gauge from this survey.
    pub(crate) fn survey(&self, survey: &Survey) {
        let _update = self.registry.begin_update();
        self.reset_gauges();
        set(&self.build_info, &[env!("CARGO_PKG_VERSION")], 1);
        set(&self.leader, &[], survey.leads.into());
        set(&self.suspended, &[], survey.suspended.into());
        set(&self.stray_taints, &[], survey.stray);
        set(&self.rules, &[], survey.rules.len());
        set(&self.queue_depth, &[], survey.queue_depth);
        set(&self.writes_in_flight, &[], survey.under_way);
        set(&self.write_limit, &[], survey.write_limit);
        for (kind, number) in &survey.objects {
            set(&self.cache_objects, &[kind], *number);
        }
        for (kind, number) in &survey.unreadable {
            set(&self.unreadable_objects, &[kind], *number);
        }
        for rule in &survey.rules {
            self.survey_rule(rule);
            if let Some((mode, dry_run)) = rule.kind {
                let labels = [mode.as_str(), if dry_run { "true" } else { "false" }];
                self.rules_by_kind.with_label_values(&labels).inc();
            }
        }
        for ((class, kind, status), number) in &survey.synthesized {
            let labels: [&str; 3] = [class, kind, status];
            set(&self.synthesized_conditions, &labels, *number);
        }
    }

    fn survey_rule(&self, survey: &RuleSurvey) {
        let rule = &*survey.rule;
        for (state, number) in [("held", survey.held), ("released", survey.released)] {
            if let Some(number) = number {
                set(&self.rule_nodes, &[rule, state], number);
            }
        }
        if let Some(number) = survey.matched {
            set(&self.rule_matched_nodes, &[rule], number);
        }
        for (condition, number) in &survey.blocked {
            set(&self.blocked_nodes, &[rule, condition], *number);
        }
        let Some(states) = survey.states else {
            return;
        };
        for (state, number) in states {
            set(&self.nodes_by_state, &[rule, state], number);
        }
        set(&self.shut_out, &[rule], survey.shut_out);
        set(&self.outside_namespaces, &[rule], survey.outside_namespaces);
        set(&self.conflicted, &[rule], survey.conflicted);
        set(&self.taints_contended, &[rule], survey.contended);
        for zone in survey.zones.iter().flat_map(|report| &report.zones) {
            let name = zone.zone.to_string();
            set(&self.disruption_waiting, &[rule, &name], zone.waiting);
            let state = zone.state.as_str();
            set(&self.disruption_zone_state, &[rule, &name, state], 1);
        }
        let longest_held = self.longest_held.with_label_values(&[rule]);
        longest_held.set(survey.longest_held.as_secs_f64());
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no cluster has 2^52 of anything"
)]
fn set(gauges: &GaugeVec, labels: &[&str], number: usize) {
    gauges.with_label_values(labels).set(number as f64);
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
                let body = metrics
                    .registry
                    .exposition()
                    .into_body()
                    .collect()
                    .now_or_never();
                let body = body.expect("all of it").expect("no error").to_bytes();
                let text = String::from_utf8_lossy(&body);
                assert!(text.contains("kind=\"Node\"} 1"), "{text}");
            }
        });
    }
}
