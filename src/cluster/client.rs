//! Finds the cluster and makes requests to its API server.

use std::path::Path;
use std::time::Duration;

use http::header::{ACCEPT, DATE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::response::StatusDetails;
use kube::core::{Status, request};
use kube::{Client, Config};
use serde::de::DeserializeOwned;

use super::causes::with_causes;

const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use kubeconfig {path}: {problem} (check the file that --kubeconfig names)")]
    Kubeconfig { path: String, problem: String },
    #[error(
        "cannot tell which cluster to use: {0} (run it in a pod with a service account token, give --kubeconfig FILE, \
         or set KUBECONFIG)"
    )]
    Cluster(String),
    #[error("cannot make a client from the kubeconfig: {0}")]
    Client(String),
}

/// How to reach the cluster: this kubeconfig or the environment, this context or the current one. No retries: requests get stale.
pub async fn config(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    agent: &str,
) -> Result<Config, Error> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let mut config = match kubeconfig {
        Some(path) => {
            let unusable = |error| Error::Kubeconfig {
                path: path.display().to_string(),
                problem: match error {
                    KubeconfigError::ReadConfig(error, _) => error.to_string(),
                    // The parser's message goes on with the lines in question.
                    error => first_line(&with_causes(&error)),
                },
            };
            let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            config.map_err(unusable)?
        }
        None => match Config::from_kubeconfig(&options).await {
            Ok(config) => config,
            Err(error) => in_cluster(&error, context.is_none())?,
        },
    };
    config.default_retry = false;
    if let Ok(agent) = HeaderValue::from_str(agent) {
        config.headers.push((USER_AGENT, agent));
    }
    Ok(config)
}

pub(crate) fn cluster_name(kubeconfig: Option<&Path>, context: Option<&str>) -> Option<String> {
    let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let read = read.ok()?;
    let context = context.or(read.current_context.as_deref())?;
    let named = read.contexts.iter().find(|it| it.name == context)?;
    Some(named.context.as_ref()?.cluster.clone())
}

/// How a pod reaches its cluster, where no kubeconfig can be used. What a pod lacks is told only in a pod.
fn in_cluster(kubeconfig: &KubeconfigError, may_be: bool) -> Result<Config, Error> {
    let why = first_line(&with_causes(kubeconfig));
    match Config::incluster() {
        Ok(config) if may_be => Ok(config),
        Err(error) if may_be && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() => {
            let in_pod = with_causes(&error);
            Err(Error::Cluster(format!("{why}; in this pod: {in_pod}")))
        }
        _ => Err(Error::Cluster(why)),
    }
}

/// A client with one connection per request under way, so that no request waits behind a watch.
pub fn connect(config: Config) -> Result<Client, Error> {
    Client::try_from(config).map_err(|error| Error::Client(with_causes(&error)))
}

/// The answer to a request, or an error after this time.
pub async fn in_time<T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> kube::Result<T> {
    let seconds = limit.as_secs();
    let late = |_| kube::Error::Service(format!("no answer within {seconds} s").into());
    tokio::time::timeout(limit, request).await.map_err(late)?
}

/// Makes a write answered by metadata only: the rest was sent, or a watch shows it, so neither end needs to encode or decode it.
pub async fn write<T: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Vec<u8>>, request::Error>,
) -> kube::Result<T> {
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    let metadata_only = HeaderValue::from_static(METADATA_ONLY);
    request.headers_mut().insert(ACCEPT, metadata_only);
    send(client, Ok(request)).await
}

/// Makes a request. Unlike the client's own method, an error has the retry delay if only a header tells it, as flow control does.
pub async fn send<T: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Vec<u8>>, request::Error>,
) -> kube::Result<T> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    let (head, body) = client.send(request.map(Body::from)).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    if head.status.is_success() {
        return serde_json::from_slice(&body).map_err(kube::Error::SerdeError);
    }
    Err(kube::Error::Api(refusal(&head, &body).boxed()))
}

/// The status of an unsuccessful answer, from the API server or from a proxy in front of it. It always has a message.
pub(crate) fn refusal(head: &response::Parts, body: &[u8]) -> Status {
    let said: Option<Status> = serde_json::from_slice(body).ok();
    let mut status = said.filter(|said| said.code != 0).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), "").with_code(head.status.as_u16())
    });
    if status.message.is_empty() {
        status.message = head.status.to_string();
    }
    let retry_after = head.headers.get(RETRY_AFTER);
    let seconds = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    if let Some(seconds) = seconds {
        // None of them is required.
        let details = status.details.or_else(|| serde_json::from_str("{}").ok());
        status.details = details.map(|it| StatusDetails {
            retry_after_seconds: it.retry_after_seconds.max(seconds),
            ..it
        });
    }
    status
}

/// The API server's time when it answered, in whole seconds.
pub fn served_at(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    rfc2822::parse(date).ok().map(|date| date.timestamp())
}

pub fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// The message itself, without the lines of the file that it quotes.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("failed to parse kubeconfig YAML: ")
        .trim_start_matches("error: ")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    #[test]
    fn a_refusal_says_when_to_retry_after() {
        let full = r#"{"kind": "Status", "status": "Failure", "message": "slow down", "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": 2}, "code": 429}"#;
        let plain = "Too many requests, please try again later.\n";
        #[rustfmt::skip]
        let cases = [
            ("in the details", None, full, "slow down", Some(2)),
            ("in both", Some("1"), full, "slow down", Some(2)),
            ("in the header alone", Some("1"), plain, plain.trim(), Some(1)),
            ("nowhere", None, plain, plain.trim(), None),
            ("as a date", Some("Fri, 31 Dec 1999 23:59:59 GMT"), plain, plain.trim(), None),
        ];
        for (name, header, body, message, seconds) in cases {
            let mut response = Response::builder().status(429);
            if let Some(header) = header {
                response = response.header(RETRY_AFTER, header);
            }
            let (head, ()) = response.body(()).expect("a response").into_parts();
            let status = refusal(&head, body.as_bytes());
            let said = status.details.map(|details| details.retry_after_seconds);
            assert_eq!(
                (status.code, &*status.message, said),
                (429, message, seconds),
                "{name}"
            );
        }
    }
}
