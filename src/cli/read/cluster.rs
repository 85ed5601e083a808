//! Lists from the API server, page by page.

use std::path::Path;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, DATE};
use axum::http::{Error as HttpError, Request as HttpRequest};
use http_body_util::BodyExt;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::api::{ListParams, Request};
use kube::client::Body;
use kube::{Client, Error};
use serde_json::Value;
use tokio::time::timeout;

use super::page::{Page, Refusal, Version};
use crate::causes::with_causes;
use crate::cli::failure::Failure;
use crate::cli::snapshot::{Filter, Kind};
use crate::client;

/// How many objects a page may have.
const PAGE: u32 = 500;
/// How long a page may take.
const PAGE_LIMIT: Duration = Duration::from_secs(30);
/// How often a list is begun anew whose pages have expired on the way.
const ATTEMPTS: usize = 3;

/// The API server.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
}

impl Cluster {
    /// The one that the kubeconfig and the context name.
    ///
    /// # Errors
    /// When nothing says where it is, or how to speak to it.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Self, Failure> {
        let agent = concat!("kubectl-nodegate/", env!("CARGO_PKG_VERSION"));
        let config = client::config(kubeconfig, context, agent).await?;
        Ok(Self {
            server: config.cluster_url.to_string(),
            client: client::connect(config)?,
        })
    }

    /// What requests are made by.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What to call it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The namespace of the context.
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Shows each object of a list. Where the API server has dropped the state that the list was begun on, it goes on with
    /// the present one, and may show an object twice, or one that is gone.
    pub async fn each(
        &self,
        kind: Kind,
        filter: &Filter,
        mut take: impl FnMut(&str),
    ) -> Result<Version, Refusal> {
        let path = kind.path(filter.namespace.as_deref());
        let mut token = None;
        let mut attempts = 0;
        loop {
            let params = ListParams {
                label_selector: filter.labels.as_ref().map(ToString::to_string),
                field_selector: filter.fields(),
                limit: Some(PAGE),
                continue_token: token,
                ..ListParams::default()
            };
            let request = Request::new(&path).list(&params);
            let request = request.map_err(|error| Refusal::Failed(error.to_string()))?;
            let answer = timeout(PAGE_LIMIT, self.client.request_text(request)).await;
            let text = match answer {
                Ok(Ok(text)) => text,
                Ok(Err(Error::Api(status))) if status.code == 410 && attempts < ATTEMPTS => {
                    attempts += 1;
                    token = None;
                    continue;
                }
                Ok(Err(error)) => return Err(refusal(error)),
                Err(_) => {
                    let seconds = PAGE_LIMIT.as_secs();
                    let why = format!("the API server did not answer within {seconds} s");
                    return Err(Refusal::Failed(why));
                }
            };
            let page: Page = serde_json::from_str(&text).map_err(|error| {
                Refusal::Failed(format!("the answer cannot be understood: {error}"))
            })?;
            for item in &page.items {
                take(item.get());
            }
            token = page.metadata.token.filter(|token| !token.is_empty());
            if token.is_none() {
                let version = page.metadata.version;
                return Ok(version.filter(|it| attempts == 0 && !it.is_empty()));
            }
        }
    }
}

impl Cluster {
    /// What the API server answers to a question by path, and what time it was by its clock.
    pub async fn get(&self, path: &str) -> Result<(Value, Option<Timestamp>), Refusal> {
        self.ask(HttpRequest::get(path).body(Body::empty())).await
    }

    /// What the API server answers to a question that is sent to it, of which it keeps nothing.
    pub async fn post(&self, path: &str, question: &Value) -> Result<Value, Refusal> {
        let request = HttpRequest::post(path).header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(question.to_string().into_bytes()));
        Ok(self.ask(request).await?.0)
    }

    async fn ask(
        &self,
        request: Result<HttpRequest<Body>, HttpError>,
    ) -> Result<(Value, Option<Timestamp>), Refusal> {
        let failed = |why: String| Refusal::Failed(why);
        let request = request.map_err(|error| failed(error.to_string()))?;
        let answer = async {
            let (head, body) = self.client.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, Error>((head, body))
        };
        let answer = timeout(PAGE_LIMIT, answer).await;
        let (head, body) = answer
            .map_err(|_| failed("the API server did not answer in time".into()))?
            .map_err(refusal)?;
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = || value["message"].as_str().unwrap_or_default().to_owned();
        match head.status.as_u16() {
            403 => return Err(Refusal::Forbidden(message())),
            404 => return Err(Refusal::NotInstalled),
            _ if head.status.is_success() => {}
            code => {
                return Err(failed(format!(
                    "the API server answers {code}: {}",
                    message()
                )));
            }
        }
        let date = head.headers.get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| rfc2822::parse(date).ok());
        Ok((value, date.map(|date| date.timestamp())))
    }
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::Api(status) if status.code == 403 => Refusal::Forbidden(status.message),
        Error::Api(status) if status.code == 404 => Refusal::NotInstalled,
        Error::Api(status) => Refusal::Failed(status.message),
        error => Refusal::Failed(format!(
            "the API server cannot be reached: {}",
            with_causes(&error)
        )),
    }
}
