//! A metrics registry that answers scrapes, and that can describe metrics without any values, for the reference pages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus::core::Collector;
use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, TEXT_FORMAT,
    TextEncoder,
};

/// A metric, for the reference pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// What it measures.
    pub help: String,
}

/// Prometheus' registry, which omits metrics without values, with a list of all of them. Names and labels are constants, so an
/// invalid or duplicate one panics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    registry: prometheus::Registry,
    descriptions: Arc<Mutex<Vec<Description>>>,
}

impl Registry {
    pub(crate) fn register(&self, collector: Box<dyn Collector>) {
        let families = collector.collect();
        let described = collector.desc().into_iter().zip(families);
        let described = described.map(|(desc, family)| Description {
            name: desc.fq_name.clone(),
            kind: kind(&family),
            labels: desc.variable_labels.clone(),
            help: desc.help.clone(),
        });
        let mut descriptions = self.descriptions();
        descriptions.extend(described);
        let registered = self.registry.register(collector);
        registered.expect("no two metrics have the same name");
    }

    pub(crate) fn add<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("metric names and labels are valid");
        self.register(Box::new(metric.clone()));
        metric
    }

    pub(crate) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(crate) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(crate) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> HistogramVec {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(HistogramVec::new(options, labels))
    }

    /// Adds a gauge, always 1, whose label is this program's version.
    pub(crate) fn add_build_info(&self, name: &str, help: &str) {
        let build_info = self.gauges(name, help, &["version"]);
        build_info
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
    }

    fn descriptions(&self) -> MutexGuard<'_, Vec<Description>> {
        let descriptions = self.descriptions.lock();
        descriptions.unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a scrape, in the Prometheus text format.
    pub(crate) fn exposition(&self) -> Response {
        let mut text = Vec::new();
        match TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            Ok(()) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
            Err(error) => {
                let text = format!("cannot encode metrics: {error}\n");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
    }

    /// All metrics, sorted by name.
    pub(crate) fn described(&self) -> Vec<Description> {
        let mut descriptions = self.descriptions().clone();
        descriptions.sort_by(|a, b| a.name.cmp(&b.name));
        descriptions
    }
}

fn kind(family: &MetricFamily) -> &'static str {
    match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_without_a_value_is_described() {
        let registry = Registry::default();
        registry.counters("changes_total", "Changes.", &["kind"]);
        assert!(registry.registry.gather().is_empty());
        let description = Description {
            name: "changes_total".into(),
            kind: "counter",
            labels: vec!["kind".into()],
            help: "Changes.".into(),
        };
        assert_eq!(registry.described(), [description]);
    }
}
