//! Lists and single requests to the API server.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, DATE};
use axum::http::response::Parts;
use axum::http::{Error as HttpError, Request as HttpRequest};
use futures::stream::{self, StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::api::{ListParams, Request};
use kube::client::Body;
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::list::{ListError, ListPage, Objects};
use crate::causes::with_causes;
use crate::cli::failure::CliError;
use crate::cli::snapshot::{Filter, ResourceKind};
use crate::client;

/// The most objects of a page.
const PAGE: u32 = 500;
/// The timeout of a page.
const LIMIT: Duration = Duration::from_secs(30);
/// How often a list is restarted after its pages have expired.
const ATTEMPTS: usize = 3;

/// What the API server would say of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DryRunAnswer {
    Accepted,
    Refused(String),
    /// It was not asked, or did not say, and why.
    NotAsked(String),
}

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    server: String,
}

impl Cluster {
    /// Connects to the cluster of this kubeconfig and context.
    pub(crate) async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Self, CliError> {
        let agent = concat!("kubectl-nodegate/", env!("CARGO_PKG_VERSION"));
        let mut config = client::config(kubeconfig, context, agent).await?;
        // No watch is silent for as long, and no page may take as long.
        config.read_timeout = Some(LIMIT * 2);
        Ok(Self {
            server: config.cluster_url.to_string(),
            client: client::connect(config)?,
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The objects of a list. If the list expires on the API server, it continues from the current state, and may then contain
    /// duplicates or deleted objects.
    pub(crate) fn list(&self, kind: ResourceKind, filter: &Filter) -> Objects<'_> {
        let path = kind.path(filter.namespace.as_deref());
        let first = ListParams {
            label_selector: filter.labels.as_ref().map(ToString::to_string),
            field_selector: filter.fields(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let pages = stream::try_unfold((Some(first), ATTEMPTS), move |(params, attempts)| {
            let path = path.clone();
            async move {
                let Some(params) = params else {
                    return Ok(None);
                };
                let next = |token| ListParams {
                    continue_token: token,
                    ..params.clone()
                };
                Ok(Some(match self.page(&path, &params).await? {
                    Ok((objects, None)) => (objects, (None, attempts)),
                    Ok((objects, token)) => (objects, (Some(next(token)), attempts)),
                    Err(_) if attempts > 0 => (Vec::new(), (Some(next(None)), attempts - 1)),
                    Err(expired) => return Err(ListError::Failed(expired)),
                }))
            }
        });
        let objects = pages.map_ok(|objects| stream::iter(objects.into_iter().map(Ok)));
        objects.try_flatten().boxed_local()
    }

    /// The objects of a page and the token of the next one; the inner error is the message of an expired list.
    async fn page(
        &self,
        path: &str,
        params: &ListParams,
    ) -> Result<Result<(Vec<String>, Option<String>), String>, ListError> {
        let request = Request::new(path).list(params);
        let request = request.map_err(|error| ListError::Failed(error.to_string()))?;
        let text = match timeout(LIMIT, self.client.request_text(request)).await {
            Ok(Ok(text)) => text,
            Ok(Err(Error::Api(status))) if status.code == 410 => return Ok(Err(status.message)),
            Ok(Err(error)) => return Err(refusal(&error, &self.server)),
            Err(_) => {
                let seconds = LIMIT.as_secs();
                let server = &self.server;
                let why = format!("the API server at {server} did not answer within {seconds} s");
                return Err(ListError::Failed(why));
            }
        };
        let page: ListPage = serde_json::from_str(&text)
            .map_err(|error| ListError::Failed(format!("the answer cannot be parsed: {error}")))?;
        let objects = page.objects().map(str::to_owned).collect();
        Ok(Ok((
            objects,
            page.metadata.token.filter(|it| !it.is_empty()),
        )))
    }

    /// The answer to a GET request, and the time on the API server's clock.
    pub(crate) async fn get(&self, path: &str) -> Result<(Value, Option<Timestamp>), ListError> {
        let request = HttpRequest::get(path).body(Body::empty());
        let (head, value) = self.exchange(request).await?;
        let message = || value["message"].as_str().unwrap_or_default().to_owned();
        match head.status.as_u16() {
            403 => return Err(ListError::Forbidden(message())),
            404 => return Err(ListError::NotInstalled),
            _ if head.status.is_success() => {}
            code => {
                let why = format!("the API server answers {code}: {}", message());
                return Err(ListError::Failed(why));
            }
        }
        let date = head.headers.get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| rfc2822::parse(date).ok());
        Ok((value, date.map(|date| date.timestamp())))
    }

    /// The object of this name, if there is one.
    pub(crate) async fn found<K>(&self, name: &str) -> Result<Option<K>, ListError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let found = Api::<K>::all(self.client.clone()).get_opt(name).await;
        found.map_err(|error| self.refusal(&error))
    }

    /// Why this API server gave no answer.
    pub(crate) fn refusal(&self, error: &Error) -> ListError {
        refusal(error, &self.server)
    }

    /// What the API server makes of a rule, by a write that it does not store. `replaced` is the version of the rule that is
    /// there under this name.
    pub(crate) async fn dry_run(&self, rule: &Value, replaced: Option<&str>) -> DryRunAnswer {
        let mut rule = rule.clone();
        let mut path = ResourceKind::Rules.path(None);
        let (method, verb) = match replaced {
            Some(version) => {
                rule["metadata"]["resourceVersion"] = version.into();
                let name = rule["metadata"]["name"].as_str().unwrap_or_default();
                path = format!("{path}/{name}");
                ("PUT", "update")
            }
            None => ("POST", "create"),
        };
        let request = HttpRequest::builder()
            .method(method)
            .uri(format!("{path}?dryRun=All&fieldValidation=Strict"))
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(rule.to_string().into_bytes()));
        let not_asked = |why: String| DryRunAnswer::NotAsked(why);
        match self.exchange(request).await {
            Ok((head, _)) if head.status.is_success() => DryRunAnswer::Accepted,
            Ok((head, answer)) => {
                let message = answer["message"].as_str().unwrap_or_default();
                let lacks = format!(" cannot {verb} resource ");
                match head.status.as_u16() {
                    401 | 403 if message.contains(&lacks) || message == "Unauthorized" => {
                        not_asked(format!("no permission to {verb} rules"))
                    }
                    404 => not_asked("the cluster has no NodeReadinessRules".into()),
                    400..500 => DryRunAnswer::Refused(message.into()),
                    code => not_asked(format!("it answers {code}: {message}")),
                }
            }
            Err(why) => not_asked(why.to_string()),
        }
    }

    async fn exchange(
        &self,
        request: Result<HttpRequest<Body>, HttpError>,
    ) -> Result<(Parts, Value), ListError> {
        let failed = |why: String| ListError::Failed(why);
        let request = request.map_err(|error| failed(error.to_string()))?;
        let answer = async {
            let (head, body) = self.client.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, Error>((head, body))
        };
        let answer = timeout(LIMIT, answer).await;
        let (head, body) = answer
            .map_err(|_| {
                failed(format!(
                    "the API server at {} did not answer in time",
                    self.server
                ))
            })?
            .map_err(|error| refusal(&error, &self.server))?;
        Ok((head, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

/// Why this API server gave no answer.
pub(super) fn refusal(error: &Error, server: &str) -> ListError {
    match error {
        Error::Api(status) if status.code == 403 => ListError::Forbidden(status.message.clone()),
        Error::Api(status) if status.code == 404 => ListError::NotInstalled,
        Error::Api(status) => ListError::Failed(status.message.clone()),
        error => ListError::Failed(format!(
            "the API server at {server} cannot be reached: {}",
            with_causes(error)
        )),
    }
}
