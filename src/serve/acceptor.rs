//! Admits connections to a server, and closes those that the limiter picks.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::{debug, warn};

use super::limiter::{Allowance, ConnectionId, ConnectionLimiter, ConnectionLimits, Phase};

/// The least time between two log lines that a server is full.
const SILENCE: Duration = Duration::from_secs(60);

/// Resolves when the connection must close.
pub(super) type CloseSignal = oneshot::Receiver<Infallible>;

pub(super) struct Acceptor {
    /// The server's name, for the log.
    name: &'static str,
    /// The most bytes of one request's body.
    largest_request: usize,
    state: Mutex<AcceptorState>,
}

struct AcceptorState {
    /// Dropping a handle resolves its connection's [`CloseSignal`].
    limiter: ConnectionLimiter<oneshot::Sender<Infallible>>,
    /// When the log last said that the server is full.
    warned: Option<Instant>,
}

impl Acceptor {
    pub(super) fn new(name: &'static str, limits: ConnectionLimits) -> Arc<Self> {
        let state = AcceptorState {
            limiter: ConnectionLimiter::new(limits),
            warned: None,
        };
        Arc::new(Self {
            name,
            largest_request: limits.request,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, AcceptorState> {
        // No panic elsewhere leaves a half-made change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection from this address if the limiter has room for it.
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        first: Phase,
    ) -> Option<(Permit, CloseSignal)> {
        let (handle, closed) = oneshot::channel();
        let mut state = self.state();
        let grant = state.limiter.admit(peer, first, handle, Instant::now());
        let permit = Permit {
            id: state.noted(grant, self.name)?,
            acceptor: self.clone(),
        };
        Some((permit, closed))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state().limiter.is_empty()
    }

    /// Closes connections that have timed out.
    pub(super) fn close_overdue(&self) {
        let closed = self.state().limiter.close_overdue(Instant::now());
        for _ in 0..closed {
            debug!("{}: a connection has taken too long", self.name);
        }
    }
}

impl AcceptorState {
    /// Logs when the server is full, and returns what was granted.
    fn noted<T>(&mut self, grant: Allowance<T>, server: &str) -> Option<T> {
        let is_full = grant.granted.is_none() || grant.closed > 0;
        if is_full && self.warned.is_none_or(|at| at.elapsed() >= SILENCE) {
            self.warned = Some(Instant::now());
            warn!("too many connections to {server}: those that keep it waiting are closed");
        }
        grant.granted
    }
}

/// The admission of one connection; dropping it ends the admission.
pub(super) struct Permit {
    id: ConnectionId,
    acceptor: Arc<Acceptor>,
}

impl Permit {
    /// The most bytes of one request's body; with 0, the server reads no body.
    pub(super) fn largest_request(&self) -> usize {
        self.acceptor.largest_request
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        let mut state = self.acceptor.state();
        state.limiter.set_phase(self.id, phase, Instant::now());
    }

    /// Moves the connection from phase `before` to `phase`; does nothing in any other phase.
    pub(super) fn set_phase_after(&self, before: Phase, phase: Phase) {
        let mut state = self.acceptor.state();
        if state.limiter.phase(self.id) == Some(before) {
            state.limiter.set_phase(self.id, phase, Instant::now());
        }
    }

    /// Whether the connection may now hold this many bytes.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        let mut state = self.acceptor.state();
        let grant = state.limiter.hold(self.id, bytes);
        state.noted(grant, self.acceptor.name).is_some()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.acceptor.state().limiter.close(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_open_until_another_one_takes_its_place_or_its_permit_is_dropped() {
        let limits = ConnectionLimits {
            connections: 1,
            ..ConnectionLimits::PROBES
        };
        let acceptor = Acceptor::new("tests", limits);
        let peer = IpAddr::from([10, 0, 0, 1]);
        let (first, mut closed) = acceptor.admit(peer, Phase::Head).unwrap();
        assert_eq!(closed.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let (second, mut open) = acceptor.admit(peer, Phase::Head).unwrap();
        assert_eq!(closed.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        drop(first);
        assert_eq!(open.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        drop(second);
        assert!(acceptor.is_idle());
    }
}
