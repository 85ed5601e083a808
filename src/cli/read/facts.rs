//! Reads the answers that `check` and `version` need, each with its own request that writes nothing.

use std::collections::BTreeSet;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::certificate::last_end;
use super::cluster::Cluster;
use super::controller;
use super::list::ListError;
use super::source::ObjectSource;
use crate::api;
use crate::api::names::{CONFIG_MAP, GROUP, LEASE, PLURAL, VERSION};
use crate::cli::check::{BIRTH, ClusterFacts, Definition, Lookup, WEBHOOK, WebhookFacts};
use crate::cli::snapshot::{Filter, ResourceKind};
use crate::cli::version::VersionFacts;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The API server's answers; `None` for a dump.
pub(crate) async fn facts(source: &ObjectSource) -> Option<ClusterFacts> {
    let ObjectSource::Cluster(cluster) = source else {
        return None;
    };
    let definition = definition_path();
    let policy = format!("{ADMISSION}/mutatingadmissionpolicies/{BIRTH}");
    let binding = format!("{ADMISSION}/mutatingadmissionpolicybindings/{BIRTH}");
    let (version, denied, definition, policies, policy, binding, webhook, leader, deleted) = tokio::join!(
        cluster.get("/version"),
        denied(cluster),
        found(cluster, &definition),
        found(cluster, ADMISSION),
        found(cluster, &policy),
        found(cluster, &binding),
        webhook(cluster),
        controller::leader(source),
        deleted(source),
    );
    let (version, served_at) = match version {
        Ok((version, date)) => (version_of(&version), date),
        Err(refusal) => (Err(refusal.to_string()), None),
    };
    let knows = |resources: &Value| {
        let resources = resources["resources"].as_array();
        let mut resources = resources.into_iter().flatten();
        resources.any(|it| it["name"] == "mutatingadmissionpolicies")
    };
    Some(ClusterFacts {
        at: Timestamp::now(),
        served_at,
        version,
        denied,
        definition: definition.map(|it| it.as_ref().map(definition_of)),
        policies: policies.map(|it| it.filter(knows).map(drop)),
        birth_policy: policy.map(|it| it.map(drop)),
        birth_binding: binding.map(|it| it.map(drop)),
        webhook,
        leader: leader.map_err(|refusal| refusal.to_string()),
        deleted,
    })
}

/// The answers that `version` needs; `None` for a dump.
pub(crate) async fn versions(source: &ObjectSource) -> Option<VersionFacts> {
    let ObjectSource::Cluster(cluster) = source else {
        return None;
    };
    let path = definition_path();
    let (definition, leader) = tokio::join!(found(cluster, &path), controller::leader(source));
    let known = leader.as_ref().ok().and_then(Option::as_ref);
    let controllers = controller::instances(source, known).await;
    Some(VersionFacts {
        definition: definition.map(|it| it.as_ref().map(definition_of)),
        leader: leader.map_err(|refusal| refusal.to_string()),
        controllers: controllers.map_err(|refusal| refusal.to_string()),
    })
}

fn definition_path() -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}")
}

