//! `/metrics` over HTTP, or over HTTPS for users to whom the API server grants it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::{info, warn};

use super::access::AccessGuard;
use super::address::{BindAddress, listen, parse_address};
use super::metric::Registry;
use super::server::{Peer, serve_http};
use super::tls::{Certificates, follow, issue};
use nodegate_cluster::process::own_namespace;

/// How long a scrape waits for the gauges to be updated.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the process's own certificate is valid: it is used only while the process runs.
const LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The Service of `config/prometheus`, through which Prometheus may reach this process.
const SERVICE: &str = "nrr-controller-manager-metrics-service";

/// Metrics.
#[derive(Debug, Clone, clap::Args)]
pub struct MetricsArgs {
    /// Address of /metrics, such as :8080, or :8443 with --metrics-secure; `0` turns them off
    #[arg(long = "metrics-bind-address", value_name = "ADDRESS", default_value = "0", value_parser = parse_address)]
    pub bind_address: BindAddress,

    /// Serve metrics over HTTPS, only to clients whose token the API server accepts and who may `get` /metrics
    #[arg(long = "metrics-secure", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub secure: bool,

    /// Folder with the tls.crt and tls.key of --metrics-secure, re-read when they change; by default a
    /// self-signed certificate is made at each start
    #[arg(long = "metrics-cert-dir", value_name = "FOLDER")]
    pub cert_dir: Option<PathBuf>,
}

/// Asks the reconcile loop to update the gauges. The loop answers when it is done.
pub type SurveyRequest = oneshot::Sender<()>;

/// Serves `/metrics` for as long as the process lives.
pub async fn serve(
    args: &MetricsArgs,
    client: &Client,
    registry: Registry,
    surveys: mpsc::Sender<SurveyRequest>,
) -> anyhow::Result<()> {
    if args.cert_dir.is_some() && !args.secure {
        warn!("--metrics-cert-dir has no effect without --metrics-secure");
    }
    let BindAddress(Some(address)) = args.bind_address else {
        return Ok(());
    };
    let listener = listen(address, "metrics", "--metrics-bind-address").await?;
    let scrape = async move |Extension(Peer(_, arrived)): Extension<Peer>| {
        arrived.store(true, Ordering::Relaxed);
        let updated = async {
            let (done, is_done) = oneshot::channel();
            if surveys.send(done).await.is_ok() {
                let _ = is_done.await;
            }
        };
        // If the loop is too slow, the counters are served all the same.
        let _ = timeout(SURVEY_TIMEOUT, updated).await;
        registry.exposition()
    };
    let router = Router::new().route("/metrics", get(scrape));
    let (router, tls) = if args.secure {
        let certificates = match &args.cert_dir {
            Some(folder) => follow(folder).context("--metrics-cert-dir")?,
            None => own_certificate()?,
        };
        let guard = from_fn_with_state(AccessGuard::new(client), AccessGuard::check);
        (router.route_layer(guard), Some(certificates.acceptor(None)))
    } else {
        (router, None)
    };
    tokio::spawn(serve_http(listener, "/metrics", 256, tls, router));
    info!(%address, secure = args.secure, "serving metrics");
    Ok(())
}

/// A certificate for scrapers that do not verify it; its names are valid for those that do.
fn own_certificate() -> anyhow::Result<Certificates> {
    let service = format!("{SERVICE}.{}.svc", own_namespace());
    let names = ["localhost", "127.0.0.1", "::1", &service].map(String::from);
    let issued = issue(&names, Timestamp::now(), LIFETIME);
    let issued = issued.map_err(|error| anyhow!("{error} (give --metrics-cert-dir)"))?;
    Ok(Certificates::new(Ok(issued)))
}
