//! Who may stay in a server's room. Each connection has a seat; seats are few, so are the bytes of requests and answers
//! that they hold, and whatever a client keeps the server waiting for has its time. When there is no room, whoever has
//! kept it waiting longest goes, among those of the address that has the most seats. Pure: no sockets, no clock.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// How soon after a connection another one is taken in while there is no free seat: whoever comes back as often as it is
/// sent away leaves others the time that a request takes.
const PACE: Duration = Duration::from_millis(5);

/// How much room a server has. All servers of the controller together: 288 connections, and 28 MiB of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of requests' and answers' bodies at a time, over all connections. A single answer may be larger.
    pub bytes: usize,
    /// Bytes of one request's body; with 0, none is read.
    pub request: usize,
}

impl RoomLimits {
    /// `/metrics`. An answer has about 1 KiB for each rule.
    pub const METRICS: Self = Self {
        connections: 128,
        bytes: 16 * MIB,
        request: 0,
    };
    /// The webhook. An update brings the old object and the new one, each at most what etcd takes (1.5 MiB).
    pub const WEBHOOK: Self = Self {
        connections: 128,
        bytes: 12 * MIB,
        request: 4 * MIB,
    };
    /// The controller's probes.
    pub const PROBES: Self = Self {
        connections: 32,
        bytes: 64 * KIB,
        request: 0,
    };
    /// A reporter's metrics and probes: it has 32 MiB altogether.
    pub const REPORTER: Self = Self {
        connections: 16,
        bytes: MIB,
        request: 0,
    };
}

/// What a connection is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// TLS is being agreed on.
    Handshake,
    /// All that was asked has been answered.
    Idle,
    /// A request begins.
    Head,
    /// The rest of the request comes in.
    Body,
    /// The answer is being worked out: nobody waits for the client.
    Answer,
    /// The answer goes out.
    Sending,
}

impl Phase {
    /// How long it may take.
    fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Handshake | Self::Head | Self::Body => 5,
            // Longer than whatever an answer waits for.
            Self::Answer => 15,
            Self::Sending => 10,
            // Longer than Go's clients (the API server, Prometheus) keep a connection that they do not use, which is
            // 90 s: they close it, so that they never send a request into one that is being closed.
            Self::Idle => 120,
        })
    }
}

/// Names a seat; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatId(u64);

#[derive(Debug)]
struct Seat {
    peer: IpAddr,
    phase: Phase,
    since: Instant,
    /// Bytes of the body that it holds.
    bytes: usize,
}

/// The seats of a server, and who sits there.
#[derive(Debug)]
pub struct Room {
    limits: RoomLimits,
    seats: BTreeMap<SeatId, Seat>,
    next: u64,
}

/// What comes of a wish for room: whether it is granted, and who has to go for it. They have no seat any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant<T> {
    /// What is granted, if anything.
    pub granted: Option<T>,
    /// Who has to go.
    pub leaving: Vec<SeatId>,
}

impl Room {
    /// An empty room.
    pub fn new(limits: RoomLimits) -> Self {
        Self {
            limits,
            seats: BTreeMap::new(),
            next: 0,
        }
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// How long to wait before the next connection is taken in.
    pub fn pause(&self) -> Duration {
        if self.seats.len() < self.limits.connections {
            Duration::ZERO
        } else {
            PACE
        }
    }

    /// A seat for a new connection. There is none only while all are being answered.
    pub fn enter(&mut self, peer: IpAddr, phase: Phase, now: Instant) -> Grant<SeatId> {
        let mut leaving = Vec::new();
        if self.seats.len() >= self.limits.connections {
            let Some(slowest) = self.slowest_of_the_greediest() else {
                return Grant {
                    granted: None,
                    leaving,
                };
            };
            self.leave(slowest);
            leaving.push(slowest);
        }
        let id = SeatId(self.next);
        self.next += 1;
        let seat = Seat {
            peer,
            phase,
            since: now,
            bytes: 0,
        };
        self.seats.insert(id, seat);
        Grant {
            granted: Some(id),
            leaving,
        }
    }

    /// The connection goes on to another phase. Who is idle holds nothing.
    pub fn turn(&mut self, id: SeatId, phase: Phase, now: Instant) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.phase = phase;
            seat.since = now;
            if phase == Phase::Idle {
                seat.bytes = 0;
            }
        }
    }

    /// The phase that a connection is in, if it still has a seat.
    pub fn phase(&self, id: SeatId) -> Option<Phase> {
        Some(self.seats.get(&id)?.phase)
    }

    /// The connection holds so many bytes from now on. Granted where they fit, or where nobody else holds any.
    pub fn hold(&mut self, id: SeatId, bytes: usize) -> Grant<()> {
        let mut leaving = Vec::new();
        let others = self.seats.iter().filter(|(other, _)| **other != id);
        let mut held: usize = others.map(|(_, seat)| seat.bytes).sum();
        while held > 0 && held.saturating_add(bytes) > self.limits.bytes {
            let holders = self
                .seats
                .iter()
                .filter(|(other, seat)| **other != id && seat.bytes > 0);
            let waited_for = holders.filter(|(_, seat)| seat.phase != Phase::Answer);
            let Some((slowest, seat)) = waited_for.min_by_key(|(_, seat)| seat.since) else {
                return Grant {
                    granted: None,
                    leaving,
                };
            };
            held -= seat.bytes;
            let slowest = *slowest;
            self.leave(slowest);
            leaving.push(slowest);
        }
        Grant {
            granted: self.seats.get_mut(&id).map(|seat| seat.bytes = bytes),
            leaving,
        }
    }

    /// The connection has ended.
    pub fn leave(&mut self, id: SeatId) {
        self.seats.remove(&id);
    }

    /// Sends away those whose time is over.
    pub fn sweep(&mut self, now: Instant) -> Vec<SeatId> {
        let mut overdue = Vec::new();
        self.seats.retain(|id, seat| {
            let stays = now.saturating_duration_since(seat.since) < seat.phase.patience();
            if !stays {
                overdue.push(*id);
            }
            stays
        });
        overdue
    }

    fn slowest_of_the_greediest(&self) -> Option<SeatId> {
        let mut seats_of: HashMap<IpAddr, usize> = HashMap::new();
        for seat in self.seats.values() {
            *seats_of.entry(seat.peer).or_default() += 1;
        }
        let waited_for = self
            .seats
            .iter()
            .filter(|(_, seat)| seat.phase != Phase::Answer);
        let slowest = waited_for
            .min_by_key(|(_, seat)| (std::cmp::Reverse(seats_of[&seat.peer]), seat.since));
        slowest.map(|(id, _)| *id)
    }
}
