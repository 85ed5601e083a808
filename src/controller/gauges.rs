//! Gauges of the current state, updated for each scrape.

use std::collections::BTreeMap;

use prometheus::{GaugeVec, Opts};

use nodegate_engine::{GAUGES, Reading};
use nodegate_serve::metric::Registry;

pub(super) struct Gauges {
    registry: Registry,
    all: BTreeMap<&'static str, GaugeVec>,
}

impl Gauges {
    pub(super) fn new(registry: &Registry) -> Self {
        let all = GAUGES.iter().map(|it| {
            let gauge = GaugeVec::new(Opts::new(it.name, it.help), it.labels);
            (it.name, registry.add(gauge))
        });
        Self {
            all: all.collect(),
            registry: registry.clone(),
        }
    }

    /// Sets every gauge from this survey. No series outlives what it measures.
    pub(super) fn set(&self, survey: &[Reading]) {
        let _update = self.registry.begin_update();
        for gauge in self.all.values() {
            gauge.reset();
        }
        for it in survey {
            let gauge = self.all[it.gauge].with_label_values(&it.labels);
            gauge.add(it.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn a_scrape_finds_no_gauges_half_done_while_another_has_them_worked_out() {
        let registry = Registry::default();
        let gauges = Gauges::new(&registry);
        let survey = [Reading {
            gauge: "nodegate_cache_objects",
            labels: vec!["Node".into()],
            value: 1.0,
        }];
        gauges.set(&survey);
        std::thread::scope(|scope| {
            let surveys = scope.spawn(|| (0..5_000).for_each(|_| gauges.set(&survey)));
            while !surveys.is_finished() {
                let body = registry.exposition().into_body().collect().now_or_never();
                let body = body.expect("all of it").expect("no error").to_bytes();
                let text = String::from_utf8_lossy(&body);
                assert!(text.contains("kind=\"Node\"} 1"), "{text}");
            }
        });
    }
}
