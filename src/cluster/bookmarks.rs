//! A client around the client: it shows watches' bookmarks, which `kube::runtime::watcher` swallows, and bounds requests' times.
//!
//! - A bookmark becomes a change, which comes out of the watcher in order, as an object without a name. The type of each event
//!   comes first, in whatever order a proxy has put the keys: what decodes the objects needs to know it.
//! - A watch that the API server accepts first shows the version from which it was asked to begin, in the same way: nowhere else
//!   the version of the list before it shows.
//! - Where the API server cannot go on from that version, the watch begins with an error of code 410, so that the watcher lists
//!   again: after a 410 as the answer itself it would ask for the same version for ever.
//! - A refusal always has a reason, and says when to retry also where only a header does.
//! - A page of a list that would have more than some bytes is asked for in smaller ones, since any object may be large.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, service_fn};

use super::client;

pub fn client(config: Config) -> Result<Client, client::Error> {
    let namespace = config.default_namespace.clone();
    let client = client::connect(config)?;
    let fit = Arc::new(AtomicU32::new(u32::MAX));
    let visible = service_fn(move |request: Request<Body>| {
        let (client, watch) = (client.clone(), WatchRequest::of(request.uri()));
        let (limits, fit) = (limits(watch.as_ref()), fit.clone());
        async move {
            match parameter(request.uri(), "limit").and_then(|limit| limit.parse().ok()) {
                Some(limit) if watch.is_none() && limit > 1 => {
                    page(&client, request, limit, &fit).await
                }
                _ => answer(watch, limits, client.send(request)).await,
            }
        }
    });
    Ok(Client::new(visible, namespace))
}

/// What events begin with as the API server writes them...
const EVENT: &[u8] = br#"{"type":""#;
/// ...and, of these, bookmarks alone.
const BOOKMARK: &[u8] = br#"{"type":"B"#;

#[derive(Debug, thiserror::Error)]
#[error("it did not answer within {} s", .0.as_secs())]
pub(super) struct NoAnswer(Duration);

/// How long the API server may take to start a watch.
const START: Duration = Duration::from_secs(10);
/// How long any other request may take, such as one page of a list.
const REQUEST: Duration = Duration::from_secs(30);
/// How long a watch may go on after the time at which the API server should have ended it.
const GRACE: Duration = Duration::from_secs(5);

/// The most bytes of a page of more than one object. 500 nodes of 8 KiB fit.
const PAGE: usize = 4 << 20;

/// The page that is asked for, or a shorter one whose bytes fit: as many objects as `fit` lately. Its token leads to the rest.
async fn page(
    client: &Client,
    asked: Request<Body>,
    most: u32,
    fit: &AtomicU32,
) -> Result<Response<StreamBody<Frames>>, BoxError> {
    let (asked, _) = asked.into_parts();
    let whole = asked.uri.to_string();
    let mut limit = fit.load(Ordering::Relaxed).min(most);
    loop {
        let uri = whole.replace(&format!("limit={most}"), &format!("limit={limit}"));
        let mut request = Request::get(uri).body(Body::empty())?;
        request.headers_mut().clone_from(&asked.headers);
        let answer = answer(None, limits(None), client.send(request)).await?;
        let (head, mut body) = answer.into_parts();
        let mut page = Vec::new();
        while let Some(frame) = body.frame().await
            && (page.len() <= PAGE || limit == 1)
        {
            page.extend(frame?.into_data().unwrap_or_default());
        }
        if page.len() <= PAGE || limit == 1 {
            // What comes next may be short again.
            let is_short = page.len() < PAGE / 4;
            fit.store(limit << u32::from(is_short), Ordering::Relaxed);
            return Ok(Response::from_parts(head, StreamBody::new(one(page))));
        }
        limit = limit.div_ceil(8);
    }
}

/// How long the answer to a request may take to begin, and to end.
fn limits(watch: Option<&WatchRequest>) -> (Duration, Duration) {
    match watch {
        Some(watch) => (START, watch.length + GRACE),
        None => (REQUEST, REQUEST),
    }
}

