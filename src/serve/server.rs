//! A server that bounds connections and their time, over TLS or not, and hands requests to the router.

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

/// How long a client may take for a TLS handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may take after its handshake: any wait of a handler, and some seconds for the client to take the answer.
const LIFETIME: Duration = Duration::from_secs(30);
/// The most bytes of a request's head: a bearer token has a few thousand.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
/// The least time between two log lines that a server is full.
const SILENCE: Duration = Duration::from_secs(60);

/// The address of a request, in its extensions, and whether the request has arrived: its handler says so.
#[derive(Debug, Clone)]
pub struct Peer(pub IpAddr, pub Arc<AtomicBool>);

/// Serves HTTP/1.1, one request a connection, while polled; over TLS if there is an acceptor. An error ends just its connection.
/// `connections`: the most at a time. One address may have a quarter of them, and half of them may be without a request.
pub async fn serve_http(
    mut listener: TcpListener,
    name: &'static str,
    connections: usize,
    tls: Option<TlsAcceptor>,
    router: Router,
) {
    let permits = Permits::new(connections, connections / 4);
    let mut arriving = Vec::new();
    let mut warned: Option<Instant> = None;
    loop {
        let (stream, address): (TcpStream, SocketAddr) = Listener::accept(&mut listener).await;
        // A dual-stack socket reports an IPv4 peer as an IPv4-mapped IPv6 address.
        let peer = address.ip().to_canonical();
        // While all permits are taken, further clients wait in the kernel's queue.
        let Some(permit) = permits.take_within(peer).await else {
            if warned.is_none_or(|at| at.elapsed() >= SILENCE) {
                warned = Some(Instant::now());
                warn!("too many connections to {name} from {peer}: further ones are closed");
            }
            continue;
        };
        arriving
            .retain(|it: &Arriving| !it.from.1.load(Ordering::Relaxed) && !it.task.is_finished());
        let tls = tls.clone();
        let from = Peer(peer, Arc::default());
        let router = router.clone().layer(Extension(from.clone()));
        let task = tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = serve(stream, tls, router).await {
                debug!(%peer, "the connection has ended: {error}");
            }
        });
        let task = task.abort_handle();
        arriving.push(Arriving { from, task });
        if arriving.len() > connections / 2 {
            give_way(&mut arriving);
        }
    }
}

/// A connection whose request has not arrived.
struct Arriving {
    from: Peer,
    task: AbortHandle,
}

/// Makes room: the address with the most connections that send nothing loses its oldest, so that a few cannot close another's.
fn give_way(arriving: &mut Vec<Arriving>) {
    let number = |peer| arriving.iter().filter(|it| it.from.0 == peer).count();
    // Of equal ones `max_by_key` takes the last.
    let places = (0..arriving.len()).rev();
    let oldest = places.max_by_key(|&it| number(arriving[it].from.0));
    if let Some(oldest) = oldest {
        arriving.remove(oldest).task.abort();
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn silent_connections_of_some_addresses_do_not_close_the_one_of_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "served"));
        tokio::spawn(serve_http(listener, "a test", 16, None, router));
        let connect = async |number| {
            let socket = TcpSocket::new_v4().unwrap();
            let from = IpAddr::from([127, 0, 0, number]);
            socket.bind((from, 0).into()).unwrap();
            socket.connect(server).await.unwrap()
        };
        let served = async |mut stream: TcpStream| {
            let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
            stream.write_all(request).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer.ends_with("served"))
        };
        let slow = connect(9).await;
        let mut silent = Vec::new();
        for number in [2, 3, 4].repeat(4) {
            silent.push(connect(number).await);
        }
        // Connections are accepted in their order.
        assert!(served(connect(10).await).await.unwrap());
        assert!(served(slow).await.unwrap());
    }
}
