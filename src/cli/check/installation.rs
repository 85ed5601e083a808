//! The parts of an installation: each is read by a request of its own that writes nothing, and judged by a function of the answer.

#![allow(clippy::disallowed_methods, reason = "it deals with the cluster now")]
#![allow(clippy::unnecessary_wraps, reason = "every verdict is one")]

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use http::{Request, Uri};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::read::ObjectSource;
use crate::snapshot::{Leader, Snapshot};
use nodegate_cluster::certificate::end;
use nodegate_cluster::process::is_nodegate;
use nodegate_cluster::{Cluster, ResourceKind, client};
use nodegate_core::api;
use nodegate_core::api::names::{CONFIG_MAP, FINALIZER, LEASE, MANAGED_BY, NAMESPACE, VERSION};
use nodegate_core::finding::{Check, Finding, Severity};
use nodegate_core::object::RuleObject;
use nodegate_core::text::counted;

/// The name of the policy that taints nodes at creation, and of its binding.
const BIRTH: &str = "nrr-gate-at-birth";
const WEBHOOK: &str = "nrr-validating-webhook-configuration";
/// The oldest supported Kubernetes version.
const OLDEST: (u32, u32) = (1, 33);
/// How far apart clocks may be: the API server gives whole seconds, and leases last 15.
const APART: SignedDuration = SignedDuration::from_secs(5);
/// How long before a certificate expires the check warns.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long the deletion of a rule may take.
const GOING: SignedDuration = SignedDuration::from_mins(2);

/// How a part is, in a message, and how to fix it; an error says why that is unknown.
type PartState = Result<(Severity, String, String), String>;

/// The parts of the installation; none for a dump, which does not contain them.
pub(crate) async fn installation(source: &ObjectSource, snapshot: &Snapshot) -> Vec<Finding> {
    let ObjectSource::Cluster(cluster) = source else {
        return Vec::new();
    };
    let (version, denied, found, policies, policy, binding, hook) = tokio::join!(
        version(cluster),
        denied(cluster),
        cluster.found(ResourceKind::Rules.full_name()),
        has_policies(cluster),
        cluster.found::<MutatingAdmissionPolicy>(BIRTH),
        cluster.found::<MutatingAdmissionPolicyBinding>(BIRTH),
        cluster.found(WEBHOOK),
    );
    let ready = match hook.as_ref().ok().and_then(|it| service(it.as_ref()?)) {
        Some((namespace, name)) => ready(cluster, namespace, name).await,
        None => None,
    };
    let now = Timestamp::now();
    let (version, served_at) = version.map_or_else(|why| (Err(why), None), |it| (Ok(it.0), it.1));
    let known = |kind| snapshot.gap(kind).map_or(Ok(()), |it| Err(it.why.clone()));
    let policy = policy.map(|it| it.is_some());
    let binding = binding.map(|it| it.is_some());
    let leader = known(ResourceKind::Leases).map(|()| snapshot.leader.as_ref());
    let instances = &snapshot.controllers;
    let rules = snapshot.view.cached_rules().values().map(|it| &*it.object);
    let rules = known(ResourceKind::Rules).map(|()| rules.collect());
    let verdicts = [
        (Check::API_SERVER, api_server(version)),
        (Check::CLOCK, clock(served_at, now)),
        (Check::PERMISSIONS, permissions(denied)),
        (Check::DEFINITION, definition(found)),
        (Check::GATED_AT_BIRTH, birth(policies, policy, binding)),
        (Check::WEBHOOK, webhook(hook, ready, now)),
        (Check::CONTROLLER, controller(leader, instances, now)),
        (Check::DELETIONS, deletions(rules, now)),
    ];
    let findings = verdicts.into_iter().map(|(check, verdict)| {
        let (severity, message, fix) =
            verdict.unwrap_or_else(|why| (Severity::Unknown, why, String::new()));
        Finding::new(check, check.title, message, fix).but(severity)
    });
    findings.collect()
}

async fn version(cluster: &Cluster) -> Result<(Info, Option<Timestamp>), String> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = Uri::from_static("/version");
    let answer = async {
        let (head, body) = cluster.client.send(request).await?.into_parts();
        Ok((head, body.collect().await?.to_bytes()))
    };
    let (head, body) = cluster.answered(answer.await)?;
    let version = serde_json::from_slice(&body);
    let version = version.map_err(|_| format!("the API server answers {}", head.status))?;
    Ok((version, client::served_at(&head.headers)))
}

