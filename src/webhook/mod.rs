//! The validation webhook: what the API server asks before it takes a rule. It turns down rules that would get in each
//! other's way, and warns of what is risky.
//!
//! | file | what it does |
//! |---|---|
//! | `review` | whether a rule is taken, and what there is to warn of (pure) |
//! | `warnings` | the warnings (pure) |
//! | `advice` | their words (pure) |
//! | `closings` | which nodes a rule would close as soon as it is taken (pure) |
//! | `surroundings` | what a review looks at beside the rule: other rules, `DaemonSet`s, nodes |
//! | `envelope` | a request read, without trust (pure) |
//! | `server` | the request and its answer |
//!
//! It writes nothing. Where its certificate comes from, and how the API server comes to trust it, is in `serve::tls`.

mod advice;
mod closings;
mod envelope;
mod review;
mod server;
mod surroundings;
mod warnings;

pub use advice::Advice;
pub use warnings::SHORTEST_HEARTBEAT;

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use tracing::info;

use crate::condition::CriticalComponentClass;
use crate::instance::own_namespace;
use crate::serve::address::{BindAddress, ListenError, listen, parse_address};
use crate::serve::tls::{CertificateFiles, FilesError, ManagedCertificate};
use crate::serve::{RoomLimits, Server};

/// The validation webhook.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "webhook")]
pub struct Args {
    /// Serve the validation webhook for rules
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub enable_webhook: bool,

    /// Address of the webhook
    #[arg(long, value_name = "ADDRESS", default_value = ":9443", value_parser = parse_address)]
    pub webhook_bind_address: BindAddress,

    /// Folder with the webhook's tls.crt and tls.key, read again when they change; without it Nodegate makes its own
    /// certificate and keeps it in a Secret
    #[arg(long, value_name = "FOLDER")]
    pub webhook_cert_dir: Option<PathBuf>,

    /// Namespace of the Secret with the certificate that Nodegate makes; without it the pod's own, or nrr-system
    #[arg(long, value_name = "NAMESPACE")]
    pub webhook_cert_namespace: Option<String>,
}

/// Why the webhook cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// It is to listen nowhere.
    #[error("--enable-webhook needs an address to listen on: give --webhook-bind-address")]
    NoAddress,
    /// Its certificate cannot be used.
    #[error("--webhook-cert-dir: {0}")]
    Files(#[from] FilesError),
}

/// Serves the webhook for as long as the process lives.
///
/// `report` is told why the webhook cannot be called yet, and `None` once it can.
///
/// # Errors
/// When the address cannot be listened on, or the files with the certificate cannot be used. What waiting can mend is
/// reported instead.
pub async fn start(
    args: &Args,
    client: &Client,
    classes: &[CriticalComponentClass],
    report: impl Fn(Option<String>) + Send + 'static,
) -> Result<(), Error> {
    let address = args.webhook_bind_address.0.ok_or(Error::NoAddress)?;
    let certificates = if let Some(folder) = &args.webhook_cert_dir {
        CertificateFiles::in_folder(folder).follow()?
    } else {
        let namespace = args.webhook_cert_namespace.clone();
        let namespace = namespace.unwrap_or_else(own_namespace);
        ManagedCertificate::new(client, &namespace).follow()
    };
    let listener = listen(address, "the webhook", "--webhook-bind-address").await?;
    info!(%address, "serving the webhook");

    let mut state = certificates.subscribe();
    tokio::spawn(async move {
        loop {
            let problem = state.borrow_and_update().as_ref().err().cloned();
            let is_ready = problem.is_none();
            report(problem);
            // A certificate that is there is never taken away.
            if is_ready || state.changed().await.is_err() {
                return;
            }
        }
    });
    let server = Server {
        name: "the webhook",
        limits: RoomLimits::WEBHOOK,
        certificates: Some(certificates),
        router: server::router(client.clone(), Arc::from(classes)),
    };
    tokio::spawn(server.serve(listener));
    Ok(())
}
