//! Manifests for Prometheus Operator and cert-manager on a real API server with their resource definitions, and a webhook whose
//! certificate a real cert-manager issues.

use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use nodegate_testbed::cert_manager::CertManager;
use nodegate_testbed::definitions::{CERT_MANAGER, PROMETHEUS_OPERATOR};
use nodegate_testbed::install::{NAMESPACE, chart, write_kustomization};
use nodegate_testbed::{Cluster, Options, deployment, eventually};
use serde_json::json;

use crate::{SOON, WEBHOOK, folder, turn, until_conflicts_are_refused};

/// The manifests that need one of the two.
const THEIRS: [&str; 4] = [
    "servicemonitor/nrr-controller-manager-metrics-monitor",
    "prometheusrule/nrr-controller-manager-alerts",
    "issuer/nrr-selfsigned-issuer",
    "certificate/nrr-serving-cert",
];

/// An API server with both projects' resource definitions.
async fn cluster() -> Result<Cluster> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_definitions(&PROMETHEUS_OPERATOR).await?;
    cluster.install_definitions(&CERT_MANAGER).await?;
    Ok(cluster)
}

/// Fails where the API server drops an unknown field, or misses a required one.
async fn apply_strictly(cluster: &Cluster, what: &str, path: &Path) -> Result<()> {
    let path = path.to_string_lossy();
    let apply = ["apply", "--server-side", "--force-conflicts"];
    let strictly = ["--validate=strict", what, &path];
    cluster.kubectl(&[&apply[..], &strictly].concat()).await?;
    Ok(())
}

async fn all_are_there(cluster: &Cluster) -> Result<()> {
    let get = [&["get", "-n", NAMESPACE][..], &THEIRS].concat();
    cluster.kubectl(&get).await.map(drop)
}

#[tokio::test]
async fn kustomize_makes_what_both_operators_take() -> Result<()> {
    let _turn = turn().await?;
    let cluster = cluster().await?;
    let folder = folder("neighbours")?;
    let components =
        ["prometheus", "webhook", "cert-manager"].map(|name| format!("components/{name}"));
    let components = components.each_ref().map(String::as_str);
    write_kustomization(&folder, &["default"], &components)?;
    apply_strictly(&cluster, "-k", &folder).await?;
    all_are_there(&cluster).await
}

#[tokio::test]
async fn helm_makes_what_both_operators_take() -> Result<()> {
    let _turn = turn().await?;
    let cluster = cluster().await?;
    let chart = chart();
    let chart = chart.to_string_lossy();
    let values = "webhook.enabled=true,webhook.certificate=cert-manager,metrics.serviceMonitor.enabled=true,\
        metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true";
    let release = ["--namespace", NAMESPACE];
    let install = [
        "install",
        "nodegate",
        &chart,
        "--create-namespace",
        "--set",
        values,
    ];
    cluster.helm(&[&install[..], &release].concat()).await?;
    all_are_there(&cluster).await?;
    // Helm only lets the API server warn about unknown fields.
    let manifest = ["get", "manifest", "nodegate"];
    let manifest = cluster.helm(&[&manifest[..], &release].concat()).await?;
    let file = cluster.folder().join("manifest.yaml");
    std::fs::write(&file, manifest)?;
    apply_strictly(&cluster, "-f", &file).await
}

#[tokio::test]
async fn a_real_cert_manager_issues_the_certificate_of_the_webhook() -> Result<()> {
    let _turn = turn().await?;
    let cluster = Cluster::start(Options::api_only()).await?;
    let cert_manager = CertManager::start(&cluster).await?;
    let folder = folder("cert-manager-issues")?;
    write_kustomization(
        &folder,
        &["default"],
        &["components/webhook", "components/cert-manager"],
    )?;
    apply_strictly(&cluster, "-k", &folder).await?;

    let (controller, addresses) = deployment::run(&cluster, NAMESPACE)
        .await
        .with_context(|| cert_manager.log())?;
    call_by_name(&cluster, &addresses.webhook).await?;
    let client = cluster.client().await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    eventually(
        "the API server is told which CA to trust",
        SOON,
        async || {
            let webhooks = configurations.get(WEBHOOK).await?.webhooks;
            let mut webhooks = webhooks.into_iter().flatten();
            Ok(webhooks.all(|webhook| webhook.client_config.ca_bundle.is_some()))
        },
    )
    .await
    .with_context(|| cert_manager.log())?;
    until_conflicts_are_refused(&client, &controller).await
}

/// Makes the API server find the webhook's Service here, as Services have no network. It still uses the Service's name, so the
/// certificate must match that.
async fn call_by_name(cluster: &Cluster, address: &str) -> Result<()> {
    let (_, port) = address
        .rsplit_once(':')
        .context("an address without a port")?;
    let port: u16 = port.parse()?;
    let service = json!({"spec": {"type": "ExternalName", "externalName": "localhost"}});
    let service = service.to_string();
    let name = ["nrr-webhook-service", "-n", NAMESPACE];
    let patch = [&["patch", "service", "-p", &service][..], &name].concat();
    cluster.kubectl(&patch).await?;
    let webhook = json!({
        "name": "vnodereadinessrule.readiness.node.x-k8s.io",
        "clientConfig": {"service": {"port": port}},
    });
    let webhooks = json!({"webhooks": [webhook]}).to_string();
    let configuration = ["patch", "validatingwebhookconfiguration", WEBHOOK];
    cluster
        .kubectl(&[&configuration[..], &["-p", &webhooks]].concat())
        .await?;
    Ok(())
}
