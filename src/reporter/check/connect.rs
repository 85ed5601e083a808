//! Connections to what is checked: TCP, Unix sockets, and TLS over TCP.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::super::endpoint::Target;
use super::failure::Failure;

/// A connection of any kind.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Connects, and says what was found.
pub async fn check(target: &Target) -> Result<String, Failure> {
    connect(target)
        .await
        .map(|_| "accepts connections".to_owned())
}

/// Connects, without TLS.
pub async fn connect(target: &Target) -> Result<Box<dyn Connection>, Failure> {
    Ok(match target {
        Target::Tcp { host, port } => Box::new(tcp(host, *port).await?),
        Target::Unix(socket) => Box::new(unix(socket).await?),
    })
}

async fn tcp(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|error| Failure::no_answer(format!("cannot be connected to: {error}")))
}

async fn unix(socket: &Path) -> Result<UnixStream, Failure> {
    let connected = UnixStream::connect(socket).await;
    connected.map_err(|error| Failure::no_answer(format!("cannot be connected to: {error}")))
}
