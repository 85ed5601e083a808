//! Sources of objects: the API server, or memory (of a dump, a folder of YAML or a simulation). Both list JSON, object by object.

use std::collections::BTreeMap;

use futures::future::ready;
use futures::stream::{self, StreamExt, TryStreamExt};
use http::Request;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicyBinding;
use kube::Error;
use kube::core::request;
use serde::de::DeserializeOwned;
use serde_json::Value;

use nodegate_cluster::{Cluster, Gap, Objects, ResourceKind, client};
use nodegate_core::selector::Filter;

/// The name of the policy that adds tolerations, and of its binding.
const TOLERATIONS: &str = "nrr-add-tolerations";

/// How often a dry run is repeated because the rule that it replaces has been written meanwhile.
const REPEATS: usize = 3;

pub(crate) enum ObjectSource {
    Cluster(Cluster),
    Memory(Lists),
}

/// Objects in memory, as JSON.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// The time at which the objects were in this state.
    pub at: Timestamp,
    /// The name of their cluster; empty if it is unknown.
    pub cluster: String,
    pub objects: BTreeMap<ResourceKind, Vec<String>>,
    pub missing: Vec<Gap>,
    /// Whether these are manifests: other objects may exist elsewhere.
    pub are_files: bool,
    /// Objects that cannot be parsed: place and reason.
    pub unreadable: Vec<(String, String)>,
}

impl Lists {
    pub fn of(at: Timestamp, objects: BTreeMap<ResourceKind, Vec<String>>) -> Self {
        Self {
            at,
            objects,
            ..Self::default()
        }
    }
}

impl ObjectSource {
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.client.default_namespace(),
            Self::Memory(_) => "default",
        }
    }

    pub(crate) fn cluster(&self) -> &str {
        match self {
            Self::Cluster(cluster) => &cluster.name,
            Self::Memory(lists) => &lists.cluster,
        }
    }

    pub(crate) fn at(&self) -> Timestamp {
        match self {
            Self::Cluster(_) => Timestamp::now(),
            Self::Memory(lists) => lists.at,
        }
    }

    pub(crate) fn list(&self, kind: ResourceKind, filter: &Filter) -> Objects<'_> {
        let lists = match self {
            Self::Cluster(cluster) => return cluster.list(kind, filter),
            Self::Memory(lists) => lists,
        };
        let mut missing = lists.missing.iter();
        if let Some(missing) = missing.find(|it| it.kind == kind) {
            return stream::iter([Err(missing.clone())]).boxed_local();
        }
        let objects = lists.objects.get(&kind).into_iter().flatten();
        let objects = objects.filter(|it| filter.lets_through(it)).cloned();
        stream::iter(objects.map(Ok).collect::<Vec<_>>()).boxed_local()
    }

    pub(crate) async fn all<T: DeserializeOwned>(
        &self,
        kind: ResourceKind,
        filter: &Filter,
    ) -> Result<Vec<T>, Gap> {
        let objects = self.list(kind, filter);
        let decoded = objects.try_filter_map(|it| ready(Ok(serde_json::from_str::<T>(&it).ok())));
        decoded.try_collect().await
    }

    /// Whether the API server is known to add tolerations.
    pub(crate) async fn adds_tolerations(&self) -> bool {
        let Self::Cluster(cluster) = self else {
            return false;
        };
        let found = cluster.found::<MutatingAdmissionPolicyBinding>(TOLERATIONS);
        found.await.is_ok_and(|it| it.is_some())
    }

    /// Why the API server refuses a rule, if it does, by a write that it does not store. An error says why it was not asked, or
    /// did not say. `replaced` is the version of the rule that is there under this name.
    pub(crate) async fn dry_run(
        &self,
        rule: &Value,
        replaced: Option<&str>,
    ) -> Result<Option<String>, String> {
        let Self::Cluster(cluster) = self else {
            return Err("this is a dump".into());
        };
        let (mut rule, mut path) = (rule.clone(), ResourceKind::Rules.path(None));
        let (method, verb) = match replaced {
            Some(version) => {
                rule["metadata"]["resourceVersion"] = version.into();
                let name = rule["metadata"]["name"].as_str().unwrap_or_default();
                path = format!("{path}/{name}");
                ("PUT", "update")
            }
            None => ("POST", "create"),
        };
        let mut repeats = 0..REPEATS;
        let status = loop {
            let request = Request::builder()
                .method(method)
                .uri(format!("{path}?dryRun=All&fieldValidation=Strict"))
                .header(CONTENT_TYPE, "application/json")
                .body(rule.to_string().into_bytes())
                .map_err(request::Error::BuildRequest);
            match client::send::<Value>(&cluster.client, request).await {
                // The rule has been written since it was read, by the controller perhaps.
                Err(Error::Api(status))
                    if status.code == 409 && replaced.is_some() && repeats.next().is_some() =>
                {
                    let read = Request::get(&path).body(Vec::new());
                    let read = read.map_err(request::Error::BuildRequest);
                    let there = client::send::<Value>(&cluster.client, read).await;
                    let version = cluster.answered(there)?["metadata"]["resourceVersion"].take();
                    rule["metadata"]["resourceVersion"] = version;
                }
                Err(Error::Api(status)) => break status,
                answer => return cluster.answered(answer).map(|_| None),
            }
        };
        let message = &status.message;
        let lacks = format!(" cannot {verb} resource ");
        Err(match status.code {
            401 | 403 if message.contains(&lacks) || message == "Unauthorized" => {
                format!("no permission to {verb} rules")
            }
            404 => "the cluster has no NodeReadinessRules".into(),
            400..500 => return Ok(Some(message.clone())),
            code => format!("it answers {code}: {message}"),
        })
    }
}

/// The listed objects; a refused list is empty and recorded as a gap. So is a list that every cluster has and this one does not
/// know: then something else answers than an API server.
pub(crate) fn record_gap<T: Default>(gaps: &mut Vec<Gap>, listed: Result<T, Gap>) -> T {
    listed.unwrap_or_else(|refusal| {
        let is_absent = refusal.absent && refusal.kind.may_be_absent();
        if !is_absent && gaps.iter().all(|gap| gap.kind != refusal.kind) {
            gaps.push(refusal);
        }
        T::default()
    })
}
