//! Requests with a kubelet's identity.

use anyhow::Result;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use testkit::nodegate::Cluster;

/// A client with the identity of this node's kubelet.
pub async fn kubelet(cluster: &Cluster, node: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let user = format!("system:node:{node}");
    for (header, value) in [
        ("impersonate-user", user.as_str()),
        ("impersonate-group", "system:nodes"),
        ("impersonate-group", "system:authenticated"),
    ] {
        config.headers.push((header.parse()?, value.parse()?));
    }
    Ok(Client::try_from(config)?)
}
