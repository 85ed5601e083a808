//! Notices as Kubernetes Events.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams, Request};
use kube::{Client, Resource};
use serde::de::IgnoredAny;

use crate::client;
use crate::engine::notice::{About, Notice};

/// The Events' reporting controller: dashboards for the Node Readiness Controller look for this name.
const REPORTING_CONTROLLER: &str = "node-readiness-controller";
/// Events about cluster-scoped objects live in this namespace.
const NAMESPACE: &str = "default";

/// The Event for a notice; `number` counts the Events of this instance and makes the name unique.
pub(super) fn event(notice: Notice, at: Timestamp, number: u64, instance: &str) -> Event {
    let Notice {
        about,
        related,
        topic,
        note,
    } = notice;
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{:x}{number:x}", about.name, at.as_nanosecond())),
            namespace: Some(NAMESPACE.into()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(at)),
        reporting_controller: Some(REPORTING_CONTROLLER.into()),
        reporting_instance: Some(instance.into()),
        action: Some(topic.action.into()),
        reason: Some(topic.reason.into()),
        regarding: Some(reference(about)),
        related: related.map(reference),
        note: Some(note),
        type_: Some(topic.kind.into()),
        ..Event::default()
    }
}

fn reference(about: About) -> ObjectReference {
    ObjectReference {
        api_version: Some(about.api_version),
        kind: Some(about.kind.into()),
        name: Some(about.name.to_string()),
        uid: about.uid.map(|uid| uid.to_string()),
        ..ObjectReference::default()
    }
}

/// Creates an Event and discards the answer's content.
pub(super) async fn create(client: &Client, event: &Event) -> kube::Result<()> {
    let body = serde_json::to_vec(event).map_err(kube::Error::SerdeError)?;
    let request = Request::new(Event::url_path(&(), Some(NAMESPACE)));
    let request = request.create(&PostParams::default(), body);
    client::write::<IgnoredAny>(client, request)
        .await
        .map(|_| ())
}