fn ok(message: impl Into<String>) -> PartState {
    Ok((Severity::Ok, message.into(), String::new()))
}

fn failed(message: impl Into<String>, fix: impl Into<String>) -> PartState {
    Ok((Severity::Error, message.into(), fix.into()))
}

fn warning(message: impl Into<String>, fix: impl Into<String>) -> PartState {
    Ok((Severity::Warning, message.into(), fix.into()))
}

fn api_server(version: Result<Info, String>) -> PartState {
    let version = version?;
    let number = |text: &str| {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        digits.parse::<u32>().ok()
    };
    let name = &version.git_version;
    let client = env!("CARGO_PKG_VERSION");
    let numbers = number(&version.major).zip(number(&version.minor));
    if numbers.ok_or("its version cannot be parsed")? < OLDEST {
        let message = format!("it is {name}; 1.33 is the oldest supported version");
        return failed(message, "upgrade Kubernetes");
    }
    ok(format!("it is {name}; this is kubectl nodegate {client}"))
}

fn clock(served_at: Option<Timestamp>, now: Timestamp) -> PartState {
    let served_at = served_at.ok_or("the API server did not say what time it is")?;
    let apart = now.duration_since(served_at);
    if apart.abs() <= APART {
        return ok("this machine's and the API server's are no more than seconds apart");
    }
    let side = if apart.is_positive() {
        "ahead of"
    } else {
        "behind"
    };
    let message = format!(
        "this machine's is {} s {side} the API server's: ages here are wrong by that; on a machine that runs the controller, \
         heartbeat timeouts and repair would be, too",
        apart.abs().as_secs()
    );
    warning(message, "check that the clock is synchronized: timedatectl")
}

/// The lists that commands need but the user may not read.
async fn denied(cluster: &Cluster) -> Result<Vec<ResourceKind>, String> {
    let reviews = ResourceKind::ALL.iter().map(async |kind| {
        let group = kind.full_name().split_once('.').map(|(_, group)| group);
        // Only one object of these kinds matters, and a role may name it.
        let name = match kind {
            ResourceKind::Leases => Some(LEASE.to_owned()),
            ResourceKind::ConfigMaps => Some(CONFIG_MAP.0.to_owned()),
            _ => None,
        };
        let mut review = SelfSubjectAccessReview::default();
        review.spec.resource_attributes = Some(ResourceAttributes {
            group: group.map(str::to_owned),
            resource: Some(kind.name().to_owned()),
            verb: Some("list".to_owned()),
            name,
            ..ResourceAttributes::default()
        });
        let api = Api::all(cluster.client.clone());
        let answer = cluster.answered(api.create(&PostParams::default(), &review).await)?;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        Ok((!is_allowed).then_some(*kind))
    });
    let answers: Result<Vec<_>, String> = join_all(reviews).await.into_iter().collect();
    Ok(answers?.into_iter().flatten().collect())
}

fn permissions(denied: Result<Vec<ResourceKind>, String>) -> PartState {
    const FIX: &str = "ask for the right to read: kubectl create clusterrolebinding nodegate-view \
                       --clusterrole=nodegate-view --user=NAME";
    let named = |kind: ResourceKind| format!("{} ({})", kind.name(), kind.tells());
    let denied: Vec<_> = denied?.into_iter().map(named).collect();
    if denied.is_empty() {
        return ok("you may read everything that these commands need");
    }
    warning(format!("you may not list {}", denied.join(", ")), FIX)
}