/// The API server's answer in time, and with visible bookmarks if it is one to this watch.
async fn answer(
    watch: Option<WatchRequest>,
    (start, whole): (Duration, Duration),
    answer: impl Future<Output = kube::Result<Response<Body>>>,
) -> Result<Response<StreamBody<Frames>>, BoxError> {
    let asked = Instant::now();
    let answer = timeout_at(asked + start, answer).await;
    let (mut head, rest) = answer.map_err(|_| NoAnswer(start))??.into_parts();
    let rest = bound(rest, asked + whole, whole);
    let frames = match watch {
        Some(watch) if head.status.is_success() => {
            let mut lines = Lines::default();
            let rest =
                rest.map_ok(move |frame| frame.map_data(|data| Bytes::from(lines.take(&data))));
            one(watch.progress()).chain(rest).boxed()
        }
        // The version is of no use: too old (410), another cluster's (400), or its resource is gone and may return changed (404).
        Some(_) if matches!(head.status.as_u16(), 400 | 404 | 410) => {
            head.status = StatusCode::OK;
            one(EXPIRED)
        }
        _ if head.status.is_success() => rest,
        _ => {
            let said = BodyExt::collect(StreamBody::new(rest)).await?.to_bytes();
            one(serde_json::to_vec(&client::refusal(&head, &said))?)
        }
    };
    Ok(Response::from_parts(head, StreamBody::new(frames)))
}

/// An event that has the watcher list again.
const EXPIRED: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","#,
    r#""message":"the version is not known any more","reason":"Expired","code":410}}"#,
    "\n"
);

fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let parameters = uri.query().unwrap_or_default().split('&');
    let mut pairs = parameters.filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[derive(Debug, PartialEq, Eq)]
struct WatchRequest {
    version: String,
    length: Duration,
}

impl WatchRequest {
    fn of(uri: &Uri) -> Option<Self> {
        let value = |name| parameter(uri, name);
        value("watch").filter(|watch| *watch == "true")?;
        let length = value("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
        Some(Self {
            version: value("resourceVersion").unwrap_or_default().to_owned(),
            length: Duration::from_secs(length.unwrap_or_default()),
        })
    }

    fn progress(&self) -> Bytes {
        let version = &self.version;
        format!(
            r#"{{"type":"MODIFIED","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}{}"#,
            '\n'
        )
        .into()
    }
}

/// The lines of a watch, wherever chunks are cut: holds an incomplete one. What is left at the end comes again in the next watch.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The lines that this chunk completes, as the watcher takes them.
    fn take(&mut self, chunk: &[u8]) -> Vec<u8> {
        let end = chunk.iter().rposition(|byte| *byte == b'\n');
        let end = end.map_or(0, |end| self.0.len() + end + 1);
        self.0.extend_from_slice(chunk);
        let rest = self.0.split_off(end);
        let lines = std::mem::replace(&mut self.0, rest);
        let lines = lines.split_inclusive(|byte| *byte == b'\n');
        lines.map(normal).collect::<Vec<_>>().concat()
    }
}

/// An event in any form.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// A line as the watcher takes it: the type comes first, and a bookmark is a change. One that is no event stays as it is.
fn normal(line: &[u8]) -> Cow<'_, [u8]> {
    if line.starts_with(EVENT) && !line.starts_with(BOOKMARK) {
        return line.into();
    }
    let Ok(Event { kind, object }) = serde_json::from_slice(line) else {
        return line.into();
    };
    let kind = if kind == "BOOKMARK" { "MODIFIED" } else { kind };
    let event = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    event.into_bytes().into()
}

type Frames = BoxStream<'static, Result<Frame<Bytes>, BoxError>>;

fn one(data: impl Into<Bytes>) -> Frames {
    stream::iter([Ok(Frame::data(data.into()))]).boxed()
}

