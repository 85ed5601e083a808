//! How something is that was looked at, and what to do next.

use serde::Serialize;

use crate::cli::explain::Next;

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// What it is.
    pub what: &'static str,
    /// How it is.
    pub health: ItemHealth,
    /// Why.
    pub message: String,
    /// What to do next, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ItemHealth {
    /// As it should be.
    Ok,
    /// It may not do.
    Warning,
    /// It does not do.
    Failed,
    /// Nobody may say.
    Unknown,
}

impl Item {
    /// Something that is like this.
    pub fn new(what: &'static str, health: ItemHealth, message: impl Into<String>) -> Self {
        Self {
            what,
            health,
            message: message.into(),
            next: None,
        }
    }

    /// The same, with what to do next.
    #[must_use]
    pub fn next(self, say: &str, command: impl Into<String>) -> Self {
        Self {
            next: Some(Next::new(say, command)),
            ..self
        }
    }
}
