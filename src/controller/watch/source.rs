//! A watch's requests: pages of a list, and the lines of a stream, each with a time limit.
//!
//! The stream is read here, because the client does not tell a watch that ended normally from one that was cut off.

use std::marker::PhantomData;
use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt};
use kube::Client;
use kube::api::{ListParams, ObjectList, Request, WatchParams};
use kube::core::{Status, WatchEvent};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::Failure;
use crate::object::{self, Version};

/// The most objects in one page of a list.
const PAGE: u32 = 500;
/// The timeout of one page.
const PAGE_LIMIT: Duration = Duration::from_secs(30);
/// How long the API server may take to start a watch.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long a watch may stay silent after the time at which it should have ended.
const GRACE: Duration = Duration::from_secs(5);

/// Where objects of one kind are listed and watched.
#[derive(Clone)]
pub(super) struct WatchSource {
    client: Client,
    /// The path of the resource.
    path: String,
    labels: Option<String>,
    fields: Option<String>,
}

impl WatchSource {
    /// The objects at this path with labels and fields that match.
    pub(super) fn new(
        client: &Client,
        path: String,
        labels: Option<String>,
        fields: Option<String>,
    ) -> Self {
        Self {
            client: client.clone(),
            path,
            labels,
            fields,
        }
    }

    /// One page of the list; the first one if `token` is `None`.
    pub(super) async fn list<K>(&self, token: Option<String>) -> Result<ObjectList<K>, Failure>
    where
        K: Clone + DeserializeOwned,
    {
        let params = ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            limit: Some(PAGE),
            continue_token: token,
            ..ListParams::default()
        };
        let request = Request::new(&self.path).list(&params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = timeout(PAGE_LIMIT, self.client.request(request)).await;
        Ok(answer.map_err(|_| Failure::NoAnswer(PAGE_LIMIT))??)
    }

    /// The cluster's current version: the smallest possible consistent read. Before a healthy API server answers, it brings its
    /// own watch cache up to that version.
    pub(super) async fn version(&self) -> Result<Version, Failure> {
        let params = ListParams {
            limit: Some(1),
            ..ListParams::default()
        };
        let request = Request::new(&self.path).list_metadata(&params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = timeout(START_LIMIT, self.client.request(request)).await;
        let list: ObjectList<IgnoredAny> = answer.map_err(|_| Failure::NoAnswer(START_LIMIT))??;
        match object::version(list.metadata.resource_version.as_deref()) {
            0 => Err(Failure::NoVersion),
            version => Ok(version),
        }
    }

    /// Starts a watch after this version. The API server should end it after `length`.
    pub(super) async fn watch<K>(
        &self,
        version: &str,
        length: Duration,
    ) -> Result<Events<K, impl AsyncBufRead + Unpin + use<K>>, Failure> {
        let started = Instant::now();
        let params = WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: u32::try_from(length.as_secs()).ok(),
            ..WatchParams::default()
        };
        let request = Request::new(&self.path).watch(&params, version);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let lines = timeout(START_LIMIT, self.client.request_stream(request)).await;
        Ok(Events {
            lines: Box::pin(lines.map_err(|_| Failure::NoAnswer(START_LIMIT))??),
            line: Vec::new(),
            started,
            ends_by: started + length,
            kind: PhantomData,
        })
    }
}

pub(super) struct Events<K, Lines> {
    lines: Lines,
    /// The part of the next line that has been read.
    line: Vec<u8>,
    started: Instant,
    /// When the API server should have ended the watch.
    ends_by: Instant,
    kind: PhantomData<K>,
}

impl<K: DeserializeOwned, Lines: AsyncBufRead + Unpin> Events<K, Lines> {
    /// The next event; `None` if the API server ended the watch normally. Cancel safe: a caller that stops waiting and calls
    /// again loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<WatchEvent<K>>, Failure> {
        let give_up = self.ends_by.max(Instant::now()) + GRACE;
        let read = self.lines.read_until(b'\n', &mut self.line);
        match timeout_at(give_up, read).await {
            Err(_) => Err(Failure::Silent),
            Ok(Err(_)) => Err(Failure::BrokenOff),
            Ok(Ok(_)) if self.line.is_empty() => Ok(None),
            Ok(Ok(_)) if !self.line.ends_with(b"\n") => Err(Failure::BrokenOff),
            Ok(Ok(_)) => {
                let event = decode(&self.line);
                self.line.clear();
                event.map(Some)
            }
        }
    }

    /// How long ago the watch started.
    pub(super) fn ran(&self) -> Duration {
        self.started.elapsed()
    }
}

fn decode<K: DeserializeOwned>(line: &[u8]) -> Result<WatchEvent<K>, Failure> {
    serde_json::from_slice(line).map_err(|error| {
        // A late error arrives without the wrapping of an event.
        match serde_json::from_slice::<Status>(line) {
            Ok(status) if status.code != 0 => Failure::Refused(status.boxed()),
            _ => Failure::NotUnderstood(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, TryStreamExt, stream};
    use kube::core::PartialObjectMeta;

    use super::*;

    #[tokio::test]
    async fn an_event_in_pieces_survives_a_cancelled_read() {
        let chunks = [
            r#"{"type":"BOOKMARK","object":{"apiVersion":"v1","#,
            r#""kind":"Node","metadata":{"resourceVersion":"7"}}}"#,
            "\n",
        ];
        let chunks = stream::iter(chunks).then(async |chunk| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, std::io::Error>(chunk)
        });
        let now = Instant::now();
        let mut events = Events::<PartialObjectMeta, _> {
            lines: Box::pin(chunks.into_async_read()),
            line: Vec::new(),
            started: now,
            ends_by: now + Duration::from_secs(60),
            kind: PhantomData,
        };
        let event = loop {
            let moment = Duration::from_millis(5);
            if let Ok(event) = tokio::time::timeout(moment, events.next()).await {
                break event;
            }
        };
        let version = match event {
            Ok(Some(WatchEvent::Bookmark(bookmark))) => bookmark.metadata.resource_version,
            _ => String::new(),
        };
        assert_eq!(version, "7");
        assert!(matches!(events.next().await, Ok(None)), "its end");
    }
}
