//! The reporter's metrics and probes, on one address: `/metrics`, `/healthz` and `/readyz`.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::outcome::CheckFinding;
use nodegate_core::api::ConditionStatus;
use nodegate_serve::metric::Registry;
use nodegate_serve::{metrics, probed, serve_http};

const CHECK_BUCKETS: &[f64] = &[0.005, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Results of writing a condition; it is skipped where nothing has changed.
pub(super) const SUCCESS: &str = "success";
pub(super) const ERROR: &str = "error";
pub(super) const SKIPPED: &str = "skipped";

metrics! {
    ReporterMetrics in Registry::default();
    IntCounterVec {
        checks: "node_readiness_reporter_checks_total" ["result"], "Checks by result.";
        writes: "node_readiness_reporter_condition_writes_total" ["result"],
            "Writes of the condition by result; skipped where nothing had changed.";
    }
    HistogramVec {
        check_duration: "node_readiness_reporter_check_duration_seconds" [] in CHECK_BUCKETS, "Time a check takes.";
    }
    GaugeVec {
        build_info: "node_readiness_reporter_build_info" ["version"], "Version of the reporter.";
        status: "node_readiness_reporter_condition_status" ["type", "status"],
            "1 for the status that the condition was last written with.";
    }
}

impl ReporterMetrics {
    /// With counters at zero, so that Prometheus sees the first increase.
    pub(super) fn at_zero() -> Self {
        let metrics = Self::new();
        let version = [env!("CARGO_PKG_VERSION")];
        metrics.build_info.with_label_values(&version).set(1.0);
        for finding in ["healthy", "unhealthy", "error"] {
            metrics.checks.with_label_values(&[finding]);
        }
        for write in [SUCCESS, ERROR, SKIPPED] {
            metrics.writes.with_label_values(&[write]);
        }
        metrics
    }

    pub(super) fn checked(&self, finding: CheckFinding, took: Duration) {
        let (.., result) = finding.row();
        self.checks.with_label_values(&[result]).inc();
        let duration = self.check_duration.with_label_values(&[""; 0]);
        duration.observe(took.as_secs_f64());
    }

    pub(super) fn wrote(&self, result: &str) {
        self.writes.with_label_values(&[result]).inc();
    }

    pub(super) fn set_status(&self, condition_type: &str, status: ConditionStatus) {
        for other in [ConditionStatus::True, ConditionStatus::False] {
            let labels = [condition_type, other.as_str()];
            let gauge = self.status.with_label_values(&labels);
            gauge.set(f64::from(other == status));
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReporterHealth {
    /// When a check last ended; initially, when the reporter started.
    pub(super) last_check: Instant,
    /// Why nothing has been reported yet. After the first report, an unreachable API server does not make the pod unready.
    pub(super) unready: Option<String>,
}

/// Serves metrics and probes for as long as the process lives. A reporter is not alive once no check has ended for `patience`.
pub(super) fn serve(
    listener: TcpListener,
    metrics: ReporterMetrics,
    health: watch::Receiver<ReporterHealth>,
    patience: Duration,
) {
    let alive = health.clone();
    let alive = async move || {
        let age = alive.borrow().last_check.elapsed();
        probed((age > patience).then(|| format!("no check has ended for {} s", age.as_secs())))
    };
    let ready = async move || probed(health.borrow().unready.clone());
    let router = Router::new()
        .route("/metrics", get(async move || metrics.registry.exposition()))
        .route("/healthz", get(alive))
        .route("/readyz", get(ready));
    let name = "metrics and probes";
    tokio::spawn(serve_http(listener, name, 16, None, router));
}