async fn found(cluster: &Cluster, path: &str) -> Lookup<Value> {
    match cluster.get(path).await {
        Ok((value, _)) => Ok(Some(value)),
        Err(ListError::NotInstalled) => Ok(None),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// Major and minor version, and the full version string.
fn version_of(version: &Value) -> Result<(u32, u32, String), String> {
    let text = |field: &str| version[field].as_str().unwrap_or_default();
    let number = |field: &str| {
        let digits = text(field).trim_end_matches(|c: char| !c.is_ascii_digit());
        digits
            .parse()
            .map_err(|_| "its version cannot be parsed".to_owned())
    };
    Ok((
        number("major")?,
        number("minor")?,
        text("gitVersion").into(),
    ))
}

/// The lists that commands need but the user may not read.
async fn denied(cluster: &Cluster) -> Result<Vec<(&'static str, &'static str)>, String> {
    let reviews = ResourceKind::ALL.iter().map(async |kind| {
        let path = kind.path(None);
        let mut parts = path.trim_start_matches('/').split('/');
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => "",
        };
        // Only one object of these kinds matters, and a role may name it.
        let name = match kind {
            ResourceKind::Leases => LEASE,
            ResourceKind::ConfigMaps => CONFIG_MAP.0,
            _ => "",
        };
        let resource = json!({"group": group, "resource": kind.name(), "verb": "list", "name": name});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": resource}});
        let answer = cluster.post(REVIEWS, &review).await;
        answer.map(|answer| (*kind, answer["status"]["allowed"] == true))
    });
    let mut denied = Vec::new();
    for answer in join_all(reviews).await {
        let (kind, is_allowed) = answer.map_err(|refusal| refusal.to_string())?;
        if !is_allowed {
            denied.push((kind.name(), kind.tells()));
        }
    }
    Ok(denied)
}

fn definition_of(object: &Value) -> Definition {
    const SPEC: &str = "/schema/openAPIV3Schema/properties/spec/properties";
    let versions = |object: &Value| {
        object["spec"]["versions"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let fields = |object: &Value| -> BTreeSet<String> {
        let versions = versions(object).into_iter();
        let mut ours = versions.filter(|version| version["name"] == VERSION);
        let fields = ours.find_map(|version| version.pointer(SPEC)?.as_object().cloned());
        fields
            .into_iter()
            .flatten()
            .map(|(field, _)| field)
            .collect()
    };
    let own = serde_json::to_value(api::crd()).unwrap_or_default();
    let served = versions(object).into_iter();
    let served = served.filter(|version| version["served"] == true);
    let conditions = object["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.into_iter().flatten();
    Definition {
        is_established: conditions.any(|it| it["type"] == "Established" && it["status"] == "True"),
        served: served
            .filter_map(|version| version["name"].as_str().map(str::to_owned))
            .collect(),
        lacks: fields(&own).difference(&fields(object)).cloned().collect(),
        owner: serde_json::from_value(object["metadata"]["labels"].clone())
            .ok()
            .and_then(|labels| api::other_owner(&labels).map(str::to_owned)),
    }
}

async fn webhook(cluster: &Cluster) -> Lookup<WebhookFacts> {
    let path = format!("{ADMISSION}/validatingwebhookconfigurations/{WEBHOOK}");
    let Some(object) = found(cluster, &path).await? else {
        return Ok(None);
    };
    let webhook = &object["webhooks"][0];
    let config = &webhook["clientConfig"];
    let bundle: Option<ByteString> = serde_json::from_value(config["caBundle"].clone()).ok();
    let text = |field: &str| config["service"][field].as_str().map(str::to_owned);
    let service = text("namespace").zip(text("name"));
    let ready = match &service {
        Some((namespace, name)) => ready(cluster, namespace, name).await,
        None => None,
    };
    Ok(Some(WebhookFacts {
        has_ca: bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty()),
        ca_ends: bundle.and_then(|bundle| last_end(&bundle.0)),
        fails_closed: webhook["failurePolicy"] != "Ignore",
        service,
        ready,
    }))
}

/// How many endpoints of a service are ready, if that may be read.
async fn ready(cluster: &Cluster, namespace: &str, service: &str) -> Option<usize> {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
    );
    let (slices, _) = cluster.get(&path).await.ok()?;
    let slices = slices["items"].as_array()?;
    let endpoints = slices
        .iter()
        .filter_map(|slice| slice["endpoints"].as_array());
    let ready = endpoints
        .flatten()
        .filter(|it| it["conditions"]["ready"] != false);
    Some(ready.count())
}

async fn deleted(source: &ObjectSource) -> Result<Vec<(String, Timestamp)>, String> {
    let rules = match source
        .all::<Value>(ResourceKind::Rules, &Filter::default())
        .await
    {
        Ok(rules) => rules,
        Err(ListError::NotInstalled) => Vec::new(),
        Err(refusal) => return Err(refusal.to_string()),
    };
    let deleted = rules.iter().filter_map(|rule| {
        let text = |field: &str| rule["metadata"][field].as_str();
        let since = text("deletionTimestamp")?.parse().ok()?;
        Some((text("name")?.to_owned(), since))
    });
    Ok(deleted.collect())
}
