//! `/healthz` and `/readyz`: alive, and whether the caches have synced; a probe that fails says why.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::engine::kind::Watch;
use crate::serve::{RoomLimits, Server};

/// Whether the controller can do its work, and what keeps it from it.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    /// Whether every watch has shown all there is.
    pub synced: bool,
    /// Why the webhook cannot be called yet, where there is one to be.
    pub webhook: Option<String>,
    problems: BTreeMap<&'static str, String>,
}

impl Readiness {
    /// Notes why a watch does not work.
    pub fn set_problem(&mut self, watch: Watch, problem: String) {
        self.problems.insert(watch.name(), problem);
    }

    /// Notes that a watch works again.
    pub fn clear_problem(&mut self, watch: Watch) {
        self.problems.remove(watch.name());
    }

    /// The answer to `/readyz`. A watch that breaks later does not make a synced controller unready, since a
    /// restart would not mend it.
    fn answer(&self) -> (StatusCode, String) {
        if self.synced && self.webhook.is_none() {
            return (StatusCode::OK, "ok\n".into());
        }
        let watches = self.problems.values().filter(|_| !self.synced);
        let problems: Vec<_> = watches.chain(&self.webhook).map(String::as_str).collect();
        let why = if problems.is_empty() {
            "caches have not synced yet".into()
        } else {
            problems.join("\n")
        };
        (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
    }
}

/// Serves the probes for as long as the process lives.
pub fn serve(listener: TcpListener, readiness: watch::Receiver<Readiness>) {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route(
            "/readyz",
            get(
                |State(readiness): State<watch::Receiver<Readiness>>| async move {
                    readiness.borrow().answer()
                },
            ),
        )
        .with_state(readiness);
    let server = Server {
        name: "the probes",
        limits: RoomLimits::PROBES,
        certificates: None,
        router,
    };
    tokio::spawn(server.serve(listener));
}