fn definition(found: Result<Option<CustomResourceDefinition>, String>) -> PartState {
    const APPLY: &str =
        "apply the definition: kubectl apply --server-side --force-conflicts -k config/crd";
    let Some(definition) = found? else {
        return failed("the CustomResourceDefinition is not installed", APPLY);
    };
    let conditions = definition.status.iter().flat_map(|it| &it.conditions);
    let mut conditions = conditions.flatten();
    let is_established = conditions.any(|it| it.type_ == "Established" && it.status == "True");
    let mut versions = definition.spec.versions.iter();
    if !is_established || !versions.any(|it| it.served && it.name == VERSION) {
        let message = format!("the API server does not serve its version {VERSION}");
        return failed(message, APPLY);
    }
    let labels = definition.metadata.labels.as_ref();
    if let Some(owner) = labels.and_then(api::other_owner) {
        let message = format!(
            "its label {MANAGED_BY} says {owner}: if they run a controller for it, perhaps where you cannot see it, two write \
             the same taints"
        );
        let see = format!(
            "see who elects leaders; only one of the two may run: \
             kubectl get leases --all-namespaces --field-selector metadata.name={LEASE}"
        );
        return warning(message, see);
    }
    let (ours, theirs) = (api::crd(), fields(&definition));
    let lacks: Vec<_> = fields(&ours).difference(&theirs).copied().collect();
    if lacks.is_empty() {
        return ok(format!(
            "{VERSION} is served, with all fields that this binary knows"
        ));
    }
    let message = format!(
        "it is older, or the upstream project's, and drops what it does not know of a rule: nodegate.{}",
        lacks.join(", nodegate.")
    );
    warning(message, APPLY)
}

/// The fields below `nodegate` of a rule's spec, which only we have.
fn fields(definition: &CustomResourceDefinition) -> BTreeSet<&str> {
    let fields = || {
        let mut versions = definition.spec.versions.iter();
        let version = versions.find(|it| it.name == VERSION)?;
        let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
        let spec = schema.properties.as_ref()?.get("spec")?;
        let ours = spec.properties.as_ref()?.get("nodegate")?;
        ours.properties.as_ref()
    };
    fields().into_iter().flatten().map(|it| &**it.0).collect()
}

async fn has_policies(cluster: &Cluster) -> Result<bool, String> {
    let group = "admissionregistration.k8s.io/v1";
    let listed = cluster.answered(cluster.client.list_api_group_resources(group).await)?;
    let mut resources = listed.resources.iter();
    Ok(resources.any(|it| it.name == "mutatingadmissionpolicies"))
}

fn birth(
    has_policies: Result<bool, String>,
    policy: Result<bool, String>,
    binding: Result<bool, String>,
) -> PartState {
    let gap =
        "nodes take pods for milliseconds after they are created; startup taints close the gap";
    if !has_policies? {
        let message = "this API server has no MutatingAdmissionPolicy v1 (it came with 1.36)";
        return ok(format!("{message}: {gap}"));
    }
    match (policy?, binding?) {
        (true, true) => ok(format!("the policy {BIRTH} is there, and bound")),
        (false, false) => ok(format!("the policy {BIRTH} is not installed: {gap}")),
        _ => warning(
            format!("only one of the policy {BIRTH} and its binding is installed: {gap}"),
            "install both: kubectl apply -k config/birth",
        ),
    }
}

/// The namespace and name of the service that serves the webhook.
fn service(configuration: &ValidatingWebhookConfiguration) -> Option<(&str, &str)> {
    let webhook = configuration.webhooks.as_ref()?.first()?;
    let service = webhook.client_config.service.as_ref()?;
    Some((&service.namespace, &service.name))
}

/// How many endpoints of a service are ready, if that may be read.
async fn ready(cluster: &Cluster, namespace: &str, service: &str) -> Option<usize> {
    let api: Api<EndpointSlice> = Api::namespaced(cluster.client.clone(), namespace);
    let of_service = format!("kubernetes.io/service-name={service}");
    let slices = api.list(&ListParams::default().labels(&of_service)).await;
    let endpoints = slices.ok()?.items.into_iter().filter_map(|it| it.endpoints);
    let ready = endpoints.flatten();
    let ready = ready.filter(|it| it.conditions.as_ref().and_then(|it| it.ready) != Some(false));
    Some(ready.count())
}

