//! Where the cluster is, and how its API server is spoken to.

use std::path::Path;

use axum::http::header::{ACCEPT, USER_AGENT};
use axum::http::{HeaderValue, Request};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::request;
use kube::{Client, Config};
use serde::de::DeserializeOwned;

use crate::causes::with_causes;

/// Has the API server answer with an object's metadata alone.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Why there is no API server to talk to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig file cannot be used.
    #[error("cannot use kubeconfig {path}: {problem} (check the file that --kubeconfig names)")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is nothing that says where the cluster is.
    #[error(
        "cannot tell which cluster to use: {0} (run it in a pod with a service account token, give --kubeconfig FILE, \
         or set KUBECONFIG)"
    )]
    Cluster(String),
    /// The client cannot be made.
    #[error("cannot make a client from the kubeconfig: {0}")]
    Client(String),
}

/// How to reach the cluster: by this kubeconfig file, or by what the environment says. Nothing is ever replayed by the
/// client itself, which would do so long after the reason for it is stale.
///
/// # Errors
/// When nothing says where the cluster is, or the file cannot be used.
pub async fn config(kubeconfig: Option<&Path>, agent: &str) -> Result<Config, Error> {
    let mut config = match kubeconfig {
        Some(path) => {
            let unusable = |error| Error::Kubeconfig {
                path: path.display().to_string(),
                problem: match error {
                    KubeconfigError::ReadConfig(error, _) => error.to_string(),
                    // The parser's complaint goes on with the lines in question.
                    error => first_line(&with_causes(&error)),
                },
            };
            let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            config.map_err(unusable)?
        }
        None => Config::infer()
            .await
            .map_err(|error| Error::Cluster(with_causes(&error)))?,
    };
    config.default_retry = false;
    if let Ok(agent) = HeaderValue::from_str(agent) {
        config.headers.push((USER_AGENT, agent));
    }
    Ok(config)
}

/// A client with a connection for each request under way: what a watch has to read keeps nobody else waiting.
///
/// # Errors
/// When the credentials or certificates cannot be used.
pub fn connect(config: Config) -> Result<Client, Error> {
    Client::try_from(config).map_err(|error| Error::Client(with_causes(&error)))
}

/// Makes a write that is answered with the object's metadata alone: the rest would only be what was sent, or what a watch
/// will show anyway, for both ends to encode and decode.
pub async fn write<T: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Vec<u8>>, request::Error>,
) -> kube::Result<T> {
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    answer_with_metadata(&mut request);
    client.request(request).await
}

/// Has the API server answer a write with the object's metadata alone.
pub fn answer_with_metadata<B>(request: &mut Request<B>) {
    let metadata_only = HeaderValue::from_static(METADATA_ONLY);
    request.headers_mut().insert(ACCEPT, metadata_only);
}

/// The complaint itself, without the lines that it is about.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("failed to parse kubeconfig YAML: ")
        .trim_start_matches("error: ")
        .to_owned()
}
