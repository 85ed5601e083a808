//! What metrics there are: a registry that answers scrapes, and that can say what is in it before anything has been
//! measured, for the reference pages.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus::core::Collector;
use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{Encoder, TEXT_FORMAT, TextEncoder};

/// A metric, as its reader needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// What it tells.
    pub help: String,
}

/// Prometheus' registry, which leaves out what has no value yet, with a list of all that is in it.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    registry: prometheus::Registry,
    descriptions: Arc<Mutex<Vec<Description>>>,
}

impl Registry {
    /// A registry with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metric.
    ///
    /// # Errors
    ///
    /// When there is one of the same name.
    pub fn register(&self, collector: Box<dyn Collector>) -> prometheus::Result<()> {
        let families = collector.collect();
        let described = collector.desc().into_iter().zip(families);
        let described = described.map(|(desc, family)| Description {
            name: desc.fq_name.clone(),
            kind: kind(&family),
            labels: desc.variable_labels.clone(),
            help: desc.help.clone(),
        });
        let described: Vec<_> = described.collect();
        self.registry.register(collector)?;
        self.descriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(described);
        Ok(())
    }

    /// What has been measured so far.
    #[must_use]
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    /// The answer to a scrape: what has been measured so far, in the Prometheus text format.
    #[must_use]
    pub fn exposition(&self) -> Response {
        let mut text = Vec::new();
        match TextEncoder::new().encode(&self.gather(), &mut text) {
            Ok(()) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
            Err(error) => {
                let text = format!("cannot encode metrics: {error}\n");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
    }

    /// All metrics, by name.
    #[must_use]
    pub fn descriptions(&self) -> Vec<Description> {
        let descriptions = self.descriptions.lock();
        let mut descriptions = descriptions.unwrap_or_else(PoisonError::into_inner).clone();
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
    use prometheus::{IntCounterVec, Opts};

    use super::*;

    #[test]
    fn a_metric_without_a_value_is_described() {
        let registry = Registry::new();
        let counters = IntCounterVec::new(Opts::new("changes_total", "Changes."), &["kind"]);
        registry.register(Box::new(counters.unwrap())).unwrap();
        assert!(registry.gather().is_empty());
        let description = Description {
            name: "changes_total".into(),
            kind: "counter",
            labels: vec!["kind".into()],
            help: "Changes.".into(),
        };
        assert_eq!(registry.descriptions(), [description]);
    }
}
