//! Connections to what is checked: TCP, Unix sockets, and TLS over TCP.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::super::endpoint::Target;
use super::failure::CheckFailure;

/// A connection of any kind.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Connects, and says what was found.
pub async fn check(target: &Target) -> Result<String, CheckFailure> {
    connect(target)
        .await
        .map(|_| "accepts connections".to_owned())
}

/// Connects, without TLS.
pub async fn connect(target: &Target) -> Result<Box<dyn ByteStream>, CheckFailure> {
    Ok(match target {
        Target::Tcp { host, port } => Box::new(tcp(host, *port).await?),
        Target::Unix(socket) => Box::new(unix(socket).await?),
    })
}

async fn tcp(host: &str, port: u16) -> Result<TcpStream, CheckFailure> {
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|error| CheckFailure::no_answer(format!("cannot be connected to: {error}")))
}

async fn unix(socket: &Path) -> Result<UnixStream, CheckFailure> {
    let connected = UnixStream::connect(socket).await;
    connected.map_err(|error| CheckFailure::no_answer(format!("cannot be connected to: {error}")))
}
