//! What could not be read, and what cannot be said for that.

use std::fmt;

use serde::Serialize;

use super::kind::Kind;

/// A list that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// What was to be listed.
    pub kind: Kind,
    /// Whether it is forbidden; otherwise it failed.
    pub forbidden: bool,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, goes_without) = (self.kind.name(), self.kind.tells());
        if self.forbidden {
            write!(f, "not allowed to list {name}: {goes_without}")
        } else {
            write!(f, "cannot list {name} ({}): {goes_without}", self.why)
        }
    }
}
