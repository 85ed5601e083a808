//! `/metrics` over HTTP, or over HTTPS for those only to whom the API server grants it.

use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::access::Access;
use super::address::{BindAddress, ListenError, listen, parse_address};
use super::room::RoomLimits;
use super::server::Server;
use super::tls::{
    CertificateError, CertificateFiles, Certificates, FilesError, ServingCertificate,
};
use crate::instance::own_namespace;

/// How long a scrape waits for the gauges to be brought up to date.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(2);
/// The Service of `config/prometheus`, by which Prometheus may know this process.
const SERVICE: &str = "nrr-controller-manager-metrics-service";

/// Metrics.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "metrics")]
pub struct Args {
    /// Address of /metrics, such as :8080, or :8443 with --metrics-secure; `0` turns them off
    #[arg(long = "metrics-bind-address", value_name = "ADDRESS", default_value = "0", value_parser = parse_address)]
    pub bind_address: BindAddress,

    /// Serve metrics over HTTPS, to those only whose token the API server knows and who may `get` /metrics
    #[arg(long = "metrics-secure", value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub secure: bool,

    /// Folder with the tls.crt and tls.key of --metrics-secure, read again when they change; without it a self-signed
    /// certificate is made at each start
    #[arg(long = "metrics-cert-dir", value_name = "FOLDER")]
    pub cert_dir: Option<PathBuf>,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Their address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Their certificate cannot be used.
    #[error("--metrics-cert-dir: {0}")]
    Files(#[from] FilesError),
    /// No certificate can be made.
    #[error("{0} (give --metrics-cert-dir)")]
    Certificate(#[from] CertificateError),
}

/// Asks the reconcile loop to bring the gauges up to date, and is answered when it has.
pub type SurveyRequest = oneshot::Sender<()>;

/// Serves `/metrics` as the command line says, for as long as the process lives. `exposition` makes the answer, once the
/// gauges are up to date.
///
/// # Errors
/// When the address cannot be listened on, or the certificate cannot be used.
pub async fn serve(
    args: &Args,
    client: &Client,
    exposition: impl Fn() -> Response + Clone + Send + Sync + 'static,
    surveys: mpsc::Sender<SurveyRequest>,
) -> Result<(), Error> {
    if args.cert_dir.is_some() && !args.secure {
        warn!("--metrics-cert-dir has no effect without --metrics-secure");
    }
    let BindAddress(Some(address)) = args.bind_address else {
        return Ok(());
    };
    let listener = listen(address, "metrics", "--metrics-bind-address").await?;
    let scrape = async move || {
        brought_up_to_date(&surveys).await;
        exposition()
    };
    let router = Router::new().route("/metrics", get(scrape));
    let (router, certificates) = if args.secure {
        let certificates = match &args.cert_dir {
            Some(folder) => CertificateFiles::in_folder(folder).follow()?,
            None => self_signed()?,
        };
        let guard = from_fn_with_state(Access::new(client), Access::check);
        (router.route_layer(guard), Some(certificates))
    } else {
        (router, None)
    };
    let server = Server {
        name: "/metrics",
        limits: RoomLimits::METRICS,
        certificates,
        router,
    };
    tokio::spawn(server.serve(listener));
    info!(%address, secure = args.secure, "serving metrics");
    Ok(())
}

/// A certificate for whoever does not check it, under the names that one would check.
fn self_signed() -> Result<Certificates, CertificateError> {
    let service = format!("{SERVICE}.{}.svc", own_namespace());
    let names = ["localhost".into(), "127.0.0.1".into(), service];
    ServingCertificate::self_signed(&names, Timestamp::now()).map(Certificates::from)
}

/// Waits until the gauges say what is so now. A loop that does not answer in time still has counters to show.
async fn brought_up_to_date(surveys: &mpsc::Sender<SurveyRequest>) {
    let (done, is_done) = oneshot::channel();
    let _ = tokio::time::timeout(SURVEY_TIMEOUT, async {
        if surveys.send(done).await.is_ok() {
            let _ = is_done.await;
        }
    })
    .await;
}
