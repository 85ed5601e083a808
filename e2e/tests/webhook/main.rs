//! The validation webhook, called over TLS by a real API server.
//!
//! Services have no network in the test cluster, so the manifest's `clientConfig.service` becomes a URL. Everything else is as
//! in the manifest.

mod review;
mod serving;
mod start;

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use nodegate_tests::rules::key;
use nodegate_tests::webhook::{CONFIGURATION, PATH, call_at, call_with};
use nodegate_tests::{SOON, refused};
use serde_json::json;
use testkit::nodegate::fixtures::{self, RuleBuilder};
use testkit::nodegate::install::{NAMESPACE, config, manifests};
use testkit::nodegate::{Cluster, Controller, Options, eventually, ports};
use tokio::sync::OnceCell;

const SECRET: &str = "nrr-webhook-server-cert";

/// A cluster whose controller reviews its rules.
struct Reviewed {
    cluster: Cluster,
    _controller: Controller,
}

/// The shared cluster of tests that change nothing.
async fn reviewed() -> Result<&'static Reviewed> {
    static SHARED: OnceCell<Reviewed> = OnceCell::const_new();
    SHARED
        .get_or_try_init(async || {
            let cluster = Cluster::start_shared(Options::api_only()).await?;
            let port = ports::free()?;
            install(&cluster, port).await?;
            let controller = start(&cluster, port).await?;
            until_reviewed(&cluster).await?;
            anyhow::Ok(Reviewed {
                cluster,
                _controller: controller,
            })
        })
        .await
}

/// A separate cluster for a test that breaks things.
async fn own_cluster() -> Result<Cluster> {
    Cluster::start(Options::api_only()).await
}

/// Installs CRD, RBAC and the webhook, to be called on this port.
async fn install(cluster: &Cluster, port: u16) -> Result<()> {
    cluster.install().await?;
    cluster.kubectl_on(&["apply"], &config("webhook")).await?;
    call_at(cluster, &format!("https://127.0.0.1:{port}{PATH}")).await
}

/// Restores the empty Secret.
async fn apply_secret(cluster: &Cluster) -> Result<()> {
    let secret = manifests("webhook").join("secret.yaml");
    cluster.kubectl_on(&["apply"], &secret).await.map(drop)
}

/// Makes the API server trust this CA.
async fn trust(cluster: &Cluster, ca: &str) -> Result<()> {
    let ca = ByteString(ca.as_bytes().to_vec());
    call_with(cluster, &json!({"caBundle": ca})).await
}

async fn ca_bundle(cluster: &Cluster) -> Result<Option<String>> {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client().await?);
    let webhooks = api.get(CONFIGURATION).await?.webhooks.unwrap_or_default();
    let bundle = webhooks.into_iter().next().context("no webhook")?;
    let bundle = bundle.client_config.ca_bundle;
    Ok(bundle.map(|bundle| String::from_utf8_lossy(&bundle.0).into_owned()))
}

/// The certificate in the Secret, and its CAs; `None` while it is empty.
async fn secret(cluster: &Cluster) -> Result<Option<(String, String)>> {
    let api: Api<Secret> = Api::namespaced(cluster.client().await?, NAMESPACE);
    let secret = api.get_opt(SECRET).await?;
    let Some(data) = secret.and_then(|secret| secret.data) else {
        return Ok(None);
    };
    let text = |key: &str| {
        let bytes = data.get(key).with_context(|| format!("no {key}"))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes.0).into_owned())
    };
    Ok(Some((text("tls.crt")?, text("ca.crt")?)))
}

/// A ready controller whose webhook serves on this port.
async fn start(cluster: &Cluster, port: u16) -> Result<Controller> {
    spawn(cluster, port, &[]).await?.once_ready().await
}

async fn spawn(cluster: &Cluster, port: u16, arguments: &[&str]) -> Result<Controller> {
    let address = address(port);
    let all = [&["--enable-webhook", &address][..], arguments].concat();
    Controller::spawn(cluster, &all, &[]).await
}

fn address(port: u16) -> String {
    format!("--webhook-bind-address=127.0.0.1:{port}")
}

/// A rule about the nodes of a zone.
fn rule(name: &str, taint: &str, zone: &str) -> RuleBuilder {
    let rule = fixtures::rule(name, &key(taint)).waits_for("Ready");
    rule.selects("zone", zone)
}

/// Creates it and returns the warnings, as kubectl prints them.
async fn create(cluster: &Cluster, rule: RuleBuilder) -> Result<String> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file = cluster.folder().join(format!("rule-{number}.yaml"));
    fs::write(&file, rule.build().to_string())?;
    // The only way to get kubectl's standard error when it succeeds.
    let create = ["create", "--warnings-as-errors"];
    let Err(error) = cluster.kubectl_on(&create, &file).await else {
        return Ok(String::new());
    };
    let text = error.to_string();
    let is_warned = ["warning received", "warnings received"].map(|it| text.contains(it));
    if is_warned.contains(&true) {
        Ok(text)
    } else {
        Err(error)
    }
}

/// Sends a dry run that only the webhook refuses.
async fn probe(cluster: &Cluster) -> Result<String> {
    let file = cluster.folder().join("probe.yaml");
    fs::write(&file, rule("probe", "probe", "a b").build().to_string())?;
    let try_out = ["create", "--dry-run=server"];
    refused(cluster.kubectl_on(&try_out, &file).await)
}

/// Whether the API server calls the webhook, and trusts it.
async fn is_reviewed(cluster: &Cluster) -> Result<bool> {
    Ok(probe(cluster)
        .await
        .is_ok_and(|error| error.contains("not a valid value for label")))
}

async fn until_reviewed(cluster: &Cluster) -> Result<()> {
    eventually("the API server asks the webhook", SOON, async || {
        is_reviewed(cluster).await
    })
    .await
}
