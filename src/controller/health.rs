//! `/healthz` and `/readyz`: whether the loop goes round, and whether the caches have synced; a probe that fails says why.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::engine::kind::Watch;
use crate::serve::{RoomLimits, Server};

/// How long the loop may stand still before the process is not alive any more: it goes round every [`BEAT`].
const STILL: Duration = Duration::from_secs(60);
/// How often the loop goes round at least.
pub const BEAT: Duration = Duration::from_secs(10);

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

    /// What keeps watches from working.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.values().map(String::as_str)
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

/// The answer to `/healthz`, where the loop went round then; it has not begun where that is nothing. One that stands still
/// never goes on by itself: the process has to be started again.
fn liveness(pulse: Option<Instant>, now: Instant) -> (StatusCode, String) {
    let still = pulse.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
    if still < STILL {
        return (StatusCode::OK, "ok\n".into());
    }
    let why = format!("nothing has been decided for {} s\n", still.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, why)
}

/// Serves the probes for as long as the process lives.
pub fn serve(
    listener: TcpListener,
    readiness: watch::Receiver<Readiness>,
    pulse: watch::Receiver<Option<Instant>>,
) {
    let router = Router::new()
        .route(
            "/healthz",
            get(move || async move { liveness(*pulse.borrow(), Instant::now()) }),
        )
        .route(
            "/readyz",
            get(move || async move { readiness.borrow().answer() }),
        );
    let server = Server {
        name: "the probes",
        limits: RoomLimits::PROBES,
        certificates: None,
        router,
    };
    tokio::spawn(server.serve(listener));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stands_still_is_not_alive() {
        let now = Instant::now();
        for (pulse, expected) in [
            (None, StatusCode::OK),
            (Some(now), StatusCode::OK),
            (now.checked_sub(STILL / 2), StatusCode::OK),
            (now.checked_sub(STILL), StatusCode::SERVICE_UNAVAILABLE),
        ] {
            assert_eq!(liveness(pulse, now).0, expected, "{pulse:?}");
        }
    }
}
