//! A server that nobody can fill: it takes connections in, over TLS or not, and holds each to what its room allows. What
//! is allowed is known to `room`, what is answered to whoever gives the router.

mod connection;
mod doors;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_rustls::TlsAcceptor;

use super::room::{Phase, RoomLimits};
use super::tls::Certificates;
use connection::Connection;
pub use connection::Peer;
use doors::Doors;

/// How often those are looked for whose time is over.
const SWEEP: Duration = Duration::from_millis(250);

/// What is served to whom, within limits.
pub struct Server {
    /// What it is, for the log.
    pub name: &'static str,
    /// How much room there is.
    pub limits: RoomLimits,
    /// With what it is proven who serves; without, there is no TLS.
    pub certificates: Option<Certificates>,
    /// What is answered.
    pub router: Router,
}

impl Server {
    /// Serves HTTP/1.1 for as long as the future is polled. What goes wrong with a connection ends that one alone.
    pub async fn serve(self, mut listener: TcpListener) {
        let acceptor = self.certificates.map(Certificates::acceptor);
        let doors = Doors::new(self.name, self.limits);
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_empty = doors.are_empty();
            tokio::select! {
                (stream, address) = Listener::accept(&mut listener) => {
                    let_in(&doors, stream, address, acceptor.clone(), &self.router);
                    let pause = doors.pause();
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                }
                _ = sweep.tick(), if !is_empty => doors.sweep(),
            }
        }
    }
}

/// Lets a connection in where there is room for it, and serves it.
fn let_in(
    doors: &Doors,
    stream: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: &Router,
) {
    let first = match acceptor {
        Some(_) => Phase::Handshake,
        None => Phase::Head,
    };
    // An IPv4 address is the same one on a socket for both.
    let peer = address.ip().to_canonical();
    let Some(seat) = doors.enter(peer, first) else {
        return;
    };
    let id = seat.id;
    let connection = Connection {
        seat,
        peer,
        router: router.clone(),
    };
    let task = tokio::spawn(connection.serve(stream, acceptor));
    doors.keep(id, task.abort_handle());
}
