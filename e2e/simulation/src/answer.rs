//! The server's answers, as values.

use std::sync::Arc;

use serde_json::Value;

use crate::kind::Key;

pub type Answer = Result<Success, Refusal>;

/// The answer to a request that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub enum Success {
    Created(Arc<Value>),
    Object(Arc<Value>),
    Deleted,
    Bound,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: u16,
    /// The machine-readable reason; empty where the API server gives none.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// The invalid fields; empty for a patch that does not apply.
    pub fields: Vec<String>,
}

impl Success {
    pub fn code(&self) -> u16 {
        match self {
            Self::Created(_) | Self::Bound => 201,
            Self::Object(_) | Self::Deleted => 200,
        }
    }
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            fields: Vec::new(),
        }
    }

    pub(crate) fn not_found(key: &Key) -> Self {
        Self::new(404, "NotFound", format!("{key} not found"))
    }

    pub(crate) fn no_namespace(key: &Key) -> Self {
        let message = format!("namespace {} not found", key.namespace);
        Self::new(404, "NotFound", message)
    }

    pub(crate) fn no_subresource(key: &Key) -> Self {
        Self::new(404, "NotFound", format!("{key} has no such subresource"))
    }

    pub(crate) fn already_exists(key: &Key) -> Self {
        Self::new(409, "AlreadyExists", format!("{key} already exists"))
    }

    pub(crate) fn conflict(key: &Key, message: &str) -> Self {
        Self::new(409, "Conflict", format!("{key}: {message}"))
    }

    pub(crate) fn unsupported_media_type(key: &Key) -> Self {
        let message = format!("{key} takes no strategic merge patch");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A 422 for a patch that does not apply; it names neither an object nor a field.
    pub(crate) fn not_applicable(message: String) -> Self {
        Self::new(422, "Invalid", message)
    }

    pub(crate) fn invalid(key: &Key, fields: Vec<String>) -> Self {
        let message = format!("{key} is invalid: {}", fields.join(", "));
        Self {
            fields,
            ..Self::new(422, "Invalid", message)
        }
    }

    pub(crate) fn expired(revision: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {revision} ({oldest})");
        Self::new(410, "Expired", message)
    }
}