fn webhook(
    found: Result<Option<ValidatingWebhookConfiguration>, String>,
    ready: Option<usize>,
    now: Timestamp,
) -> PartState {
    let Some(configuration) = found? else {
        return ok("it is not installed: conflicting rules are accepted, and their status says so");
    };
    let webhook = configuration.webhooks.iter().flatten().next();
    let bundle = webhook.and_then(|it| it.client_config.ca_bundle.as_ref());
    let refused = match webhook.and_then(|it| it.failure_policy.as_deref()) {
        Some("Ignore") => "rules are accepted without a check",
        _ => "no rule can be created or changed",
    };
    let service = service(&configuration);
    let look = service.map_or_else(String::new, |(namespace, _)| {
        format!(
            "check the controller, which serves it with --enable-webhook: kubectl -n {namespace} get pods"
        )
    });
    let Some(bundle) = bundle.filter(|bundle| !bundle.0.is_empty()) else {
        let message = format!("the API server does not know which CA to trust ({WEBHOOK})");
        return failed(format!("{message}: {refused}"), look);
    };
    if ready == Some(0) {
        let message = "nothing serves it: its service has no ready endpoint";
        return failed(format!("{message}, and {refused}"), look);
    }
    if service.is_some() && ready.is_none() {
        let message = "it is configured; its EndpointSlices cannot be listed, so whether anything serves it is unknown";
        return Err(message.into());
    }
    let ends = match last_end(&bundle.0) {
        Some((end, _)) if end <= now => {
            let message = format!("the CA that the API server trusts ended at {end}: {refused}");
            return failed(message, look);
        }
        Some((end, _)) if end.duration_since(now) < SOON => {
            let message = format!("the CA that the API server trusts ends soon, at {end}");
            return warning(message, look);
        }
        None => String::new(),
        // The CA and the certificate were made together, with the same expiry.
        Some((end, true)) => format!("; its CA and its certificate are good until {end}"),
        Some((end, false)) => format!("; its CA is good until {end}"),
    };
    let ready = ready.map_or_else(String::new, |ready| format!(", {ready} ready"));
    ok(format!("it is configured{ready}{ends}"))
}

/// When the last of these PEM certificates expires, and whether a CA of Nodegate's own issued it, which expires with its
/// certificate. `None` if there is none, or if one cannot be parsed. The others in a bundle are from earlier renewals.
fn last_end(pem: &[u8]) -> Option<(Timestamp, bool)> {
    let ends = CertificateDer::pem_slice_iter(pem).map(|certificate| end(&certificate.ok()?));
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn controller(
    found: Result<Option<&Leader>, String>,
    instances: &[(String, bool)],
    now: Timestamp,
) -> PartState {
    let look = |namespace: &str| format!("check the controller: kubectl -n {namespace} get pods");
    let Some(leader) = found? else {
        let message = "no controller has ever led here: nothing gates or releases nodes (with --leader-elect=false there is no Lease to show it)";
        return warning(message, look(NAMESPACE));
    };
    let mut images: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (image, is_ready) in instances {
        let (all, ready) = images.entry(image).or_default();
        *all += 1;
        *ready += usize::from(*is_ready);
    }
    let images = images.into_iter().map(|(image, (all, ready))| {
        format!(", {image} ({}, {ready} ready)", counted(all, "instance"))
    });
    let runs_with = leader.runs_with.as_ref();
    let limits = runs_with.map_or("its limits are unknown".into(), |it| {
        let first = it.limits.max_first_gated;
        format!("a rule may gate {first} of the nodes in use as it comes into force")
    });
    let images: String = images.collect();
    let leads = format!("{} leads{images}; {limits}", leader.pod());
    let look = look(&leader.namespace);
    if let Some(rival) = &leader.rival {
        let message = format!("{leads}, and so does {rival}: both write the same taints");
        return failed(message, "stop one of the two");
    }
    match leader.idle(now) {
        Some(why) => failed(format!("{why}; limits are unknown"), look),
        None if leader.suspends_all => warning(format!("{leads}, and all rules are suspended"), ""),
        None if !is_nodegate(&leader.holder) => {
            let why = "which is not Nodegate: Nodegate waits until that one stops";
            warning(format!("{leads}, {why}"), look)
        }
        None => ok(leads),
    }
}

fn deletions(rules: Result<Vec<&RuleObject>, String>, now: Timestamp) -> PartState {
    let deleted = rules?.into_iter().filter_map(|rule| {
        let since = rule.metadata.deletion_timestamp.as_ref()?.0;
        Some((rule.metadata.name.as_deref()?, since))
    });
    let stuck = deleted.filter(|(_, since)| now.duration_since(*since) > GOING);
    let Some((name, since)) = stuck.min() else {
        return ok("no rule is stuck while it is deleted");
    };
    let message = format!(
        "rule {name} has been in deletion since {since}: its finalizer {FINALIZER} stays until its taint is off every node, \
         which takes a controller that leads and may write"
    );
    let see = format!(
        "see which nodes cannot be written: kubectl get nodereadinessrule {name} -o jsonpath='{{.status.failedNodes}}'"
    );
    failed(message, see)
}

#[cfg(test)]
#[path = "tests/installation.rs"]
mod tests;
