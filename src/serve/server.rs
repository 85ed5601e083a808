//! A server that bounds connections and their time, over TLS or not, and hands requests to the router.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::serve::Listener;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::permits::Permits;
use super::tls::{Certificates, ClientAuthorities};

/// How long a client may take for a TLS handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may take after its handshake: longer than any wait inside a handler, so that a client has some seconds
/// to take the answer.
const LIFETIME: Duration = Duration::from_secs(30);
/// The most bytes of a request's head: a bearer token has a few thousand.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
/// The least time between two log lines that a server is full.
const SILENCE: Duration = Duration::from_secs(60);

/// The address that a request comes from, and whether the request has arrived: its handler says so. Stored in the request's
/// extensions.
#[derive(Debug, Clone)]
pub(crate) struct Peer(pub(crate) IpAddr, pub(crate) Arc<AtomicBool>);

pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// The most connections at a time. One address may have a quarter of them, and half of them may be without a request.
    pub(crate) connections: usize,
    /// The server's certificate; `None` means no TLS.
    pub(crate) certificates: Option<Certificates>,
    /// The authorities that sign clients' certificates; with `None`, any client may connect.
    pub(crate) clients: Option<ClientAuthorities>,
    pub(crate) router: Router,
}

impl Server {
    /// Serves HTTP/1.1, one request on each connection, for as long as the future is polled. An error on a connection ends only
    /// that connection.
    pub(crate) async fn serve(self, mut listener: TcpListener) {
        let tls = self.certificates.map(|it| it.acceptor(self.clients));
        let permits = Permits::new(self.connections, self.connections / 4);
        let mut arriving = VecDeque::new();
        let mut warned: Option<Instant> = None;
        loop {
            let (stream, address): (TcpStream, SocketAddr) = Listener::accept(&mut listener).await;
            // A dual-stack socket reports an IPv4 peer as an IPv4-mapped IPv6 address.
            let peer = address.ip().to_canonical();
            // While all permits are taken, further clients wait in the kernel's queue.
            let Some(permit) = permits.take_within(peer).await else {
                if warned.is_none_or(|at| at.elapsed() >= SILENCE) {
                    warned = Some(Instant::now());
                    let name = self.name;
                    warn!("too many connections to {name} from {peer}: further ones are closed");
                }
                continue;
            };
            arriving.retain(|(arrived, task): &(Arc<AtomicBool>, AbortHandle)| {
                !arrived.load(Ordering::Relaxed) && !task.is_finished()
            });
            // Clients that send nothing close each other's connections, the oldest first.
            if arriving.len() >= self.connections / 2
                && let Some((_, oldest)) = arriving.pop_front()
            {
                oldest.abort();
            }
            let tls = tls.clone();
            let arrived = Arc::new(AtomicBool::new(false));
            let peer_of = Extension(Peer(peer, arrived.clone()));
            let router = self.router.clone().layer(peer_of);
            let task = tokio::spawn(async move {
                let _permit = permit;
                if let Err(error) = serve(stream, tls, router).await {
                    debug!(%peer, "the connection has ended: {error}");
                }
            });
            arriving.push_back((arrived, task.abort_handle()));
        }
    }
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router) -> anyhow::Result<()> {
    match tls {
        Some(tls) => answer(timeout(PATIENCE, tls.accept(stream)).await??, router).await,
        None => answer(stream, router).await,
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) -> anyhow::Result<()> {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        // Clients are few and ask seldom, and an idle connection would keep its permit.
        .keep_alive(false)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    Ok(timeout(LIFETIME, served).await??)
}
