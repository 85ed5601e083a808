//! Bounds a server's connections, the bytes of its requests and answers, and the time a client may keep it waiting. A full
//! server is shared among addresses: it closes the slowest connection of the address that has the most. Pure: no sockets, no
//! clock.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Limits of one server. All servers of the controller together keep 768 connections and 28 MiB of bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The most connections at a time.
    pub(crate) connections: usize,
    /// The most bytes of request and answer bodies at a time, over all connections. A single answer may be larger.
    pub(crate) bytes: usize,
    /// The most bytes of one request's body; with 0, the server reads no body.
    pub(crate) request: usize,
}

impl ConnectionLimits {
    /// `/metrics`: an answer has about 1 KiB per rule.
    pub(crate) const METRICS: Self = Self {
        connections: 256,
        bytes: 16 * MIB,
        request: 0,
    };
    /// The webhook: an update carries the old and the new object, each at most etcd's limit (1.5 MiB).
    pub(crate) const WEBHOOK: Self = Self {
        connections: 384,
        bytes: 12 * MIB,
        request: 4 * MIB,
    };
    /// The controller's probes.
    pub(crate) const PROBES: Self = Self {
        connections: 128,
        bytes: 64 * KIB,
        request: 0,
    };
    /// A reporter's metrics and probes: a reporter has 32 MiB of memory in total.
    pub(crate) const REPORTER: Self = Self {
        connections: 16,
        bytes: MIB,
        request: 0,
    };
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Handshake,
    /// Every request has been answered.
    Idle,
    /// The server is reading the head of a request.
    Head,
    /// The server is reading the body of a request.
    Body,
    /// The server computes the answer and does not wait for the client.
    Answer,
    /// The server is writing the answer.
    Sending,
}

impl Phase {
    fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Handshake | Self::Head | Self::Body => 5,
            // Longer than any wait inside a handler.
            Self::Answer => 15,
            Self::Sending => 10,
            // Go's clients (the API server, Prometheus) close a connection after 90 idle seconds. The server waits longer, so
            // that they never send a request into a connection that it is closing.
            Self::Idle => 120,
        })
    }
}

/// Identifies a connection; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(u64);

#[derive(Debug)]
struct Connection<H> {
    peer: IpAddr,
    phase: Phase,
    since: Instant,
    /// Bytes of the body it holds.
    bytes: usize,
    /// Dropping it closes the connection.
    _handle: H,
}

/// The open connections of a server, within its limits.
#[derive(Debug)]
pub(super) struct ConnectionLimiter<H> {
    limits: ConnectionLimits,
    connections: BTreeMap<ConnectionId, Connection<H>>,
    next: u64,
}

/// The answer to a request for a connection or for bytes.
#[derive(Debug)]
pub(super) struct Allowance<T> {
    pub(super) granted: Option<T>,
    /// How many connections were closed to make room.
    pub(super) closed: usize,
}

impl<H> ConnectionLimiter<H> {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            connections: BTreeMap::new(),
            next: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Admits a new connection; dropping `handle` closes it. Refuses it only if the server is computing answers on every other
    /// connection and no address has more of them than this one would.
    pub(super) fn admit(
        &mut self,
        peer: IpAddr,
        phase: Phase,
        handle: H,
        now: Instant,
    ) -> Allowance<ConnectionId> {
        let mut closed = 0;
        if self.connections.len() >= self.limits.connections {
            let Some(slowest) = self.slowest_of_the_greediest(peer) else {
                return Allowance {
                    granted: None,
                    closed,
                };
            };
            self.close(slowest);
            closed = 1;
        }
        let id = ConnectionId(self.next);
        self.next += 1;
        let connection = Connection {
            peer,
            phase,
            since: now,
            bytes: 0,
            _handle: handle,
        };
        self.connections.insert(id, connection);
        Allowance {
            granted: Some(id),
            closed,
        }
    }

    /// An idle connection holds no bytes.
    pub(super) fn set_phase(&mut self, id: ConnectionId, phase: Phase, now: Instant) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.phase = phase;
            connection.since = now;
            if phase == Phase::Idle {
                connection.bytes = 0;
            }
        }
    }

    /// `None` if the connection is closed.
    pub(super) fn phase(&self, id: ConnectionId) -> Option<Phase> {
        Some(self.connections.get(&id)?.phase)
    }

    /// Sets how many bytes a connection holds. Granted if they fit, or if no other connection holds any.
    pub(super) fn hold(&mut self, id: ConnectionId, bytes: usize) -> Allowance<()> {
        let mut closed = 0;
        loop {
            let others = || self.connections.iter().filter(|(other, _)| **other != id);
            let held: usize = others().map(|(_, other)| other.bytes).sum();
            if held == 0 || held.saturating_add(bytes) <= self.limits.bytes {
                break;
            }
            let slowest = others()
                .filter(|(_, other)| other.bytes > 0 && other.phase != Phase::Answer)
                .min_by_key(|(_, other)| other.since);
            let Some((&slowest, _)) = slowest else {
                return Allowance {
                    granted: None,
                    closed,
                };
            };
            self.close(slowest);
            closed += 1;
        }
        let connection = self.connections.get_mut(&id);
        Allowance {
            granted: connection.map(|connection| connection.bytes = bytes),
            closed,
        }
    }

    /// Does nothing if the connection is already closed.
    pub(super) fn close(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// Closes the connections that have timed out, and returns how many there were.
    pub(super) fn close_overdue(&mut self, now: Instant) -> usize {
        let before = self.connections.len();
        self.connections.retain(|_, connection| {
            now.saturating_duration_since(connection.since) < connection.phase.timeout()
        });
        before - self.connections.len()
    }

    /// The connection to close for a new one from this address. One in [`Phase::Answer`] is closed only if its address has more
    /// connections than the newcomer's.
    fn slowest_of_the_greediest(&self, newcomer: IpAddr) -> Option<ConnectionId> {
        let mut count = HashMap::from([(newcomer, 1_usize)]);
        for connection in self.connections.values() {
            *count.entry(connection.peer).or_default() += 1;
        }
        let candidates = self.connections.iter().filter_map(|(id, it)| {
            let is_answered = it.phase == Phase::Answer;
            let may_go = !is_answered || count[&it.peer] > count[&newcomer];
            may_go.then_some((Reverse(count[&it.peer]), is_answered, it.since, *id))
        });
        candidates.min().map(|(.., id)| id)
    }
}
