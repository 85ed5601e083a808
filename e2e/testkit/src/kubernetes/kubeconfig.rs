//! Kubeconfig files: the server's address, its CA and a token.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// `https://127.0.0.1:<port>`.
    pub url: String,
    /// The CA's certificate, as PEM.
    pub ca: String,
}

/// Writes a kubeconfig for one token. JSON is YAML, so this needs no YAML writer.
pub(crate) fn write(path: &Path, server: &Server, token: &str) -> Result<()> {
    let ca = ByteString(server.ca.clone().into_bytes());
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": server.url, "certificate-authority-data": ca}}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e", "namespace": "default"}}],
    });
    fs::write(path, format!("{content:#}\n")).with_context(|| format!("writing {}", path.display()))
}

pub(crate) async fn client(path: &Path) -> Result<Client> {
    Client::try_from(config(path).await?).context("making a client")
}

pub(crate) async fn config(path: &Path) -> Result<Config> {
    let kubeconfig =
        Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("understanding the kubeconfig")
}
