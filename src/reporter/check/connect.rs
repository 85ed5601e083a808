//! Connections to what is checked, over TCP and Unix sockets.

use std::convert::Infallible;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::reporter::endpoint::EndpointAddress;
use crate::reporter::outcome::CheckFailure;

/// What the reporter calls itself towards what it checks and towards the API server.
pub(in crate::reporter) const USER_AGENT: &str =
    concat!("nodegate-reporter/", env!("CARGO_PKG_VERSION"));

/// A connection of any kind.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Connects, and says what was found.
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

/// Runs an exchange over a connection, and drives the connection beside it.
pub(super) async fn drive<T>(
    exchange: impl Future<Output = T>,
    connection: impl Future<Output = hyper::Result<()>>,
) -> T {
    let driver = async {
        // The exchange gets an error, too, where the connection has one.
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        result = exchange => result,
        never = driver => match never {},
    }
}
