//! A server that nobody can fill: it takes connections in, over TLS or not, and holds each to what its room allows. What
//! is allowed is known to `room`, what is answered to whoever gives the router.

mod connection;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::room::{Grant, Limits, Phase, Room, SeatId};
use super::tls::Certificates;
use connection::Connection;

/// How often those are looked for whose time is over.
const SWEEP: Duration = Duration::from_millis(250);
/// How long a full room is not told of again.
const SILENCE: Duration = Duration::from_secs(60);

/// What is served to whom, within limits.
pub struct Server {
    /// What it is, for the log.
    pub name: &'static str,
    /// How much room there is.
    pub limits: Limits,
    /// With what it is proven who serves; without, there is no TLS.
    pub certificates: Option<Certificates>,
    /// What is answered.
    pub router: Router,
}

/// The address that a request comes from, as an extension of it.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

impl Server {
    /// Serves HTTP/1.1 for as long as the future is polled. What goes wrong with a connection ends that one alone.
    pub async fn serve(self, mut listener: TcpListener) {
        let acceptor = self.certificates.map(Certificates::acceptor);
        let doors = Doors::new(self.name, self.limits);
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_empty = doors.open().room.is_empty();
            tokio::select! {
                (stream, address) = Listener::accept(&mut listener) => {
                    doors.let_in(stream, address, acceptor.clone(), &self.router);
                    let pause = doors.open().room.pause();
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                }
                _ = sweep.tick(), if !is_empty => doors.sweep(),
            }
        }
    }
}

/// Where connections come in and are sent away.
#[derive(Clone)]
struct Doors {
    name: &'static str,
    limits: Limits,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    room: Room,
    tasks: HashMap<SeatId, AbortHandle>,
    /// When a full room was last told of.
    told: Option<Instant>,
}

impl Doors {
    fn new(name: &'static str, limits: Limits) -> Self {
        let inside = Inside {
            room: Room::new(limits),
            tasks: HashMap::new(),
            told: None,
        };
        Self {
            name,
            limits,
            inside: Arc::new(Mutex::new(inside)),
        }
    }

    fn open(&self) -> MutexGuard<'_, Inside> {
        // Nothing is left half done by a panic elsewhere.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn let_in(
        &self,
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
        let Some(id) = self.enter(peer, first) else {
            return;
        };
        let connection = Connection {
            seat: Seat {
                id,
                doors: self.clone(),
            },
            peer,
            router: router.clone(),
        };
        let task = tokio::spawn(connection.serve(stream, acceptor));
        let mut inside = self.open();
        // It may have ended already, or have been sent away.
        if inside.room.phase(id).is_some() {
            inside.tasks.insert(id, task.abort_handle());
        } else {
            task.abort();
        }
    }

    fn enter(&self, peer: IpAddr, first: Phase) -> Option<SeatId> {
        let mut inside = self.open();
        let grant = inside.room.enter(peer, first, Instant::now());
        inside.grant(grant, self.name)
    }

    fn sweep(&self) {
        let mut inside = self.open();
        let overdue = inside.room.sweep(Instant::now());
        for id in overdue {
            debug!("{}: a connection has taken too long", self.name);
            inside.send_away(id);
        }
    }
}

impl Inside {
    /// Sends away who has to go for a grant.
    fn grant<T>(&mut self, grant: Grant<T>, server: &str) -> Option<T> {
        let is_full = grant.granted.is_none() || !grant.leaving.is_empty();
        let is_news = self.told.is_none_or(|told| told.elapsed() >= SILENCE);
        if is_full && is_news {
            self.told = Some(Instant::now());
            warn!(
                "too much is asked of {server} at a time: connections that keep it waiting are closed"
            );
        }
        for id in grant.leaving {
            self.send_away(id);
        }
        grant.granted
    }

    fn send_away(&mut self, id: SeatId) {
        if let Some(task) = self.tasks.remove(&id) {
            task.abort();
        }
    }
}

/// A connection's place in the room; left when this is dropped.
struct Seat {
    id: SeatId,
    doors: Doors,
}

impl Seat {
    fn turn(&self, phase: Phase) {
        let mut inside = self.doors.open();
        inside.room.turn(self.id, phase, Instant::now());
    }

    /// Goes on to another phase where it is in this one.
    fn turn_from(&self, from: Phase, to: Phase) {
        let mut inside = self.doors.open();
        if inside.room.phase(self.id) == Some(from) {
            inside.room.turn(self.id, to, Instant::now());
        }
    }

    /// Whether so many bytes may be held.
    fn hold(&self, bytes: usize) -> bool {
        let mut inside = self.doors.open();
        let grant = inside.room.hold(self.id, bytes);
        inside.grant(grant, self.doors.name).is_some()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inside = self.doors.open();
        inside.room.leave(self.id);
        inside.tasks.remove(&self.id);
    }
}
