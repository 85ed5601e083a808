//! The reporter of `examples/cni-readiness`.

use std::path::PathBuf;

use anyhow::Result;
use kube::Client;
use testkit::nodegate::Cluster;
use testkit::nodegate::fixtures::pod;

/// The condition that it reports.
pub const CONDITION: &str = "network.k8s.io/CalicoReady";

/// Its namespace.
pub const NAMESPACE: &str = "kube-system";

/// Its service account.
pub const SERVICE_ACCOUNT: &str = "cni-reporter";

/// Creates its pod on a node; returns a kubeconfig with the pod's token.
pub async fn token_on(cluster: &Cluster, client: &Client, node: &str) -> Result<PathBuf> {
    let name = format!("cni-reporter-{node}");
    let pod = pod(&format!("{NAMESPACE}/{name}")).service_account(SERVICE_ACCOUNT);
    pod.on(node).create(client).await?;
    cluster
        .kubeconfig_for_pod(NAMESPACE, SERVICE_ACCOUNT, &name)
        .await
}
