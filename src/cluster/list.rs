//! Requests to the API server: paged lists, and single objects.

use std::fmt::Debug;
use std::path::Path;

use futures::stream::{self, LocalBoxStream, StreamExt, TryStreamExt};
use kube::api::{ListParams, ObjectList, Request};
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::bookmarks;
use super::client;
use super::gap::{Gap, why};
use nodegate_core::object::ResourceKind;
use nodegate_core::selector::Filter;

/// The most objects of a page.
const PAGE: u32 = 500;
/// How often a list is restarted after its pages have expired.
const ATTEMPTS: usize = 3;

/// The objects of a list, as JSON. It ends with the list, or with an error.
pub type Objects<'a> = LocalBoxStream<'a, Result<String, Gap>>;

#[derive(Clone)]
pub struct Cluster {
    /// Its watches show bookmarks.
    pub client: Client,
    /// Its name in the kubeconfig, or its address.
    pub name: String,
    /// Its address, for messages.
    pub server: String,
}

/// The objects of a list or page, not yet decoded.
pub fn objects(list: ObjectList<Box<RawValue>>) -> Vec<String> {
    let items = list.items.into_iter().map(Box::<str>::from);
    items.map(String::from).collect()
}

impl Cluster {
    /// Connects as a kubeconfig says, or as the pod that this process is in; `user` is impersonated.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        agent: &str,
        user: Option<String>,
    ) -> Result<Self, client::Error> {
        let mut config = client::config(kubeconfig, context, agent).await?;
        config.auth_info.impersonate = user.or(config.auth_info.impersonate);
        let server = config.cluster_url.to_string();
        Ok(Self {
            name: client::cluster_name(kubeconfig, context).unwrap_or(server.clone()),
            server,
            client: bookmarks::client(config)?,
        })
    }

    /// The objects of a list. One that expires goes on from the current state, and may then have duplicates or deleted objects.
    pub fn list(&self, kind: ResourceKind, filter: &Filter) -> Objects<'_> {
        let path = kind.path(filter.namespace.as_deref());
        let first = ListParams {
            label_selector: filter.labels.as_ref().map(ToString::to_string),
            field_selector: filter.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let pages = stream::try_unfold((Some(first), ATTEMPTS), move |(params, attempts)| {
            let path = path.clone();
            async move {
                let Some(params) = params else {
                    return Ok(None);
                };
                let next = |continue_token| ListParams {
                    continue_token,
                    ..params.clone()
                };
                Ok(Some(match self.page(&path, &params).await {
                    Ok((objects, None)) => (objects, (None, attempts)),
                    Ok((objects, token)) => (objects, (Some(next(token)), attempts)),
                    Err(Error::Api(status)) if status.code == 410 && attempts > 0 => {
                        (Vec::new(), (Some(next(None)), attempts - 1))
                    }
                    Err(error) => return Err(Gap::of(kind, &error, &self.server)),
                }))
            }
        });
        let objects = pages.map_ok(|objects| stream::iter(objects.into_iter().map(Ok)));
        objects.try_flatten().boxed_local()
    }

    /// The objects of a page and the token of the next one.
    async fn page(
        &self,
        path: &str,
        params: &ListParams,
    ) -> kube::Result<(Vec<String>, Option<String>)> {
        let request = Request::new(path).list(params);
        let request = request.map_err(Error::BuildRequest)?;
        let text = self.client.request_text(request).await?;
        let mut page: ObjectList<_> = serde_json::from_str(&text).map_err(Error::SerdeError)?;
        let token = page.metadata.continue_.take();
        Ok((objects(page), token.filter(|it| !it.is_empty())))
    }

    /// The object of this name, if there is one; otherwise why that is unknown.
    pub async fn found<K>(&self, name: &str) -> Result<Option<K>, String>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api = Api::<K>::all(self.client.clone());
        self.answered(api.get_opt(name).await)
    }

    pub fn answered<T>(&self, answer: kube::Result<T>) -> Result<T, String> {
        answer.map_err(|error| why(&error, &self.server))
    }
}
