//! How a node counts under a guard.

use jiff::Timestamp;

/// How a node counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// Its conditions are met.
    Met,
    /// Its conditions are unmet, and it carries the taint, or its grace period lasts.
    Closed,
    /// Its conditions are unmet and it is open: it ought to be closed.
    Waiting {
        /// Since when it ought to be.
        since: Timestamp,
    },
}
