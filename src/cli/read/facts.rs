//! Asks the API server what `check` looks at: each by a request of its own, and none that writes.

use std::collections::BTreeSet;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::certificate::last_end;
use super::cluster::Cluster;
use super::page::Refusal;
use crate::api;
use crate::api::names::{CONFIG_MAP, GROUP, LEASE, PLURAL, VERSION};
use crate::cli::check::facts::{BIRTH, Definition, Facts, Found, WEBHOOK, WebhookFacts};
use crate::cli::snapshot::{Filter, Kind, Leader};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// What the API server says.
pub async fn facts(cluster: &Cluster) -> Facts {
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}");
    let policy = format!("{ADMISSION}/mutatingadmissionpolicies/{BIRTH}");
    let binding = format!("{ADMISSION}/mutatingadmissionpolicybindings/{BIRTH}");
    let (version, denied, definition, policies, policy, binding, webhook, leader, deleted) = tokio::join!(
        cluster.get("/version"),
        denied(cluster),
        cluster.get(&definition),
        cluster.get(ADMISSION),
        cluster.get(&policy),
        cluster.get(&binding),
        webhook(cluster),
        leader(cluster),
        deleted(cluster),
    );
    let at = Timestamp::now();
    let (version, served_at) = match version {
        Ok((version, date)) => (Ok(version), date),
        Err(refusal) => (Err(refusal.to_string()), None),
    };
    let knows = |resources: Value| {
        let resources = resources["resources"].as_array().cloned();
        let mut resources = resources.into_iter().flatten();
        resources.any(|it| it["name"] == "mutatingadmissionpolicies")
    };
    let policies = match found(policies) {
        Found::There(resources) if knows(resources.clone()) => Found::There(()),
        Found::There(_) | Found::Missing => Found::Missing,
        Found::Unknown(why) => Found::Unknown(why),
    };
    Facts {
        at,
        served_at,
        version: version.and_then(|version| {
            let number = |field: &str| {
                let text = version[field].as_str().unwrap_or_default();
                let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
                digits
                    .parse()
                    .map_err(|_| "its version cannot be understood".to_owned())
            };
            let name = version["gitVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            Ok((number("major")?, number("minor")?, name))
        }),
        denied,
        definition: map(found(definition), |it| definition_of(&it)),
        policies,
        birth_policy: map(found(policy), drop),
        birth_binding: map(found(binding), drop),
        webhook,
        leader,
        deleted,
    }
}

fn found(answer: Result<(Value, Option<Timestamp>), Refusal>) -> Found<Value> {
    match answer {
        Ok((value, _)) => Found::There(value),
        Err(Refusal::NotInstalled) => Found::Missing,
        Err(refusal) => Found::Unknown(refusal.to_string()),
    }
}

fn map<T, U>(found: Found<T>, change: impl FnOnce(T) -> U) -> Found<U> {
    match found {
        Found::There(value) => Found::There(change(value)),
        Found::Missing => Found::Missing,
        Found::Unknown(why) => Found::Unknown(why),
    }
}

/// What may not be listed of all that commands ask for.
async fn denied(cluster: &Cluster) -> Result<Vec<(&'static str, &'static str)>, String> {
    let reviews = Kind::ALL.iter().map(async |kind| {
        let path = kind.path(None);
        let mut parts = path.trim_start_matches('/').split('/');
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => "",
        };
        // Of these only one object matters, which a role may name.
        let name = match kind {
            Kind::Leases => LEASE,
            Kind::ConfigMaps => CONFIG_MAP.0,
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

/// What matters of a definition.
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
    }
}

async fn webhook(cluster: &Cluster) -> Found<WebhookFacts> {
    let path = format!("{ADMISSION}/validatingwebhookconfigurations/{WEBHOOK}");
    let object = match found(cluster.get(&path).await) {
        Found::There(object) => object,
        Found::Missing => return Found::Missing,
        Found::Unknown(why) => return Found::Unknown(why),
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
    Found::There(WebhookFacts {
        has_ca: bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty()),
        ca_ends: bundle.and_then(|bundle| last_end(&bundle.0)),
        fails_closed: webhook["failurePolicy"] != "Ignore",
        service,
        ready,
    })
}

/// How many endpoints of a service are ready, where that may be known.
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

async fn leader(cluster: &Cluster) -> Found<Leader> {
    let mut leases = Vec::new();
    let lease = Filter::named(LEASE);
    let take = |json: &str| leases.extend(serde_json::from_str(json).ok());
    match cluster.each(Kind::Leases, &lease, take).await {
        Ok(_) => leases
            .pop()
            .map_or(Found::Missing, |lease| Found::There(Leader::of(lease))),
        Err(refusal) => Found::Unknown(refusal.to_string()),
    }
}

async fn deleted(cluster: &Cluster) -> Result<Vec<(String, Timestamp)>, String> {
    let mut deleted = Vec::new();
    let take = |json: &str| {
        let rule: Value = serde_json::from_str(json).unwrap_or_default();
        let meta = &rule["metadata"];
        let since = meta["deletionTimestamp"]
            .as_str()
            .and_then(|at| at.parse().ok());
        let name = meta["name"].as_str().map(str::to_owned);
        deleted.extend(name.zip(since));
    };
    match cluster.each(Kind::Rules, &Filter::default(), take).await {
        Ok(_) | Err(Refusal::NotInstalled) => Ok(deleted),
        Err(refusal) => Err(refusal.to_string()),
    }
}
