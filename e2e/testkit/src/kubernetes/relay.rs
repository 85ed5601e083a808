//! A relay between a client and the API server that loses messages, as networks do: watches fall silent without closing, and
//! requests are never answered. Its own side is plain HTTP, so it can tell the kinds of requests apart.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use futures::stream::unfold;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use kube::config::AuthInfo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::kubeconfig;

/// A kind, by its plural name in paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(&'static str);

impl Kind {
    pub const NODES: Self = Self::named("nodes");
    pub const CSI_NODES: Self = Self::named("csinodes");
    pub const PODS: Self = Self::named("pods");
    pub const DAEMON_SETS: Self = Self::named("daemonsets");

    pub const fn named(plural: &'static str) -> Self {
        Self(plural)
    }
}

/// The kinds whose watches are held back.
#[derive(Debug, Default)]
pub(crate) struct Frozen(watch::Sender<BTreeSet<&'static str>>);

impl Frozen {
    pub(crate) fn freeze(&self, kind: Kind) {
        self.0.send_modify(|frozen| {
            frozen.insert(kind.0);
        });
    }

    pub(crate) fn thaw_all(&self) {
        self.0.send_modify(BTreeSet::clear);
    }

    /// Waits until this kind is no longer frozen.
    pub(crate) async fn thawed(&self, kind: &str) {
        let mut frozen = self.0.subscribe();
        // The sender lives as long as this.
        let _ = frozen.wait_for(|frozen| !frozen.contains(kind)).await;
    }
}

/// A request that a fault can hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A page of a list.
    List(Kind),
    /// A list limited to one object, sent to learn the current version.
    Version(Kind),
    Watch(Kind),
    Renewal,
}

/// What happens to a request instead of a normal answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is dropped.
    Swallowed,
    /// It is passed on, but its answer is dropped.
    Unanswered,
    /// It is refused with this status code.
    Refused(u16),
}

/// Relays until dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    /// Connects to the API server without credentials of its own; each request carries its own.
    client: Client,
    frozen: Frozen,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// How often the watches of each kind were lost. A watch from before the last loss hangs for ever.
    losses: BTreeMap<String, u64>,
    /// The fate of the next request of each sort.
    fates: BTreeMap<Sort, Fate>,
    /// The number of requests of each sort.
    counts: BTreeMap<Sort, usize>,
    /// The `Date` of all answers, in place of the API server's.
    date: Option<&'static str>,
}

impl Relay {
    /// Starts one for the cluster's API server.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("listening for a client")?;
        let address = listener.local_addr().context("asking for the port")?;
        let shared = Arc::new(Shared {
            client: client_without_credentials(cluster).await?,
            frozen: Frozen::default(),
            book: Mutex::default(),
        });
        let serving = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                let service = service_fn(move |request| {
                    let shared = shared.clone();
                    async move {
                        let mut answer = answer(shared.clone(), request).await?;
                        if let Some(date) = shared.book().date {
                            let date = HeaderValue::from_static(date);
                            answer.headers_mut().insert(DATE, date);
                        }
                        Ok::<_, Infallible>(answer)
                    }
                });
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Silences the watches of this kind without closing them, and blocks new ones. Lists and reads pass.
    pub fn freeze(&self, kind: Kind) {
        self.shared.frozen.freeze(kind);
    }

    /// Ends all freezes, and delivers what was held back.
    pub fn thaw_all(&self) {
        self.shared.frozen.thaw_all();
    }

    /// Silences the open watches of this kind without closing them. New ones work.
    pub fn lose_watches(&self, kind: Kind) {
        *self
            .shared
            .book()
            .losses
            .entry(kind.0.to_owned())
            .or_default() += 1;
    }

    /// Sets the fate of the next request of this sort.
    pub fn doom_next(&self, asked: Asked, fate: Fate) {
        self.shared.book().fates.insert(asked.sort(), fate);
    }

    /// Dates all answers so from now on, as if the API server's clock stood still; with `None`, as the API server dates them.
    pub fn date_answers(&self, date: Option<&'static str>) {
        self.shared.book().date = date;
    }

