//! The laws, one a file.

use super::Law;

/// All of them, for one schedule.
#[must_use]
pub fn all() -> Vec<Box<dyn Law>> {
    Vec::new()
}
