//! How the API server calls the webhook: Services have no network in the test cluster.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::nodegate::Cluster;

/// The name of its configuration.
pub const CONFIGURATION: &str = "nrr-validating-webhook-configuration";

/// The path of its reviews.
pub const PATH: &str = "/validate-readiness-node-x-k8s-io-v1alpha1-nodereadinessrule";

/// Makes the API server call the webhook at this URL.
pub async fn call_at(cluster: &Cluster, url: &str) -> Result<()> {
    call_with(cluster, &json!({"service": null, "url": url})).await
}

/// Changes these fields of the webhook's `clientConfig`.
pub async fn call_with(cluster: &Cluster, client_config: &Value) -> Result<()> {
    let name = "vnodereadinessrule.readiness.node.x-k8s.io";
    let webhook = json!({"name": name, "clientConfig": client_config});
    let patch = json!({"webhooks": [webhook]}).to_string();
    let kind = "validatingwebhookconfiguration";
    let patch = ["patch", kind, CONFIGURATION, "-p", &patch];
    cluster.kubectl(&patch).await.map(drop)
}
