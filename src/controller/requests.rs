//! Makes the engine's requests, each with a deadline; the client never retries them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request as HttpRequest;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{self as core, ObjectReference};
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{
    DeleteParams, GetParams, ListParams, ObjectList, ObjectMeta, Patch, PatchParams, PostParams,
    Preconditions, Request,
};
use kube::core::request;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answer::within;
use super::metrics::Metrics;
use nodegate_cluster::client;
use nodegate_core::object::{self, ResourceKind, RuleObject, Watched};
use nodegate_engine::RequestError;
use nodegate_engine::io::{self as engine, Answer};
use nodegate_engine::notice::{About, Notice};

const DEADLINE: Duration = Duration::from_secs(10);
const FIELD_MANAGER: &str = "nodegate";

/// What is written: its label in metrics, its kind, and its subresource, if it is one.
type Target = (&'static str, ResourceKind, Option<&'static str>);
const NODE: Target = ("node", ResourceKind::Nodes, None);
const CONDITIONS: Target = ("conditions", ResourceKind::Nodes, Some("status"));
const FINALIZERS: Target = ("finalizers", ResourceKind::Rules, None);
const STATUS: Target = ("status", ResourceKind::Rules, Some("status"));
const NODE_CLAIM: Target = ("nodeclaim", ResourceKind::NodeClaims, None);
/// Metric labels of failed writes.
const UNREACHABLE: &str = "unreachable";
const THROTTLED: &str = "throttled";
const BROKEN: &str = "broken";
const TIMED_OUT: &str = "timed_out";
const REFUSED: &str = "refused";

/// The Events' reporting controller: dashboards for the Node Readiness Controller look for this name.
const REPORTING_CONTROLLER: &str = "node-readiness-controller";
/// Events about cluster-scoped objects live in this namespace.
const NAMESPACE: &str = "default";
/// The longest name of an object.
const MAX_NAME: usize = 253;
/// The fields of an Event that have other names in the core API.
const CORE_NAMES: [(&str, &str); 3] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
];

/// The metric label of a failure; `None` if it is normal among concurrent writers.
fn reason(error: &RequestError) -> Option<&'static str> {
    match error {
        RequestError::Conflict | RequestError::Gone => None,
        RequestError::Unreachable(_) => Some(UNREACHABLE),
        RequestError::Throttled { .. } => Some(THROTTLED),
        RequestError::Broken(_) => Some(BROKEN),
        RequestError::TimedOut(_) => Some(TIMED_OUT),
        RequestError::Failed(_) => Some(REFUSED),
    }
}

#[derive(Clone)]
pub(super) struct Requester {
    client: Client,
    /// The reporting instance in this process's Events.
    instance: Arc<str>,
    metrics: Metrics,
}

impl Requester {
    /// The client's own retries must be off.
    pub(super) fn new(client: &Client, instance: &str, metrics: Metrics) -> Self {
        for (object, ..) in [NODE, CONDITIONS, FINALIZERS, STATUS, NODE_CLAIM] {
            metrics.write_conflicts.with_label_values(&[object]);
            for reason in [UNREACHABLE, THROTTLED, BROKEN, TIMED_OUT, REFUSED] {
                metrics.write_failures.with_label_values(&[object, reason]);
            }
        }
        Self {
            client: client.clone(),
            instance: instance.into(),
            metrics,
        }
    }

    pub(super) async fn make(&self, request: engine::Request) -> Result<Answer, RequestError> {
        let client = &self.client;
        match request {
            engine::Request::PatchNode(name, it) => {
                let request = patch(NODE, &name, &Patch::Json::<()>(it));
                let answer = self.counted(NODE, client::write(client, request));
                answer.await.map(Answer::Node)
            }
            engine::Request::PatchNodeStatus(name, it) => {
                let request = patch(CONDITIONS, &name, &Patch::Strategic(it));
                let answer = self.counted(CONDITIONS, client::send(client, request));
                answer.await.map(Answer::Node)
            }
            engine::Request::ReadNode(name) => {
                let request = Request::new(ResourceKind::Nodes.path(None));
                let request = request.get(&name, &GetParams::default());
                let answer = within(DEADLINE, client::send(client, request));
                answer.await.map(Answer::Node)
            }
            engine::Request::PatchRule(name, it) => {
                let request = patch(FINALIZERS, &name, &Patch::Json::<()>(it));
                let answer = self.counted(FINALIZERS, client::send(client, request));
                answer.await.map(Answer::Rule)
            }
            engine::Request::PatchRuleStatus(name, it) => {
                let request = patch(STATUS, &name, &Patch::Json::<()>(it));
                let answer = client::write::<Watched<RuleObject>>(client, request);
                let object = self.counted(STATUS, answer).await?;
                Ok(Answer::Version(object.version()))
            }
            engine::Request::PatchNodeClaim(name, it) => {
                let request = patch(NODE_CLAIM, &name, &Patch::Merge(it));
                let answer = self.counted(NODE_CLAIM, client::send(client, request));
                answer.await.map(Answer::NodeClaim)
            }
            engine::Request::DeleteNodeClaim { name, uid, version } => {
                let params = DeleteParams::default().preconditions(Preconditions {
                    uid: Some(uid.to_string()),
                    resource_version: Some(version.to_string()),
                });
                let request = Request::new(ResourceKind::NodeClaims.path(None));
                let request = request.delete(&name, &params);
                let answer = client::send::<IgnoredAny>(client, request);
                self.counted(NODE_CLAIM, answer).await?;
                Ok(Answer::Done)
            }
            engine::Request::ReadVersion(watch, scope) => {
                let params = ListParams::default().limit(1);
                let path = watch.resource().path(scope.namespace.as_deref());
                let request = Request::new(path);
                let request = request.list_metadata(&params);
                let answer = client::send::<ObjectList<IgnoredAny>>(client, request);
                let list = within(DEADLINE, answer).await?;
                match object::version(list.metadata.resource_version.as_deref()) {
                    0 => Err(RequestError::Failed("the list has no version".into())),
                    version => Ok(Answer::Version(version)),
                }
            }
            engine::Request::PostEvent { notice, at, number } => {
                let event = event(*notice, at, number, &self.instance);
                within(DEADLINE, self.post(event)).await?;
                Ok(Answer::Done)
            }
        }
    }

