//! How a node counts for a guard.

use jiff::Timestamp;

/// How a node counts for a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// Its conditions are met.
    Met,
    /// Its conditions are unmet, and it has the taint or is within its grace period.
    Closed,
    /// Its conditions are unmet and it is open, so it is to be closed.
    Waiting {
        /// Since when it is to be closed.
        since: Timestamp,
    },
}
