//! A router behind TLS: handshakes run beside each other, each within a deadline, so that a client that stalls keeps
//! nobody waiting.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use super::Certificates;
use super::certificate::provider;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many handshakes may be under way.
const HANDSHAKES: usize = 64;

/// Serves the router over TLS (1.2 and 1.3, HTTP/1.1) for as long as the future is polled.
///
/// # Errors
/// When the listener has no address any more. What goes wrong with a single connection ends that one alone.
pub async fn serve_tls(
    listener: TcpListener,
    router: Router,
    certificates: Certificates,
) -> io::Result<()> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let address = listener.local_addr()?;
    let (sender, streams) = mpsc::channel(HANDSHAKES);
    let accepting = accept(listener, TlsAcceptor::from(Arc::new(config)), sender);
    let serving = axum::serve(TlsListener { streams, address }, router);
    tokio::select! {
        () = accepting => Ok(()),
        served = serving.into_future() => served,
    }
}

async fn accept(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    streams: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    // A semaphore of our own is never closed.
    while let Ok(permit) = handshakes.clone().acquire_owned().await {
        let (stream, client) = Listener::accept(&mut listener).await;
        let (handshake, streams) = (acceptor.accept(stream), streams.clone());
        tokio::spawn(async move {
            match tokio::time::timeout(HANDSHAKE, handshake).await {
                Ok(Ok(stream)) => {
                    // Nobody takes it when the server has stopped.
                    let _ = streams.send((stream, client)).await;
                }
                Ok(Err(error)) => debug!(%client, "TLS handshake failed: {error}"),
                Err(_) => debug!(%client, "TLS handshake took too long"),
            }
            drop(permit);
        });
    }
}

/// The connections whose handshake is done.
struct TlsListener {
    streams: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.streams.recv().await {
            Some(accepted) => accepted,
            None => pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