    /// Posts an Event; by the core API under a role that does not know `events.k8s.io`, as the Node Readiness Controller's of old.
    async fn post(&self, event: Event) -> kube::Result<()> {
        let mut event = serde_json::to_value(event).map_err(kube::Error::SerdeError)?;
        let refusal = match self.create::<Event>(&event).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 403 => refusal,
            answer => return answer,
        };
        event["apiVersion"] = "v1".into();
        for (name, in_core) in CORE_NAMES {
            event[in_core] = event[name].take();
        }
        let posted = self.create::<core::Event>(&event).await;
        posted.map_err(|_| kube::Error::Api(refusal))
    }

    async fn create<K: Resource<DynamicType = ()>>(&self, event: &Value) -> kube::Result<()> {
        let request = Request::new(K::url_path(&(), Some(NAMESPACE)));
        let request = request.create(&PostParams::default(), event.to_string().into_bytes());
        let posted = client::write::<IgnoredAny>(&self.client, request).await;
        posted.map(drop)
    }

    async fn counted<T>(
        &self,
        (object, ..): Target,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let started = Instant::now();
        let result = within(DEADLINE, request).await;
        let duration = self.metrics.write_duration.with_label_values(&[object]);
        duration.observe(started.elapsed().as_secs_f64());
        if let Err(RequestError::Conflict) = result {
            let conflicts = self.metrics.write_conflicts.with_label_values(&[object]);
            conflicts.inc();
        }
        if let Some(reason) = result.as_ref().err().and_then(reason) {
            let labels = [object, reason];
            self.metrics.write_failures.with_label_values(&labels).inc();
        }
        result
    }
}

fn patch(
    (_, kind, part): Target,
    name: &str,
    patch: &Patch<impl Serialize + Debug + PartialEq + Clone>,
) -> Result<HttpRequest<Vec<u8>>, request::Error> {
    let request = Request::new(kind.path(None));
    let params = PatchParams::apply(FIELD_MANAGER);
    match part {
        Some(part) => request.patch_subresource(part, name, &params, patch),
        None => request.patch(name, &params, patch),
    }
}

/// The Event for a notice; `number` counts the Events of this instance and makes the name unique.
fn event(notice: Notice, at: Timestamp, number: u64, instance: &str) -> Event {
    let number = format!(".{:x}{number:x}", at.as_nanosecond());
    let name = notice.about.name.chars().take(MAX_NAME - number.len());
    let name: String = name.collect();
    Event {
        metadata: ObjectMeta {
            name: Some(name.trim_end_matches(['.', '-']).to_owned() + &number),
            namespace: Some(NAMESPACE.into()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(at)),
        reporting_controller: Some(REPORTING_CONTROLLER.into()),
        reporting_instance: Some(instance.into()),
        action: Some(notice.topic.action.into()),
        reason: Some(notice.topic.reason.into()),
        regarding: Some(reference(notice.about)),
        related: notice.related.map(reference),
        note: Some(notice.note),
        type_: Some(notice.kind.into()),
        series: (notice.times > 1).then(|| EventSeries {
            count: notice.times.try_into().unwrap_or(i32::MAX),
            last_observed_time: MicroTime(at),
        }),
        ..Event::default()
    }
}

fn reference(about: About) -> ObjectReference {
    ObjectReference {
        api_version: Some(about.kind.api_version()),
        kind: Some(about.kind.kind().into()),
        name: Some(about.name.to_string()),
        uid: about.uid.map(|uid| uid.to_string()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_events_own_name_is_one_that_the_api_server_takes() {
        for (length, kept) in [(5, 5), (240, 233), (253, 233)] {
            let mut long = "n".repeat(length);
            if length > kept {
                long.replace_range(kept - 1..kept, "-");
            }
            let about = About::rule(&long, "uid");
            let topic = nodegate_engine::notice::TOPICS[0];
            let (related, kind, note, times) = (None, topic.kind, String::new(), 1);
            let notice = Notice {
                about,
                related,
                topic,
                kind,
                note,
                times,
            };
            let at = Timestamp::from_second(1_800_000_000).unwrap();
            let event = event(notice, at, 0xabcd, "instance");
            let name = event.metadata.name.unwrap();
            assert_eq!(
                name.find('.'),
                Some(kept - usize::from(length > kept)),
                "{name}"
            );
            assert!(name.len() <= MAX_NAME && name.ends_with("abcd"), "{name}");
            let about = event.regarding.and_then(|it| it.name);
            assert_eq!(about.map(|it| it.len()), Some(length));
        }
    }
}
