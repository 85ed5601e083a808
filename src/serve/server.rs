//! A server that accepts connections, over TLS or not, holds each to the limits, and hands requests to the router.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::acceptor::{Acceptor, Permit};
use super::limiter::{ConnectionLimits, Phase};
use super::tls::{Certificates, ClientAuthorities};

/// How often timed-out connections are closed.
const SWEEP: Duration = Duration::from_millis(250);
/// The most bytes of a request's head: a bearer token has a few thousand.
const HEAD: usize = 16 << 10;
/// The most headers of a request.
const HEADERS: usize = 64;

/// The address that a request comes from; stored in the request's extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

pub(crate) struct Server {
    /// The server's name, for the log.
    pub(crate) name: &'static str,
    pub(crate) limits: ConnectionLimits,
    /// The server's certificate; `None` means no TLS.
    pub(crate) certificates: Option<Certificates>,
    /// The authorities that sign clients' certificates; with `None`, any client may connect.
    pub(crate) clients: Option<ClientAuthorities>,
    pub(crate) router: Router,
}

impl Server {
    /// Serves HTTP/1.1 for as long as the future is polled. An error on a connection ends only that connection.
    pub(crate) async fn serve(self, mut listener: TcpListener) {
        let tls = self.certificates.map(|it| it.acceptor(self.clients));
        let acceptor = Acceptor::new(self.name, self.limits);
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_idle = acceptor.is_idle();
            tokio::select! {
                (stream, address) = Listener::accept(&mut listener) => {
                    accept(&acceptor, stream, address, tls.clone(), self.router.clone());
                }
                _ = sweep.tick(), if !is_idle => acceptor.close_overdue(),
            }
        }
    }
}

/// Serves a connection, if it is admitted, until it ends or the acceptor closes it.
fn accept(
    acceptor: &Arc<Acceptor>,
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
) {
    // A dual-stack socket reports an IPv4 peer as an IPv4-mapped IPv6 address.
    let peer = address.ip().to_canonical();
    let first = match tls {
        Some(_) => Phase::Handshake,
        None => Phase::Head,
    };
    let Some((permit, closed)) = acceptor.admit(peer, first) else {
        return;
    };
    tokio::spawn(async move {
        tokio::select! {
            biased;
            _ = closed => {}
            () = serve(stream, tls, peer, permit, router) => {}
        }
    });
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: IpAddr,
    permit: Permit,
    router: Router,
) {
    let Some(tls) = tls else {
        return serve_http(stream, peer, permit, router).await;
    };
    match tls.accept(stream).await {
        Ok(stream) => {
            permit.set_phase(Phase::Head);
            serve_http(stream, peer, permit, router).await;
        }
        Err(error) => debug!(%peer, "TLS handshake failed: {error}"),
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: IpAddr,
    permit: Permit,
    router: Router,
) {
    let permit = Arc::new(permit);
    let observed = Observed {
        stream,
        permit: permit.clone(),
    };
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        let (permit, router) = (permit.clone(), router.clone());
        async move { Ok::<_, Infallible>(answer(request, peer, &permit, &router).await) }
    });
    let served = http1::Builder::new()
        // The limiter has a timeout for each phase, including the head.
        .header_read_timeout(None)
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(observed), service)
        .await;
    if let Err(error) = served {
        debug!(%peer, "the connection has ended: {error}");
    }
}

async fn answer(
    request: Request<Incoming>,
    peer: IpAddr,
    permit: &Permit,
    router: &TowerToHyperService<Router>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Peer(peer));
    let response = match read(body, permit).await {
        Ok(body) => {
            permit.set_phase(Phase::Answer);
            let Ok(response) = router.call(Request::from_parts(parts, body)).await;
            response
        }
        Err(problem) => problem.into_response(),
    };
    permit.set_phase(Phase::Sending);
    let bytes = response.body().size_hint().lower();
    if permit.hold(usize::try_from(bytes).unwrap_or(usize::MAX)) {
        response
    } else {
        Problem::Full.into_response()
    }
}

/// Why a request cannot be answered.
enum Problem {
    TooLarge(usize),
    Full,
    Broken,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::TooLarge(largest) => {
                let text = format!("the request has more than {largest} bytes\n");
                (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
            }
            Self::Full => {
                let text = "too many requests at a time; try again\n";
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
            Self::Broken => StatusCode::BAD_REQUEST.into_response(),
        }
    }
}

/// The body of a request; empty if the server reads none.
async fn read(mut body: Incoming, permit: &Permit) -> Result<Body, Problem> {
    let largest = permit.largest_request();
    if largest == 0 {
        return Ok(Body::empty());
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > largest {
        return Err(Problem::TooLarge(largest));
    }
    permit.set_phase(Phase::Body);
    // The announced length may never arrive, so nothing is allocated for it. Data is copied because each frame keeps its whole
    // buffer alive.
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Problem::Broken)?.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > largest {
            return Err(Problem::TooLarge(largest));
        }
        if !permit.hold(length) {
            return Err(Problem::Full);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Body::from(bytes))
}

/// A stream that records when a request begins and when an answer has been sent.
struct Observed<S> {
    stream: S,
    permit: Arc<Permit>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.permit.set_phase_after(Phase::Idle, Phase::Head);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.permit.set_phase_after(Phase::Sending, Phase::Idle);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
