//! One connection: its handshake, its requests one after the other, and what the room is told of them.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::doors::Seat;
use crate::serve::room::Phase;

/// How many bytes the head of a request may have: a bearer token has some thousands.
const HEAD: usize = 16 << 10;
/// How many headers a request may have.
const HEADERS: usize = 64;

/// The address that a request comes from, as an extension of it.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// A connection that has been let in.
pub struct Connection {
    pub seat: Seat,
    pub peer: IpAddr,
    pub router: Router,
}

impl Connection {
    /// Serves it until it ends. When this is dropped, it is closed.
    pub async fn serve(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        let peer = self.peer;
        let Some(acceptor) = acceptor else {
            return self.converse(stream).await;
        };
        match acceptor.accept(stream).await {
            Ok(stream) => {
                self.seat.turn(Phase::Head);
                self.converse(stream).await;
            }
            Err(error) => debug!(%peer, "TLS handshake failed: {error}"),
        }
    }

    async fn converse(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let (peer, router) = (self.peer, TowerToHyperService::new(self.router));
        let seat = Arc::new(self.seat);
        let watched = Watched {
            stream,
            seat: seat.clone(),
        };
        let service = service_fn(move |request| {
            let (seat, router) = (seat.clone(), router.clone());
            async move { Ok::<_, Infallible>(answer(request, peer, &seat, &router).await) }
        });
        let served = http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(HEAD)
            .max_headers(HEADERS)
            .serve_connection(TokioIo::new(watched), service)
            .await;
        if let Err(error) = served {
            debug!(%peer, "the connection has ended: {error}");
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    peer: IpAddr,
    seat: &Seat,
    router: &TowerToHyperService<Router>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Peer(peer));
    let response = match read(body, seat).await {
        Ok(body) => {
            seat.turn(Phase::Answer);
            let Ok(response) = router.call(Request::from_parts(parts, body)).await;
            response
        }
        Err(problem) => problem.into_response(),
    };
    seat.turn(Phase::Sending);
    let bytes = response.body().size_hint().lower();
    if seat.hold(usize::try_from(bytes).unwrap_or(usize::MAX)) {
        response
    } else {
        Problem::NoRoom.into_response()
    }
}

/// Why a request is not read.
enum Problem {
    TooLarge(usize),
    NoRoom,
    Broken,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::TooLarge(largest) => {
                let text = format!("the request has more than {largest} bytes\n");
                (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
            }
            Self::NoRoom => {
                let text = "too much is asked at a time; try again\n";
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
            Self::Broken => StatusCode::BAD_REQUEST.into_response(),
        }
    }
}

/// The body of a request, where the server takes any.
async fn read(mut body: Incoming, seat: &Seat) -> Result<Body, Problem> {
    let largest = seat.largest_request();
    if largest == 0 {
        return Ok(Body::empty());
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > largest {
        return Err(Problem::TooLarge(largest));
    }
    seat.turn(Phase::Body);
    // What is announced may never come: nothing is set aside for it. A frame keeps more alive than it shows, so what it
    // shows is copied.
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Problem::Broken)?.into_data() else {
            continue;
        };
        let length = bytes.len() + data.len();
        if length > largest {
            return Err(Problem::TooLarge(largest));
        }
        if !seat.hold(length) {
            return Err(Problem::NoRoom);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Body::from(bytes))
}

/// A stream that tells when a request begins, and when an answer has gone out.
struct Watched<S> {
    stream: S,
    seat: Arc<Seat>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.seat.turn_from(Phase::Idle, Phase::Head);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
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
        self.seat.turn_from(Phase::Sending, Phase::Idle);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
