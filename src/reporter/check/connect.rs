//! Connections to the checked endpoint, over TCP and Unix sockets.

use std::convert::Infallible;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::reporter::endpoint::EndpointAddress;
use crate::reporter::outcome::CheckFailure;

/// The user agent towards endpoints and the API server.
pub(in crate::reporter) const USER_AGENT: &str =
    concat!("nodegate-reporter/", env!("CARGO_PKG_VERSION"));

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Checks that the endpoint accepts a connection.
pub(super) async fn check(target: &EndpointAddress) -> Result<String, CheckFailure> {
    connect(target)
        .await
        .map(|_| "accepts connections".to_owned())
}

/// Connects, without TLS.
pub(super) async fn connect(target: &EndpointAddress) -> Result<Box<dyn ByteStream>, CheckFailure> {
    let connected: std::io::Result<Box<dyn ByteStream>> = match target {
        EndpointAddress::Tcp { host, port } => TcpStream::connect((host.as_str(), *port))
            .await
            .map(|stream| Box::new(stream) as _),
        EndpointAddress::Unix(socket) => UnixStream::connect(socket)
            .await
            .map(|stream| Box::new(stream) as _),
    };
    connected.map_err(|error| CheckFailure::no_answer(format!("cannot be connected to: {error}")))
}

/// Runs an exchange over a connection while driving the connection.
pub(super) async fn drive<T>(
    exchange: impl Future<Output = T>,
    connection: impl Future<Output = hyper::Result<()>>,
) -> T {
    let driver = async {
        // On a connection error, the exchange gets an error too.
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        result = exchange => result,
        never = driver => match never {},
    }
}
