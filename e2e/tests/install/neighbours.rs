//! Manifests for Prometheus Operator and cert-manager on a real API server with their resource definitions, and a webhook whose
//! certificate a real cert-manager issues.

use anyhow::{Context, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use nodegate_tests::webhook::call_with;
use serde_json::json;
use testkit::nodegate::cert_manager::CertManager;
use testkit::nodegate::definitions::PROMETHEUS_OPERATOR;
use testkit::nodegate::install::{NAMESPACE, write_kustomization};
use testkit::nodegate::{Cluster, Options, deployment, eventually};

use crate::{SOON, WEBHOOK, folder, until_conflicts_are_refused};

/// The manifests that need one of the two.
const THEIRS: [&str; 4] = [
    "servicemonitor/nrr-controller-manager-metrics-monitor",
    "prometheusrule/nrr-controller-manager-alerts",
    "issuer/nrr-selfsigned-issuer",
    "certificate/nrr-serving-cert",
];

/// The chart makes the same (`rendered`).
#[tokio::test]
async fn both_operators_take_what_there_is_for_them_and_cert_manager_issues_a_certificate()
-> Result<()> {
    let cluster = Cluster::start(Options::api_only()).await?;
    cluster.install_crd().await?;
    cluster.install_definitions(&PROMETHEUS_OPERATOR).await?;
    let cert_manager = CertManager::start(&cluster).await?;
    let folder = folder("neighbours")?;
    let components =
        ["prometheus", "webhook", "cert-manager"].map(|name| format!("components/{name}"));
    let components = components.each_ref().map(String::as_str);
    write_kustomization(&folder, &["default"], &components)?;
    // Fails where the API server drops an unknown field, or misses a required one.
    cluster.apply_strictly(&folder).await?;
    let get = [&["get", "-n", NAMESPACE][..], &THEIRS].concat();
    cluster.kubectl(&get).await?;

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
    call_with(cluster, &json!({"service": {"port": port}})).await
}
