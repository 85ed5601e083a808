//! `/healthz` and `/readyz`: whether the loop runs, and whether the caches have synced. A failing probe says why.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use nodegate_serve::tls::Certificates;
use nodegate_serve::{probed, serve_http};

/// The process is not alive once the loop has stood still this long. It starts a round at least every [`BEAT`].
const STILL: Duration = Duration::from_secs(60);
/// The most time between two rounds of the loop.
pub(crate) const BEAT: Duration = Duration::from_secs(10);

/// Whether the controller can do its work, and if not, why.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readiness {
    /// Whether every watch that no decision can do without has completed its first list.
    pub synced: bool,
    /// Why watches do not work, by the watch's name.
    pub problems: BTreeMap<&'static str, String>,
}

impl Readiness {
    /// Why the controller is not ready. `webhook`: why that, if enabled, cannot be called yet. `knows_brake`: whether the state of the
    /// emergency brake is known. A watch that breaks later does not make a synced controller unready, since a restart would not fix it.
    fn problem(&self, webhook: Option<&str>, knows_brake: bool) -> Option<String> {
        let watches = self.problems.values().filter(|_| !self.synced);
        let watches = watches.map(String::as_str);
        let mut problems: Vec<_> = watches.chain(webhook).collect();
        if !self.synced && problems.is_empty() {
            problems.push("caches have not synced yet");
        }
        if !knows_brake {
            let unread =
                "the Lease has not been read yet, which says whether all rules are suspended";
            problems.push(unread);
        }
        (!problems.is_empty()).then(|| problems.join("\n"))
    }
}

/// Why the process must be restarted, if so: a stalled loop never recovers. `pulse`: when it last started a round, if ever.
fn stall(pulse: Option<Instant>, now: Instant) -> Option<String> {
    let still = now.saturating_duration_since(pulse?);
    (still >= STILL).then(|| format!("nothing has been decided for {} s", still.as_secs()))
}

/// Serves the probes for as long as the process lives.
pub(crate) fn serve(
    listener: TcpListener,
    readiness: watch::Receiver<Readiness>,
    webhook: Option<Certificates>,
    brake: watch::Receiver<Option<bool>>,
    pulse: watch::Receiver<Option<Instant>>,
) {
    let alive = async move || probed(stall(*pulse.borrow(), Instant::now()));
    let ready = async move || {
        let webhook = webhook.as_ref().and_then(Certificates::problem);
        let knows_brake = brake.borrow().is_some();
        probed(readiness.borrow().problem(webhook.as_deref(), knows_brake))
    };
    let router = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready));
    tokio::spawn(serve_http(listener, "the probes", 128, None, router));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_ready_until_the_brake_is_known() {
        let synced = Readiness {
            synced: true,
            ..Readiness::default()
        };
        #[rustfmt::skip]
        let cases = [
            (&synced, true, None),
            (&synced, false, Some("the Lease has not been read yet, which says whether all rules are suspended")),
            (&Readiness::default(), true, Some("caches have not synced yet")),
        ];
        for (readiness, knows_brake, expected) in cases {
            assert_eq!(readiness.problem(None, knows_brake).as_deref(), expected);
        }
    }

    #[test]
    fn a_loop_that_stands_still_is_not_alive() {
        let now = Instant::now();
        for (pulse, expected) in [
            (None, false),
            (Some(now), false),
            (now.checked_sub(STILL / 2), false),
            (now.checked_sub(STILL), true),
        ] {
            assert_eq!(stall(pulse, now).is_some(), expected, "{pulse:?}");
        }
    }
}
