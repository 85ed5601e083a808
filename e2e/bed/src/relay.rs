//! A relay between a client and the API server that loses things, as networks do: watches fall silent without being
//! closed, requests are taken and never answered. It reads what goes through it (its own side is plain HTTP), so that it can
//! tell one kind's watch from another's.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use futures::stream::unfold;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// What is listed and watched, by the name that a path has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(&'static str);

impl Kind {
    /// Nodes.
    pub const NODES: Self = Self::named("nodes");
    /// `CSINode`s.
    pub const CSI_NODES: Self = Self::named("csinodes");
    /// Pods.
    pub const PODS: Self = Self::named("pods");
    /// `DaemonSet`s.
    pub const DAEMON_SETS: Self = Self::named("daemonsets");

    /// The kind with this plural name.
    #[must_use]
    pub const fn named(plural: &'static str) -> Self {
        Self(plural)
    }
}

/// The kinds of which no watch shows anything.
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

    /// Waits until watches of this kind are let through.
    pub(crate) async fn thawed(&self, kind: &str) {
        let mut frozen = self.0.subscribe();
        // The sender lives as long as this does.
        let _ = frozen.wait_for(|frozen| !frozen.contains(kind)).await;
    }
}

/// A request that something may happen to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A page of a list.
    List(Kind),
    /// A list of one object at most, made for its version.
    Version(Kind),
    /// The start of a watch.
    Watch(Kind),
    /// The renewal of a lease.
    Renewal,
}

/// What becomes of a request, if it is not passed on and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is never answered.
    Swallowed,
    /// It is passed on, and its answer never comes back.
    Unanswered,
    /// It is refused with this status code.
    Refused(u16),
}

/// Relays until it is dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    /// Goes straight to the API server, and leaves it to the request to say who asks.
    client: Client,
    frozen: Frozen,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// How often the watches of a kind have been lost. One that is older hangs for ever.
    losses: BTreeMap<String, u64>,
    /// What becomes of the next request of its sort.
    fates: BTreeMap<Sort, Fate>,
    /// How many requests of each sort have come.
    counts: BTreeMap<Sort, usize>,
}

impl Relay {
    /// Starts one to the cluster's API server.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("listening for a client")?;
        let address = listener.local_addr().context("asking for the port")?;
        let shared = Arc::new(Shared {
            client: client_of_nobody(cluster).await?,
            frozen: Frozen::default(),
            book: Mutex::default(),
        });
        let serving = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                let service = service_fn(move |request| answer(shared.clone(), request));
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

    /// From now on no watch of this kind shows anything or is closed, and new ones are not begun. Lists and reads go
    /// through.
    pub fn freeze(&self, kind: Kind) {
        self.shared.frozen.freeze(kind);
    }

    /// Lets everything through again that has been frozen: also what has been held back so far.
    pub fn thaw_all(&self) {
        self.shared.frozen.thaw_all();
    }

    /// The watches of this kind that are open now show nothing more and are not closed. New ones are as usual.
    pub fn lose_watches(&self, kind: Kind) {
        *self
            .shared
            .book()
            .losses
            .entry(kind.0.to_owned())
            .or_default() += 1;
    }

    /// The next request of this sort meets this fate.
    pub fn doom_next(&self, asked: Asked, fate: Fate) {
        self.shared.book().fates.insert(asked.into(), fate);
    }

    /// How many requests of this sort have come so far.
    #[must_use]
    pub fn count(&self, asked: Asked) -> usize {
        self.shared
            .book()
            .counts
            .get(&asked.into())
            .copied()
            .unwrap_or(0)
    }

    /// A kubeconfig of a service account that leads through here.
    ///
    /// # Errors
    ///
    /// When the API server makes no token.
    pub async fn kubeconfig(
        &self,
        cluster: &Cluster,
        namespace: &str,
        service_account: &str,
    ) -> Result<PathBuf> {
        let url = format!("http://{}", self.address);
        cluster
            .kubeconfig_by_way_of(url, namespace, service_account)
            .await
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

/// A request as it came, to be told from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    List(String),
    Version(String),
    Watch(String),
    Renewal,
}

impl From<Asked> for Sort {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::List(Kind(plural)) => Self::List(plural.to_owned()),
            Asked::Version(Kind(plural)) => Self::Version(plural.to_owned()),
            Asked::Watch(Kind(plural)) => Self::Watch(plural.to_owned()),
            Asked::Renewal => Self::Renewal,
        }
    }
}

impl Sort {
    /// What sort a request is of, if it is one that something may happen to.
    fn of(method: &Method, uri: &Uri) -> Option<Self> {
        if method == Method::PUT && uri.path().contains("/leases/") {
            return Some(Self::Renewal);
        }
        let last = uri.path().rsplit('/').next()?.to_owned();
        let parameters: Vec<_> = uri.query().unwrap_or_default().split('&').collect();
        (method == Method::GET).then(|| {
            if parameters.contains(&"watch=true") {
                Self::Watch(last)
            } else if parameters.contains(&"limit=1") {
                Self::Version(last)
            } else {
                Self::List(last)
            }
        })
    }
}

/// A client of the cluster that says nothing of its own about who asks.
async fn client_of_nobody(cluster: &Cluster) -> Result<Client> {
    let kubeconfig =
        Kubeconfig::read_from(cluster.kubeconfig()).context("reading the kubeconfig")?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("understanding the kubeconfig")?;
    config.auth_info = AuthInfo::default();
    config.default_retry = false;
    Client::try_from(config).context("making a client")
}

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// Passes on one request and its answer, unless something else is to become of it.
async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let sort = Sort::of(request.method(), request.uri());
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
    let Some(Sort::Watch(kind)) = sort else {
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

/// An answer as the API server gives where it refuses something.
fn refusal(code: u16, message: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code});
    let body = Full::new(Bytes::from(status.to_string()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response
}
