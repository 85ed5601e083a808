//! What to do next: one sentence, and the command to type.

use serde::Serialize;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Next {
    /// What for.
    pub say: String,
    /// What to type.
    pub command: String,
}

impl Next {
    /// To be typed for this.
    pub fn new(say: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            say: say.into(),
            command: command.into(),
        }
    }
}
