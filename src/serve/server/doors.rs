//! Where connections come in, sit and are sent away.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tracing::{debug, warn};

use crate::serve::room::{Grant, Phase, Room, RoomLimits, SeatId};

/// How long a full room is not told of again.
const SILENCE: Duration = Duration::from_secs(60);

/// Where connections come in and are sent away.
#[derive(Clone)]
pub struct Doors {
    name: &'static str,
    limits: RoomLimits,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    room: Room,
    tasks: HashMap<SeatId, AbortHandle>,
    /// When a full room was last told of.
    told: Option<Instant>,
}

impl Doors {
    /// Open ones, with nobody inside.
    pub fn new(name: &'static str, limits: RoomLimits) -> Self {
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

    /// Gives a connection from this address a seat, if there is one.
    pub fn enter(&self, peer: IpAddr, first: Phase) -> Option<Seat> {
        let mut inside = self.open();
        let grant = inside.room.enter(peer, first, Instant::now());
        let id = inside.grant(grant, self.name)?;
        Some(Seat {
            id,
            doors: self.clone(),
        })
    }

    /// Keeps what ends the connection on this seat. It may have ended already, or have been sent away.
    pub fn keep(&self, id: SeatId, task: AbortHandle) {
        let mut inside = self.open();
        if inside.room.phase(id).is_some() {
            inside.tasks.insert(id, task);
        } else {
            task.abort();
        }
    }

    /// Whether nobody is inside.
    pub fn are_empty(&self) -> bool {
        self.open().room.is_empty()
    }

    /// How long nobody else is let in.
    pub fn pause(&self) -> Duration {
        self.open().room.pause()
    }

    /// Sends away whose time is over.
    pub fn sweep(&self) {
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
pub struct Seat {
    pub id: SeatId,
    doors: Doors,
}

impl Seat {
    /// How many bytes a request may have.
    pub fn largest_request(&self) -> usize {
        self.doors.limits.request
    }

    /// Goes on to another phase.
    pub fn turn(&self, phase: Phase) {
        let mut inside = self.doors.open();
        inside.room.turn(self.id, phase, Instant::now());
    }

    /// Goes on to another phase where it is in this one.
    pub fn turn_from(&self, from: Phase, to: Phase) {
        let mut inside = self.doors.open();
        if inside.room.phase(self.id) == Some(from) {
            inside.room.turn(self.id, to, Instant::now());
        }
    }

    /// Whether so many bytes may be held.
    pub fn hold(&self, bytes: usize) -> bool {
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
