//! The scenarios.

use super::Scenario;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    Vec::new()
}
