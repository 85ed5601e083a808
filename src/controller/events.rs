//! Kubernetes Events about nodes and rules. They are posted behind the taint writes, and under overload they are
//! dropped and counted rather than waited for.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams, Request};
use kube::{Client, Resource};
use prometheus::IntCounter;
use serde::de::IgnoredAny;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::warn;

use super::limiter::Limiter;
use crate::api::names::{GROUP, KIND, VERSION};
use crate::client;
use crate::engine::RequestError;
use crate::rule::Rule;

/// The name that Events carry as their reporter: what dashboards for the Node Readiness Controller look for.
const REPORTING_CONTROLLER: &str = "node-readiness-controller";
/// Events about objects without a namespace live here.
const NAMESPACE: &str = "default";
/// How many Events may wait to be posted.
const CAPACITY: usize = 32_768;
/// How many Events are posted at a time.
const CONCURRENCY: usize = 4;
/// How long Events are put off in favour of taint writes.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long posting one Event may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest note that the API server takes, in bytes.
const MAX_NOTE: usize = 1024;

/// Whether an Event is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Things are as they should be.
    Normal,
    /// Somebody may want to look.
    Warning,
}

/// An Event to be posted.
#[derive(Debug)]
pub struct Notice {
    about: ObjectReference,
    tone: Tone,
    reason: &'static str,
    action: &'static str,
    note: String,
    at: Timestamp,
}

impl Notice {
    /// An Event about the node with this name and UID.
    pub fn on_node(
        name: &str,
        uid: &str,
        tone: Tone,
        reason: &'static str,
        action: &'static str,
        note: String,
    ) -> Self {
        let about = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Node".into()),
            name: Some(name.into()),
            uid: Some(uid.into()),
            ..ObjectReference::default()
        };
        Self::new(about, tone, reason, action, note)
    }

    /// An Event about a rule.
    pub fn on_rule(
        rule: &Rule,
        tone: Tone,
        reason: &'static str,
        action: &'static str,
        note: String,
    ) -> Self {
        let about = ObjectReference {
            api_version: Some(format!("{GROUP}/{VERSION}")),
            kind: Some(KIND.into()),
            name: Some(rule.name.to_string()),
            uid: Some(rule.uid.to_string()),
            ..ObjectReference::default()
        };
        Self::new(about, tone, reason, action, note)
    }

    /// An Event about an object without a namespace.
    pub fn new(
        about: ObjectReference,
        tone: Tone,
        reason: &'static str,
        action: &'static str,
        note: String,
    ) -> Self {
        Self {
            about,
            tone,
            reason,
            action,
            note: truncated(note),
            at: Timestamp::now(),
        }
    }

    fn into_event(self, instance: &str, sequence: u64) -> Event {
        let name = self.about.name.clone().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}{sequence:x}", self.at.as_nanosecond())),
                namespace: Some(NAMESPACE.into()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(self.at)),
            reporting_controller: Some(REPORTING_CONTROLLER.into()),
            reporting_instance: Some(instance.into()),
            action: Some(self.action.into()),
            reason: Some(self.reason.into()),
            regarding: Some(self.about),
            note: Some(self.note),
            type_: Some(
                match self.tone {
                    Tone::Normal => "Normal",
                    Tone::Warning => "Warning",
                }
                .into(),
            ),
            ..Event::default()
        }
    }
}

/// The text, cut at a character boundary where it is longer than a note may be.
fn truncated(mut note: String) -> String {
    if note.len() > MAX_NOTE {
        let end = (0..=MAX_NOTE - 3)
            .rev()
            .find(|end| note.is_char_boundary(*end));
        note.truncate(end.unwrap_or_default());
        note.push_str("...");
    }
    note
}

/// Takes Events without ever making the taker wait.
#[derive(Debug)]
pub struct EventSink {
    queue: mpsc::Sender<Notice>,
    dropped: IntCounter,
    posting: JoinHandle<()>,
}

impl EventSink {
    /// Starts posting. Events wait while `busy` says that taints are being written, though not for ever.
    pub fn start(
        client: Client,
        instance: String,
        busy: watch::Receiver<bool>,
        limiter: Limiter,
        dropped: IntCounter,
    ) -> Self {
        let (queue, notices) = mpsc::channel(CAPACITY);
        let posting = tokio::spawn(post_all(
            client,
            instance,
            notices,
            busy,
            limiter,
            dropped.clone(),
        ));
        Self {
            queue,
            dropped,
            posting,
        }
    }

    /// Takes no more Events, and waits until those that it has are posted.
    pub async fn close(self) {
        drop(self.queue);
        // The task neither panics nor is cancelled, and if it did there would be nothing left to wait for.
        let _ = self.posting.await;
    }

    /// Queues an Event, or drops it when too many are waiting.
    pub fn send(&self, notice: Notice) {
        if self.queue.try_send(notice).is_err() {
            self.dropped.inc();
        }
    }
}

async fn post_all(
    client: Client,
    instance: String,
    notices: mpsc::Receiver<Notice>,
    busy: watch::Receiver<bool>,
    limiter: Limiter,
    dropped: IntCounter,
) {
    let (client, instance, busy, limiter) = (&client, instance.as_str(), &busy, &limiter);
    let notices = futures::stream::unfold(notices, |mut notices| async {
        Some((notices.recv().await?, notices))
    });
    notices
        .enumerate()
        .map(|(sequence, notice)| async move {
            let mut busy = busy.clone();
            // Taints come first; an Event that has waited long enough goes all the same.
            let _ = tokio::time::timeout(PATIENCE, busy.wait_for(|busy| !busy)).await;
            let event = notice.into_event(instance, sequence as u64);
            let made = limiter.turn_for_event().await;
            let created = tokio::time::timeout(DEADLINE, create(client, &event)).await;
            let result = created.map_or(Err(RequestError::TimedOut(DEADLINE)), |created| {
                created.map_err(RequestError::from)
            });
            limiter.answered(made, result.as_ref().err());
            result.map_err(|error| error.to_string())
        })
        .buffer_unordered(CONCURRENCY)
        .scan(None::<String>, |last, result| {
            // One line for each kind of trouble, not one for each Event.
            if let Err(problem) = result {
                dropped.inc();
                if last.as_ref() != Some(&problem) {
                    warn!(dropped = dropped.get(), "cannot post an event: {problem}");
                }
                *last = Some(problem);
            }
            std::future::ready(Some(()))
        })
        .for_each(|()| std::future::ready(()))
        .await;
}

/// Creates an Event; nobody needs it back.
async fn create(client: &Client, event: &Event) -> kube::Result<()> {
    let body = serde_json::to_vec(event).map_err(kube::Error::SerdeError)?;
    let request = Request::new(Event::url_path(&(), Some(NAMESPACE)));
    let request = request.create(&PostParams::default(), body);
    client::write::<IgnoredAny>(client, request)
        .await
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_at_a_character() {
        assert_eq!(truncated("short".into()), "short");
        let long = truncated("é".repeat(MAX_NOTE));
        assert!(
            long.len() <= MAX_NOTE && long.ends_with("é..."),
            "{}",
            long.len()
        );
    }
}
