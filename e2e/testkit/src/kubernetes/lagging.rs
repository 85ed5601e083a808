//! A second API server of a cluster that can lag behind etcd, one kind at a time.
//!
//! An API server watches etcd once per kind, and answers from what these watches have shown. A relay between this one and etcd
//! holds the watches back on demand. Everything else passes, so the server stays ready, writes, and reads fresh state where it
//! reads from etcd itself. The versions that it shows are stale, and nothing indicates that.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use futures::stream::unfold;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::kubernetes::cluster::Cluster;
use crate::kubernetes::kubeconfig;
use crate::kubernetes::relay::{Frozen, Kind};

const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// An API server behind a relay. It stops with its cluster; the relay stops when this is dropped.
#[derive(Debug)]
pub struct LaggingServer {
    url: String,
    admin: PathBuf,
    frozen: Arc<Frozen>,
    relaying: JoinHandle<()>,
}

impl LaggingServer {
    /// Starts one beside the cluster's own, without a lag.
    ///
    /// # Errors
    ///
    /// When no port can be listened on, or the server does not start. A cluster has one at most.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("listening for an API server")?;
        let port = listener.local_addr().context("asking for the port")?.port();
        let frozen = Arc::<Frozen>::default();
        let relaying = tokio::spawn(relay(listener, cluster.store(), frozen.clone()));
        let folder = cluster.folder().join("lagging");
        let (url, admin) = cluster.start_another_api_server(folder, port).await?;
        Ok(Self {
            url,
            admin,
            frozen,
            relaying,
        })
    }

    /// Hides changes of this kind from the server.
    pub fn freeze(&self, kind: Kind) {
        self.frozen.freeze(kind);
    }

    /// Delivers everything that the server has missed.
    pub fn thaw_all(&self) {
        self.frozen.thaw_all();
    }

    /// A new client of this server with all permissions.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.admin).await
    }

    /// Its URL, for [`Cluster::kubeconfig_by_way_of`].
    pub fn url(&self) -> String {
        self.url.clone()
    }
}

impl Drop for LaggingServer {
    fn drop(&mut self) {
        self.relaying.abort();
    }
}

/// Gives each connection its own connection to etcd.
async fn relay(listener: TcpListener, store: SocketAddr, frozen: Arc<Frozen>) {
    while let Ok((stream, _)) = listener.accept().await {
        let frozen = frozen.clone();
        tokio::spawn(async move {
            let to_store = TcpStream::connect(store).await?;
            let (sender, connection) =
                handshake(TokioExecutor::new(), TokioIo::new(to_store)).await?;
            tokio::spawn(connection);
            let service =
                service_fn(move |request| pass_on(sender.clone(), request, frozen.clone()));
            let serving = http2::Builder::new(TokioExecutor::new());
            serving
                .serve_connection(TokioIo::new(stream), service)
                .await?;
            anyhow::Ok(())
        });
    }
}

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// Passes on a request and its answer. Watch messages wait while their kind is frozen.
async fn pass_on(
    mut store: SendRequest<Body>,
    request: Request<Incoming>,
    frozen: Arc<Frozen>,
) -> Result<Response<Body>, Infallible> {
    let is_watch = request.uri().path() == WATCH;
    let kind = Arc::new(OnceLock::new());
    let asked = kind.clone();
    let request = request.map(|body| {
        let body = body.map_frame(move |frame| {
            if let Some(kind) = frame.data_ref().and_then(|message| watched_kind(message)) {
                // All watches of one stream have the same kind.
                asked.get_or_init(|| kind);
            }
            frame
        });
        BodyExt::boxed_unsync(body)
    });
    let Ok(answer) = store.send_request(request).await else {
        let mut unreachable = Response::new(Empty::new().map_err(|no| match no {}).boxed_unsync());
        *unreachable.status_mut() = StatusCode::BAD_GATEWAY;
        return Ok(unreachable);
    };
    if !is_watch {
        return Ok(answer.map(BodyExt::boxed_unsync));
    }
    Ok(answer.map(|body| {
        let frames = unfold((body, kind, frozen), async |(mut body, kind, frozen)| {
            let frame = body.frame().await?;
            if let Some(kind) = kind.get() {
                frozen.thawed(kind).await;
            }
            Some((frame, (body, kind, frozen)))
        });
        BodyExt::boxed_unsync(StreamBody::new(frames))
    }))
}

/// The plural name of the kind that a gRPC-framed `WatchRequest` asks for. After a byte and a length of four bytes comes the
/// field `create_request`, and in it first the field `key`, such as `/registry/pods/` or `/registry/example.com/widgets/`.
fn watched_kind(message: &[u8]) -> Option<String> {
    let create = first_field(message.get(5..)?)?;
    let key = str::from_utf8(first_field(create)?).ok()?;
    let mut parts = key.strip_prefix("/registry/")?.split('/');
    let plural = parts.find(|part| !part.contains('.'))?;
    Some(if plural == "minions" { "nodes" } else { plural }.to_owned())
}

/// The contents of field number 1, if it comes first and is length-delimited.
fn first_field(message: &[u8]) -> Option<&[u8]> {
    let (&[0x0a], mut rest) = message.split_first_chunk()? else {
        return None;
    };
    let mut length = 0;
    for shift in [0, 7, 14] {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return rest.get(..length);
        }
    }
    None
}