    /// The number of requests of this sort so far.
    pub fn count(&self, asked: Asked) -> usize {
        let book = self.shared.book();
        book.counts.get(&asked.sort()).copied().unwrap_or(0)
    }

    /// Its URL, for [`Cluster::kubeconfig_by_way_of`].
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn losses(&self, kind: &str) -> u64 {
        self.book().losses.get(kind).copied().unwrap_or(0)
    }
}

/// Tells requests apart: by what is asked, and by the kind's plural name.
type Sort = (&'static str, String);

impl Asked {
    fn sort(self) -> Sort {
        match self {
            Self::List(Kind(plural)) => ("list", plural.to_owned()),
            Self::Version(Kind(plural)) => ("version", plural.to_owned()),
            Self::Watch(Kind(plural)) => ("watch", plural.to_owned()),
            Self::Renewal => ("renewal", String::new()),
        }
    }
}

/// The sort of a request, if a fault can hit it.
fn sort_of(method: &Method, uri: &Uri) -> Option<Sort> {
    if method == Method::PUT && uri.path().contains("/leases/") {
        return Some(Asked::Renewal.sort());
    }
    let last = uri.path().rsplit('/').next()?.to_owned();
    let parameters: Vec<_> = uri.query().unwrap_or_default().split('&').collect();
    let asked = if parameters.contains(&"watch=true") {
        "watch"
    } else if parameters.contains(&"limit=1") {
        "version"
    } else {
        "list"
    };
    (method == Method::GET).then_some((asked, last))
}

/// A client of the cluster without credentials of its own.
async fn client_without_credentials(cluster: &Cluster) -> Result<Client> {
    let mut config = kubeconfig::config(&cluster.kubeconfig()).await?;
    config.auth_info = AuthInfo::default();
    config.default_retry = false;
    Client::try_from(config).context("making a client")
}

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// Passes on one request and its answer, unless it meets a fate.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let sort = sort_of(request.method(), request.uri());
    let mut fate = None;
    if let Some(sort) = &sort {
        let mut book = shared.book();
        *book.counts.entry(sort.clone()).or_default() += 1;
        fate = book.fates.remove(sort);
    }
    match fate {
        Some(Fate::Swallowed) => return pending().await,
        Some(Fate::Unanswered) => {
            let _unread = pass_on(&shared.client, request).await;
            return pending().await;
        }
        Some(Fate::Refused(code)) => return Ok(refusal(code, "refused by the relay")),
        None => {}
    }
    let Some(("watch", kind)) = sort else {
        let answer = pass_on(&shared.client, request).await;
        return Ok(answer.map_or_else(
            |error| unreachable(&error),
            |answer| answer.map(BodyExt::boxed_unsync),
        ));
    };
    shared.frozen.thawed(&kind).await;
    let losses = shared.losses(&kind);
    let answer = match pass_on(&shared.client, request).await {
        Ok(answer) => answer,
        Err(error) => return Ok(unreachable(&error)),
    };
    Ok(answer.map(|body| {
        let frames = unfold(
            (body, shared, kind),
            move |(mut body, shared, kind)| async move {
                let frame = body.frame().await;
                shared.frozen.thawed(&kind).await;
                if shared.losses(&kind) > losses {
                    pending::<()>().await;
                }
                frame.map(|frame| (frame, (body, shared, kind)))
            },
        );
        BodyExt::boxed_unsync(StreamBody::new(frames))
    }))
}

async fn pass_on(client: &Client, request: Request<Incoming>) -> Result<Response<Body>> {
    let (mut parts, body) = request.into_parts();
    for header in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    let path = parts.uri.path_and_query().context("a path")?.as_str();
    parts.uri = path.parse()?;
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(parts, Body::from(body));
    let mut answer = client.send(request).await?;
    for header in [CONNECTION, TRANSFER_ENCODING] {
        answer.headers_mut().remove(header);
    }
    Ok(answer)
}

fn unreachable(error: &anyhow::Error) -> Answer {
    refusal(502, &format!("{error:#}"))
}

/// An error answer in the API server's format.
fn refusal(code: u16, message: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code});
    let body = Full::new(Bytes::from(status.to_string()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response
}
