//! The validation webhook: rejects rules that would conflict, warns of risks and writes nothing. `serve::tls` has the certificate.

mod envelope;
mod review;
mod server;
mod surroundings;
mod warnings;

use std::path::PathBuf;

use anyhow::Context;
use kube::Client;
use tracing::info;

use nodegate_cluster::process::own_namespace;
use nodegate_engine::{Readers, Settings};
use nodegate_serve::address::{BindAddress, listen, parse_address};
use nodegate_serve::serve_http;
use nodegate_serve::tls::{Certificates, ManagedCertificate, client_authorities, follow};
use surroundings::Surveyor;

/// The validation webhook.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WebhookArgs {
    /// Serve the validation webhook for rules
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set)]
    pub enable_webhook: bool,

    /// Address of the webhook
    #[arg(long, value_name = "ADDRESS", default_value = ":9443", value_parser = parse_address)]
    pub webhook_bind_address: BindAddress,

    /// Folder with the webhook's tls.crt and tls.key, re-read when they change; without it
    /// /tmp/k8s-webhook-server/serving-certs, and if that has no tls.crt, Nodegate makes its own certificate and keeps it in
    /// a Secret
    #[arg(long, value_name = "FOLDER")]
    pub webhook_cert_dir: Option<PathBuf>,

    /// Namespace of the Secret with the certificate that Nodegate makes; without it the pod's own, or nrr-system
    #[arg(long, value_name = "NAMESPACE")]
    pub webhook_cert_namespace: Option<String>,

    /// PEM file with the certificate authorities of those who may call the webhook, read at the start; without
    /// it anybody may. The API server has to be configured to show a certificate
    #[arg(long, value_name = "FILE")]
    pub webhook_client_ca_file: Option<PathBuf>,
}

/// Serves the webhook, if enabled, while the process lives. A missing certificate may still come; any other problem is an error.
pub(crate) async fn start(
    args: &WebhookArgs,
    client: &Client,
    settings: Settings,
    readers: Readers,
) -> anyhow::Result<Option<Certificates>> {
    if !args.enable_webhook {
        return Ok(None);
    }
    let address = args.webhook_bind_address.0;
    let address = address
        .context("--enable-webhook needs an address to listen on: give --webhook-bind-address")?;
    // controller-runtime's default, where the Node Readiness Controller's manifests mount the certificate.
    let mounted = std::env::temp_dir().join("k8s-webhook-server/serving-certs");
    let mounted = Some(&mounted).filter(|folder| folder.join("tls.crt").exists());
    let certificates = if let Some(folder) = args.webhook_cert_dir.as_ref().or(mounted) {
        follow(folder).context("--webhook-cert-dir")?
    } else {
        let namespace = args.webhook_cert_namespace.clone();
        let namespace = namespace.unwrap_or_else(own_namespace);
        ManagedCertificate::follow(client, &namespace)
    };
    let clients = args.webhook_client_ca_file.as_deref();
    let clients = clients.map(client_authorities).transpose();
    let clients = clients.context("--webhook-client-ca-file")?;
    let listener = listen(address, "the webhook", "--webhook-bind-address").await?;
    info!(%address, "serving the webhook");
    let router = server::router(Surveyor::new(client.clone(), settings, readers));
    let tls = certificates.clone().acceptor(clients);
    tokio::spawn(serve_http(listener, "the webhook", 384, Some(tls), router));
    Ok(Some(certificates))
}
