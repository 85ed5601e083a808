//! Requests and watches of the real API server.

use std::pin::Pin;

use anyhow::{Context, Result, ensure};
use futures::io::AsyncBufRead;
use futures::{AsyncBufReadExt, StreamExt};
use http::Request as HttpRequest;
use kube::Client;
use kube::client::Body;
use nodegate_simulation::{Key, Kind, Part, Patch, Request};
use serde_json::{Value, json};
use testkit::nodegate::Cluster;

use crate::outcome::Outcome;

pub(crate) struct Real {
    client: Client,
}

pub(crate) struct Watch(futures::io::Lines<Pin<Box<dyn AsyncBufRead + Send>>>);

impl Real {
    pub(crate) async fn new(cluster: &Cluster) -> Result<Self> {
        let client = cluster.client().await?;
        Ok(Self { client })
    }

    pub(crate) async fn answer(&self, request: &Request) -> Result<Outcome> {
        let (code, body) = match request {
            Request::Create { key, object } => {
                let object = named(key, object);
                let path = collection(key.kind, Some(&key.namespace));
                self.send("POST", &path, "application/json", Some(&object))
                    .await?
            }
            Request::Patch { key, part, patch } => {
                let (content, body) = match patch {
                    Patch::Json(patch) => ("json-patch", serde_json::to_value(patch)?),
                    Patch::Merge(patch) => ("merge-patch", patch.clone()),
                    Patch::Strategic(patch) => ("strategic-merge-patch", patch.clone()),
                };
                let content = format!("application/{content}+json");
                self.send("PATCH", &part_path(key, *part), &content, Some(&body))
                    .await?
            }
            Request::Bind { key, node } => {
                let body = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": key.name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let path = format!("{}/binding", path(key));
                self.send("POST", &path, "application/json", Some(&body))
                    .await?
            }
            Request::Delete {
                key,
                preconditions,
                grace,
            } => {
                let options = json!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "gracePeriodSeconds": grace,
                    "preconditions": {
                        "uid": preconditions.uid,
                        "resourceVersion": preconditions.resource_version,
                    },
                });
                self.send("DELETE", &path(key), "application/json", Some(&options))
                    .await?
            }
        };
        Ok(Outcome::of_real(code, body))
    }

    pub(crate) async fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<Vec<Value>> {
        let path = collection(kind, namespace);
        let path = format!("{path}?{}", selection(labels, fields));
        let (code, mut list) = self.send("GET", &path, "", None).await?;
        ensure!(code == 200, "listing {path}: {list}");
        let items = list["items"].as_array_mut();
        Ok(items.map(std::mem::take).unwrap_or_default())
    }

    /// The current revision of lists of this kind.
    pub(crate) async fn revision(&self, kind: Kind) -> Result<String> {
        let path = format!("{}?limit=1", collection(kind, None));
        let (_, list) = self.send("GET", &path, "", None).await?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        Ok(revision.context("a list without a revision")?.to_owned())
    }

    /// Watches from this revision on.
    pub(crate) async fn watch(
        &self,
        kind: Kind,
        labels: &str,
        fields: &str,
        since: &str,
        seconds: u32,
    ) -> Result<Watch> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={since}&{}",
            collection(kind, None),
            selection(labels, fields)
        );
        let request = HttpRequest::get(path).body(Vec::new())?;
        let lines = self.client.request_stream(request).await?;
        let lines: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(lines);
        Ok(Watch(lines.lines()))
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let mut request = HttpRequest::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let answer = self.client.send(request.body(Body::from(body))?).await?;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await?;
        // A path that does not exist is answered in plain text.
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok((code, body))
    }
}

impl Watch {
    /// The next event; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>> {
        match self.0.next().await {
            Some(line) => Ok(Some(serde_json::from_str(&line?)?)),
            None => Ok(None),
        }
    }

    /// All events until the watch ends.
    pub(crate) async fn rest(mut self) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }
}

fn named(key: &Key, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(key.kind.api_version());
    object["kind"] = json!(key.kind.name());
    object["metadata"]["name"] = json!(key.name);
    object
}

fn collection(kind: Kind, namespace: Option<&str>) -> String {
    let version = kind.api_version();
    let root = if version.contains('/') { "apis" } else { "api" };
    match namespace.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{}", kind.plural()),
        None => format!("/{root}/{version}/{}", kind.plural()),
    }
}

fn path(key: &Key) -> String {
    format!(
        "{}/{}",
        collection(key.kind, Some(&key.namespace)),
        key.name
    )
}

fn part_path(key: &Key, part: Part) -> String {
    match part {
        Part::Main => path(key),
        Part::Status => format!("{}/status", path(key)),
    }
}

fn selection(labels: &str, fields: &str) -> String {
    let encode = |text: &str| {
        text.bytes().fold(String::new(), |encoded, byte| {
            encoded + &format!("%{byte:02X}")
        })
    };
    format!(
        "labelSelector={}&fieldSelector={}",
        encode(labels),
        encode(fields)
    )
}
