//! Metrics by table: `metrics!` makes a struct of Prometheus metrics, a field each, and can list them for the reference pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus::core::{Collector, Desc, MetricVec, MetricVecBuilder};
#[cfg(target_os = "linux")]
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricType;
use prometheus::{TEXT_FORMAT, TextEncoder};

use super::lock;

/// A metric, for the reference pages, and its type: `counter`, `gauge` or `histogram`.
pub type Description = (Desc, &'static str);

/// Prometheus' registry, in which names and labels are constants, so an invalid or duplicate one panics.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    inner: prometheus::Registry,
    /// Held while gauges are updated, so that no scrape reads a partial update.
    update: Arc<Mutex<()>>,
    described: Arc<Mutex<Vec<Description>>>,
}

impl Registry {
    /// With metrics about this process, where the system tells.
    pub fn with_process() -> Self {
        let new = Self::default();
        #[cfg(target_os = "linux")]
        new.register(ProcessCollector::for_self());
        new
    }

    pub fn add<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("metric names and labels are valid");
        self.register(metric.clone());
        metric
    }

    fn register(&self, collector: impl Collector + 'static) {
        let families = collector.collect().into_iter();
        let kinds = families.map(|family| match family.get_field_type() {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            _ => "histogram",
        });
        let described = collector.desc().into_iter().cloned().zip(kinds);
        lock(&self.described).extend(described);
        let registered = self.inner.register(Box::new(collector));
        registered.expect("no two metrics have the same name");
    }

    pub fn descriptions(&self) -> Vec<Description> {
        lock(&self.described).clone()
    }

    /// Until the guard is dropped, a scrape waits.
    pub fn begin_update(&self) -> MutexGuard<'_, ()> {
        lock(&self.update)
    }

    /// The answer to a scrape, in the Prometheus text format.
    pub fn exposition(&self) -> Response {
        let families = {
            let _whole = self.begin_update();
            self.inner.gather()
        };
        match TextEncoder::new().encode_to_string(&families) {
            Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
            Err(error) => {
                let text = format!("cannot encode metrics: {error}\n");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
    }
}

pub fn forget<B: MetricVecBuilder>(metrics: &MetricVec<B>, rule: &str) {
    for family in metrics.collect() {
        for series in family.get_metric() {
            let labels = series.get_label().iter();
            let labels: HashMap<_, _> = labels.map(|it| (it.name(), it.value())).collect();
            if labels.get("rule") == Some(&rule) {
                // It is there: it has just been collected.
                let _ = metrics.remove(&labels);
            }
        }
    }
}

/// Makes a struct of metrics from a table by the library's types. They change as things happen, and start with their first value.
#[macro_export]
macro_rules! metrics {
    (
        $name:ident in $registry:expr;
        $($kind:ident { $($field:ident: $metric:literal [$($label:literal),*] $(in $buckets:expr)?, $help:literal;)* })*
    ) => {
        #[derive(Debug, Clone)]
        pub(crate) struct $name {
            pub(crate) registry: $crate::metric::Registry,
            $($(pub(crate) $field: prometheus::$kind,)*)*
        }

        impl $name {
            pub(crate) fn new() -> Self {
                let to = $registry;
                Self {
                    $($($field: {
                        let options = prometheus::Opts::new($metric, $help);
                        $(let options = prometheus::HistogramOpts::from(options).buckets($buckets.to_vec());)?
                        to.add(prometheus::$kind::new(options, &[$($label),*]))
                    },)*)*
                    registry: to,
                }
            }

            #[allow(dead_code, reason = "not every table is about rules")]
            pub(crate) fn forget_rule(&self, rule: &str) {
                $($($crate::metric::forget(&self.$field, rule);)*)*
            }
        }
    };
}
#[cfg(test)]
mod tests {
    use super::*;

    metrics! {
        Samples in Registry::default();
        IntCounterVec { changes: "changes_total" ["rule", "kind"], "Changes."; }
    }

    #[test]
    fn a_metric_without_a_value_is_described() {
        let registry = Samples::new().registry;
        assert!(registry.inner.gather().is_empty());
        let (described, kind) = &registry.descriptions()[0];
        assert_eq!((&*described.fq_name, *kind), ("changes_total", "counter"));
        assert_eq!(described.variable_labels, ["rule", "kind"]);
        assert_eq!(described.help, "Changes.");
    }
}
