//! The reporter's metrics and probes, on one address: `/metrics`, `/healthz` and `/readyz`.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGaugeVec, Opts};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::outcome::CheckFinding;
use crate::api::ConditionStatus;
use crate::metric::{Description, Registry};
use crate::serve::{RoomLimits, Server};

/// Buckets of the time that a check takes.
const CHECK_BUCKETS: &[f64] = &[0.005, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How writing a condition ended.
#[derive(Debug, Clone, Copy)]
pub enum WriteResult {
    /// It was written.
    Success,
    /// It could not be written.
    Error,
    /// There was nothing to write.
    Skipped,
}

/// The metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    checks: IntCounterVec,
    check_duration: Histogram,
    writes: IntCounterVec,
    status: IntGaugeVec,
}

impl Metrics {
    /// All metrics; counters at zero, so that a rate can be told from the first time on.
    pub fn new() -> Self {
        let registry = Registry::new();
        let build_info = gauges(
            &registry,
            "node_readiness_reporter_build_info",
            "Version of the reporter.",
            &["version"],
        );
        build_info
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        let metrics = Self {
            checks: counters(
                &registry,
                "node_readiness_reporter_checks_total",
                "Checks by what they found.",
            ),
            check_duration: add(
                &registry,
                Histogram::with_opts(
                    HistogramOpts::new(
                        "node_readiness_reporter_check_duration_seconds",
                        "Time a check takes.",
                    )
                    .buckets(CHECK_BUCKETS.to_vec()),
                ),
            ),
            writes: counters(
                &registry,
                "node_readiness_reporter_condition_writes_total",
                "Writes of the condition by how they ended; skipped where nothing had changed.",
            ),
            status: gauges(
                &registry,
                "node_readiness_reporter_condition_status",
                "1 for the status that the condition was last written with.",
                &["type", "status"],
            ),
            registry,
        };
        for finding in [
            CheckFinding::Ok,
            CheckFinding::NotReady,
            CheckFinding::NoAnswer,
        ] {
            metrics.checks.with_label_values(&[finding.label()]);
        }
        for write in [
            WriteResult::Success,
            WriteResult::Error,
            WriteResult::Skipped,
        ] {
            metrics.writes.with_label_values(&[write.label()]);
        }
        metrics
    }

    /// Counts a check.
    pub fn checked(&self, finding: CheckFinding, took: Duration) {
        self.checks.with_label_values(&[finding.label()]).inc();
        self.check_duration.observe(took.as_secs_f64());
    }

    /// Counts a write, or that there was nothing to write.
    pub fn wrote(&self, write: WriteResult) {
        self.writes.with_label_values(&[write.label()]).inc();
    }

    /// Notes the status that stands on the Node.
    pub fn set_status(&self, condition_type: &str, status: ConditionStatus) {
        for other in [ConditionStatus::True, ConditionStatus::False] {
            self.status
                .with_label_values(&[condition_type, other.as_str()])
                .set((other == status).into());
        }
    }

    /// What metrics there are.
    pub fn descriptions(&self) -> Vec<Description> {
        self.registry.descriptions()
    }
}

impl WriteResult {
    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

fn add<M>(registry: &Registry, metric: prometheus::Result<M>) -> M
where
    M: prometheus::core::Collector + Clone + 'static,
{
    let metric = metric.expect("metric names and labels are valid");
    let added = registry.register(Box::new(metric.clone()));
    added.expect("no two metrics have the same name");
    metric
}

fn counters(registry: &Registry, name: &str, help: &str) -> IntCounterVec {
    add(
        registry,
        IntCounterVec::new(Opts::new(name, help), &["result"]),
    )
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    add(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

/// How the reporter is doing, for the probes.
#[derive(Debug, Clone)]
pub struct Health {
    /// When a check last ended; at first, when the reporter started.
    pub last_check: Instant,
    /// Why nothing has been reported yet. Once something has, an API server that is away makes no pod unready.
    pub unready: Option<String>,
}

impl Health {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self {
            last_check: Instant::now(),
            unready: Some("nothing has been reported yet".to_owned()),
        }
    }

    /// The answer to `/healthz`: whether checks are still made.
    fn liveness(&self, patience: Duration) -> (StatusCode, String) {
        let age = self.last_check.elapsed();
        if age <= patience {
            return ok();
        }
        let text = format!("no check has ended for {} s\n", age.as_secs());
        (StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// The answer to `/readyz`: whether the condition has been reported.
    fn readiness(&self) -> (StatusCode, String) {
        match &self.unready {
            None => ok(),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        }
    }
}

fn ok() -> (StatusCode, String) {
    (StatusCode::OK, "ok\n".to_owned())
}

/// Serves metrics and probes for as long as the process lives. A reporter that has made no check for longer than
/// `patience` is not alive.
pub fn serve(
    listener: TcpListener,
    metrics: Metrics,
    health: watch::Receiver<Health>,
    patience: Duration,
) {
    let liveness = health.clone();
    let router = Router::new()
        .route("/metrics", get(scrape))
        .with_state(metrics)
        .route(
            "/healthz",
            get(move || async move { liveness.borrow().liveness(patience) }),
        )
        .route(
            "/readyz",
            get(move || async move { health.borrow().readiness() }),
        );
    let server = Server {
        name: "metrics and probes",
        limits: RoomLimits::REPORTER,
        certificates: None,
        router,
    };
    tokio::spawn(server.serve(listener));
}

async fn scrape(State(metrics): State<Metrics>) -> Response {
    metrics.registry.exposition()
}
