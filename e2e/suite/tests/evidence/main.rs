//! What the controller does while what it has seen may not be so any more, on a real API server.
//!
//! ```text
//! frozen     the watch of one kind stands still, behind a relay, and something changes that matters
//! stalled    the process stands still
//! ```

mod frozen;
mod stalled;
