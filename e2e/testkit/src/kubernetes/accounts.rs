//! Service accounts of a cluster: their tokens, and kubeconfig files that use them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::kubeconfig::{self, Server};

/// The lifetime of tokens in kubeconfig files, in seconds.
const TOKEN_LIFETIME: i64 = 24 * 3600;

impl Cluster {
    /// Creates a service account in `default`, bound to this `ClusterRole`, and returns a token for it.
    pub async fn account(&self, name: &str, role: &str) -> Result<String> {
        let (role, account) = (
            format!("--clusterrole={role}"),
            format!("--serviceaccount=default:{name}"),
        );
        self.kubectl(&["create", "serviceaccount", name, "--namespace=default"])
            .await?;
        self.kubectl(&["create", "clusterrolebinding", name, &role, &account])
            .await?;
        self.service_account_token("default", name).await
    }

    /// A fresh token of an existing service account.
    pub async fn service_account_token(&self, namespace: &str, name: &str) -> Result<String> {
        self.token(namespace, name, None).await
    }

    async fn token(
        &self,
        namespace: &str,
        name: &str,
        bound_object_ref: Option<BoundObjectReference>,
    ) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                bound_object_ref,
                expiration_seconds: Some(TOKEN_LIFETIME),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("requesting a token for {namespace}/{name}"))?
            .status
            .and_then(|status| status.token)
            .context("a token request came back without a token")
    }

    /// Writes a kubeconfig with a fresh token of an existing service account, and returns its path.
    pub async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf> {
        self.kubeconfig_for_token(self.url(), namespace, name, None)
            .await
    }

    /// Like [`Self::kubeconfig_for_service_account`], for a relay to the API server at this URL.
    pub async fn kubeconfig_by_way_of(
        &self,
        url: String,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf> {
        self.kubeconfig_for_token(url, namespace, name, None).await
    }

    /// Like [`Self::kubeconfig_for_service_account`], with the token of an existing pod of that service account: it names the
    /// pod's node.
    pub async fn kubeconfig_for_pod(
        &self,
        namespace: &str,
        service_account: &str,
        pod: &str,
    ) -> Result<PathBuf> {
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(pod.to_owned()),
            uid: None,
        };
        self.kubeconfig_for_token(self.url(), namespace, service_account, Some(bound))
            .await
    }

    async fn kubeconfig_for_token(
        &self,
        url: String,
        namespace: &str,
        name: &str,
        bound_object_ref: Option<BoundObjectReference>,
    ) -> Result<PathBuf> {
        // Each file is new: an earlier one may be in use.
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let token = self.token(namespace, name, bound_object_ref).await?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("{namespace}.{name}.{number}.kubeconfig");
        let path = self.folder().join(file);
        let server = Server {
            url,
            ca: self.ca().to_owned(),
        };
        kubeconfig::write(&path, &server, &token)?;
        Ok(path)
    }
}
