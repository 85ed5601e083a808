//! Connections to the checked endpoint, each for one check.

use std::error::Error;
use std::io;
use std::path::Path;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::USER_AGENT;
use hyper::http::request::Builder;
use hyper::{Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;
use tower::service_fn;

use crate::AGENT;
use crate::outcome::{CheckFinding, CheckOutcome};
use nodegate_cluster::with_causes;

pub(super) fn accepted<S>(connected: io::Result<S>) -> Result<String, CheckOutcome> {
    let accepted = connected.map(|_| "accepts connections".to_owned());
    accepted.map_err(|error| unconnected(&error))
}

fn unconnected(error: &dyn Error) -> CheckOutcome {
    CheckFinding::NoAnswer.because(format!("cannot be connected to: {}", with_causes(error)))
}

/// Connects to a Unix socket, whatever the address.
pub(super) fn through(socket: &Path) -> impl Connect + Clone + Send + Sync + 'static {
    let socket = socket.to_owned();
    service_fn(move |_: Uri| {
        let connected = UnixStream::connect(socket.clone());
        Box::pin(async { connected.await.map(TokioIo::new) })
    })
}

/// Makes a request on a connection of its own; `unanswered` begins the words for a failure after the connection was made.
pub(super) async fn ask(
    connector: impl Connect + Clone + Send + Sync + 'static,
    is_http2: bool,
    request: Builder,
    body: Vec<u8>,
    unanswered: &str,
) -> Result<Response<Incoming>, CheckOutcome> {
    let request = request.header(USER_AGENT, AGENT);
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request
        .map_err(|error| CheckFinding::Broken.because(format!("cannot be asked: {error}")))?;
    let mut client = Client::builder(TokioExecutor::new());
    let client = client.pool_max_idle_per_host(0).http2_only(is_http2);
    let answer = client.build(connector).request(request).await;
    answer.map_err(|error| match error.source() {
        Some(cause) if error.is_connect() => unconnected(cause),
        cause => {
            let why = with_causes(cause.unwrap_or(&error));
            CheckFinding::NoAnswer.because(format!("{unanswered}: {why}"))
        }
    })
}
