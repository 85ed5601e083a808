//! The requests of a watch: pages of a list, and the lines of a stream. Each has a limit on how long it may take.
//!
//! The stream is read here and not by the client, which does not tell a watch that ended in good order from one that was
//! cut off.

use std::marker::PhantomData;
use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt};
use kube::Client;
use kube::api::{ListParams, ObjectList, Request, WatchParams};
use kube::core::{Status, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::Failure;

/// How many objects a page of a list may have.
const PAGE: u32 = 500;
/// How long a page may take.
const PAGE_LIMIT: Duration = Duration::from_secs(30);
/// How long the API server may take to begin a watch.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long a watch may go without a sign after the time at which it should have ended.
const GRACE: Duration = Duration::from_secs(5);

/// Where the objects of one kind are listed and watched.
#[derive(Clone)]
pub struct WatchSource {
    client: Client,
    /// The path of the resource.
    path: String,
    labels: Option<String>,
    fields: Option<String>,
}

impl WatchSource {
    /// All objects at this path.
    pub fn new(client: &Client, path: String) -> Self {
        Self {
            client: client.clone(),
            path,
            labels: None,
            fields: None,
        }
    }

    /// Only those with labels that this selects.
    pub fn labels(self, selector: String) -> Self {
        Self {
            labels: Some(selector),
            ..self
        }
    }

    /// Only those with fields that this selects.
    pub fn fields(self, selector: &str) -> Self {
        Self {
            fields: Some(selector.to_owned()),
            ..self
        }
    }

    /// A page of the list; the first one without a token.
    pub async fn list<K>(&self, token: Option<String>) -> Result<ObjectList<K>, Failure>
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

    /// Begins a watch after this version, which the API server is to end after this long.
    pub async fn watch<K>(
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
            shown: started,
            ends_by: started + length,
            kind: PhantomData,
        })
    }
}

/// The events of a watch.
pub struct Events<K, Lines> {
    lines: Lines,
    line: Vec<u8>,
    started: Instant,
    /// When something was shown last.
    shown: Instant,
    /// When the API server should have ended it.
    ends_by: Instant,
    kind: PhantomData<K>,
}

impl<K: DeserializeOwned, Lines: AsyncBufRead + Unpin> Events<K, Lines> {
    /// The next event; `None` where the API server has ended the watch in good order.
    pub async fn next(&mut self) -> Result<Option<WatchEvent<K>>, Failure> {
        self.line.clear();
        let give_up = self.ends_by.max(Instant::now()) + GRACE;
        let read = self.lines.read_until(b'\n', &mut self.line);
        match timeout_at(give_up, read).await {
            Err(_) => Err(Failure::Silent),
            Ok(Err(_)) => Err(Failure::BrokenOff),
            Ok(Ok(0)) => Ok(None),
            Ok(Ok(_)) if !self.line.ends_with(b"\n") => Err(Failure::BrokenOff),
            Ok(Ok(_)) => {
                self.shown = Instant::now();
                decode(&self.line).map(Some)
            }
        }
    }

    /// How long ago it was begun.
    pub fn ran(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long ago it showed something, or was begun.
    pub fn quiet(&self) -> Duration {
        self.shown.elapsed()
    }
}

fn decode<K: DeserializeOwned>(line: &[u8]) -> Result<WatchEvent<K>, Failure> {
    serde_json::from_slice(line).map_err(|error| {
        // An error that comes up late is sent without the wrapping of an event.
        match serde_json::from_slice::<Status>(line) {
            Ok(status) if status.code != 0 => Failure::Refused(status.boxed()),
            _ => Failure::NotUnderstood(error),
        }
    })
}
