//! Counts the bytes between the controller and the API server: a relay that passes on every byte unread, TLS included.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The buffer size.
const CHUNK: usize = 64 * 1024;

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes {
    /// From the controller to the API server.
    pub sent: u64,
    /// From the API server to the controller.
    pub received: u64,
}

impl Bytes {
    /// The bytes since an earlier count.
    pub fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            received: self.received - before.received,
        }
    }
}

/// Relays until dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    counts: Arc<Counts>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Relay {
    /// Starts a relay to this local port.
    ///
    /// # Errors
    ///
    /// When no port can be listened on.
    pub(crate) async fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("listening for the controller")?;
        let address = listener.local_addr().context("asking for the port")?;
        let counts = Arc::new(Counts::default());
        let counting = counts.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                tokio::spawn(relay(from, port, counting.clone()));
            }
        });
        Ok(Self {
            address,
            counts,
            accepting,
        })
    }

    /// The port on which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The bytes so far.
    pub(crate) fn so_far(&self) -> Bytes {
        Bytes {
            sent: self.counts.sent.load(Ordering::Relaxed),
            received: self.counts.received.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Relays one connection until either end closes it, or the server is unreachable.
async fn relay(from: TcpStream, port: u16, counts: Arc<Counts>) {
    let Ok(to) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
        return;
    };
    // A request is one small packet; nothing follows before its answer.
    if from.set_nodelay(true).is_err() || to.set_nodelay(true).is_err() {
        return;
    }
    let (from_read, from_write) = from.into_split();
    let (to_read, to_write) = to.into_split();
    tokio::select! {
        () = pass_on(from_read, to_write, &counts.sent) => {}
        () = pass_on(to_read, from_write, &counts.received) => {}
    }
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_byte_is_passed_on_and_counted() -> Result<()> {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let relay = Relay::start(server.local_addr()?.port()).await?;
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).await?;
        client.write_all(b"question").await?;
        let (mut served, _) = server.accept().await?;
        let mut question = [0; 8];
        served.read_exact(&mut question).await?;
        assert_eq!(&question, b"question");
        served.write_all(b"yes").await?;
        let mut answer = [0; 3];
        client.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"yes");
        let expected = Bytes {
            sent: 8,
            received: 3,
        };
        assert_eq!(
            relay.so_far().since(Bytes {
                sent: 0,
                received: 0
            }),
            expected
        );
        Ok(())
    }
}