/// The frames of a body, which has to be complete in time.
fn bound(body: Body, ends: Instant, limit: Duration) -> Frames {
    // A client wraps the errors of a body. This one's wraps them again.
    let body = body.map_err(|error| match error {
        kube::Error::Service(error) => error,
        error => error.into(),
    });
    let frames = stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match timeout_at(ends, body.frame()).await {
            Ok(frame) => Some((frame?, Some(body))),
            Err(_) => Some((Err(NoAnswer(limit).into()), None)),
        }
    });
    frames.boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::header::RETRY_AFTER;
    use kube::core::{Status, WatchEvent};
    use serde_json::json;

    use super::*;
    use nodegate_core::object::{Node, Watched};

    const LINES: &str = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"kind":"{\"type\":\"BOOKMARK\"}"}}"#,
        "\n\n{\n",
        r#"{"type":"BOOKMARK","object":{}}"#,
        "\n",
        r#"{"type":"DELETED","object":{"type":"BOOKMARK"}}"#,
        "\n",
    );

    fn expected() -> String {
        let bookmark = r#"{"type":"BOOKMARK","#;
        let line = |line: &str| match line.strip_prefix(bookmark) {
            Some(rest) => format!("{}{rest}\n", r#"{"type":"MODIFIED","#),
            None => format!("{line}\n"),
        };
        LINES.lines().map(line).collect()
    }

    /// What the watcher gets of these lines, in chunks of this size.
    fn taken(lines: &str, size: usize) -> String {
        let mut held = Lines::default();
        let chunks = lines.as_bytes().chunks(size);
        let taken: Vec<u8> = chunks.flat_map(|chunk| held.take(chunk)).collect();
        String::from_utf8(taken).unwrap()
    }

    #[test]
    fn bookmarks_become_changes_wherever_the_stream_is_cut() {
        for size in 1..=LINES.len() {
            assert_eq!(taken(LINES, size), expected(), "{size}");
        }
    }

    #[test]
    fn an_event_is_read_in_whatever_order_a_proxy_has_put_its_keys() {
        let object = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
        let bookmark = r#"{"metadata":{"resourceVersion":"8"}}"#;
        for (kind, object, is_named) in [("ADDED", object, true), ("BOOKMARK", bookmark, false)] {
            for line in [
                format!(r#"{{"type":"{kind}","object":{object}}}"#),
                format!(r#"{{"object":{object},"type":"{kind}"}}"#),
                format!(r#"{{ "type": "{kind}", "object": {object} }}"#),
            ] {
                let event = serde_json::from_str(&taken(&format!("{line}\n"), 10)).unwrap();
                let (WatchEvent::<Watched<Node>>::Added(node) | WatchEvent::Modified(node)) = event
                else {
                    panic!("{line}: {event:?}");
                };
                assert_eq!(node.value().is_some(), is_named, "{line}");
            }
        }
    }

    /// What comes out where the API server answers so, with a header that says when to retry.
    async fn answered(status: u16, body: &'static str) -> (u16, String) {
        let answer = Response::builder().status(status).header(RETRY_AFTER, "5");
        let answer = answer.body(Body::from(body.as_bytes().to_vec())).unwrap();
        let watch = "/api/v1/nodes?watch=true&timeoutSeconds=14&resourceVersion=7";
        let watch = WatchRequest::of(&Uri::from_static(watch));
        let limits = limits(watch.as_ref());
        let answer = super::answer(watch, limits, async { Ok(answer) });
        let (head, body) = answer.await.unwrap().into_parts();
        let body = BodyExt::collect(body).await.unwrap().to_bytes();
        (
            head.status.as_u16(),
            String::from_utf8(body.to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn a_watch_begins_with_its_version_or_with_what_has_it_list_again() {
        let begins =
            "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n";
        let whole = format!("{begins}{}", expected());
        assert_eq!(answered(200, LINES).await, (200, whole));
        for status in [400, 404, 410] {
            let expired = (200, EXPIRED.to_owned());
            assert_eq!(answered(status, "gone").await, expired, "{status}");
        }
    }

    #[tokio::test]
    async fn a_refusal_has_a_reason_and_says_when_to_retry() {
        let denied = json!({"message": "no", "code": 403}).to_string().leak();
        for (status, body, message) in [
            (403, &*denied, "no"),
            (429, "too many", "too many"),
            (500, "", "500 Internal Server Error"),
            (503, r#"{"error": "down"}"#, r#"{"error": "down"}"#),
        ] {
            let (code, said) = answered(status, body).await;
            let said: Status = serde_json::from_str(&said).unwrap();
            assert_eq!((code, said.code, &*said.message), (status, status, message));
            let seconds = said.details.map(|it| it.retry_after_seconds);
            assert_eq!(seconds, Some(5), "{status}");
        }
    }

    #[tokio::test]
    async fn what_is_never_answered_is_an_error() {
        let [short, long] = [20, 100].map(Duration::from_millis);
        let watch = "/api/v1/nodes?watch=true&timeoutSeconds=7";
        let list = "/api/v1/nodes?limit=500";
        for (path, starts, begins, ends) in [
            (watch, false, START, Duration::from_secs(7) + GRACE),
            (watch, true, START, Duration::from_secs(7) + GRACE),
            (list, false, REQUEST, REQUEST),
            (list, true, REQUEST, REQUEST),
        ] {
            let server = service_fn(move |_: Request<Body>| async move {
                if !starts {
                    std::future::pending::<()>().await;
                }
                let silent: Frames = stream::pending().boxed();
                Ok::<_, BoxError>(Response::new(StreamBody::new(silent)))
            });
            let server = Client::new(server, "default");
            let started = Instant::now();
            let request = Request::get(path).body(Body::empty()).unwrap();
            let watch = WatchRequest::of(request.uri());
            assert_eq!(limits(watch.as_ref()), (begins, ends), "{path}");
            let answer = answer(watch, (short, long), server.send(request));
            let error = match answer.await {
                Ok(answer) => BodyExt::collect(answer.into_body()).await.err().unwrap(),
                Err(error) => error,
            };
            assert!(error.is::<NoAnswer>(), "{path}: {error}");
            let limit = if starts { long } else { short };
            assert!(started.elapsed() >= limit, "{path}");
        }
    }

    #[tokio::test]
    async fn an_error_of_the_connection_comes_as_it_is() {
        let server = service_fn(|_: Request<Body>| async {
            let broken: Frames = stream::iter([Err("broken".into())]).boxed();
            Ok::<_, BoxError>(Response::new(StreamBody::new(broken)))
        });
        let server = Client::new(server, "default");
        let request = Request::get("/api/v1/nodes").body(Body::empty()).unwrap();
        let answer = answer(None, limits(None), server.send(request));
        let error = BodyExt::collect(answer.await.unwrap().into_body())
            .await
            .err();
        assert_eq!(error.unwrap().to_string(), "broken");
    }

    #[tokio::test]
    async fn a_page_of_large_objects_is_asked_for_in_shorter_ones_until_they_are_short_again() {
        let fit = AtomicU32::new(u32::MAX);
        // How large each object is, which limits are asked for, and how long the page is at last.
        for (bytes, expected) in [
            (PAGE / 500, vec![500]),
            (PAGE / 3, vec![500, 63, 8, 1]),
            (PAGE / 3, vec![1]),
            (10, vec![1]),
            (10, vec![2]),
            (PAGE + 1, vec![4, 1]),
        ] {
            let asked = Arc::new(Mutex::new(Vec::new()));
            let uri = "/api/v1/pods?&limit=500&continue=limit%3D500";
            let request = Request::get(uri).body(Body::empty()).unwrap();
            let noted = asked.clone();
            let server = service_fn(move |request: Request<Body>| {
                let limit: usize = parameter(request.uri(), "limit").unwrap().parse().unwrap();
                noted.lock().unwrap().push(limit);
                let page = StreamBody::new(one(vec![0; bytes * limit]));
                async move { Ok::<_, BoxError>(Response::new(page)) }
            });
            let server = Client::new(server, "default");
            let answer = page(&server, request, 500, &fit).await.unwrap();
            let body = BodyExt::collect(answer.into_body()).await.unwrap();
            let asked = asked.lock().unwrap().clone();
            assert_eq!(
                (&asked, body.to_bytes().len()),
                (&expected, bytes * asked[asked.len() - 1])
            );
        }
    }
}
