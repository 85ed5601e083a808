//! Why a request was not carried out, or may not have been.

use std::time::Duration;

use crate::object::Unreadable;

/// The reason of anything that could not be carried out on a node: counted beside the one that says what it was, as the
/// upstream project does, and the reason in a rule's `failedNodes`.
pub const EVALUATION_ERROR: &str = "EvaluationError";
/// The reason of a taint that could not be put on.
pub const ADD_TAINT_ERROR: &str = "AddTaintError";
/// The reason of a taint that could not be lifted.
pub const REMOVE_TAINT_ERROR: &str = "RemoveTaintError";

/// Why a request was not carried out, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The object is not any more what the patch was computed from.
    #[error("the object has changed in the meantime")]
    Conflict,
    /// The object is gone.
    #[error("the object is gone")]
    Gone,
    /// Nothing listens where the API server should be, or the connection broke.
    #[error("cannot reach the API server: {0}")]
    Unreachable(String),
    /// The API server asks for fewer requests.
    #[error("the API server has too much to do: {message}")]
    Throttled {
        /// What it says.
        message: String,
        /// When to come again, where it says so.
        come_again: Option<Duration>,
    },
    /// The API server, or what it asks, has failed.
    #[error("{message}")]
    Broken {
        /// What it says.
        message: String,
        /// When to come again, where it says so.
        come_again: Option<Duration>,
    },
    /// There was no answer in time.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The API server refused.
    #[error("{0}")]
    Failed(String),
}

impl RequestError {
    /// Whether this is about what was to be written, or the API server's own trouble with it, and not about the state of
    /// the object or of the connection.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Broken { .. } | Self::TimedOut(_) | Self::Failed(_)
        )
    }
}

/// What was written is there; but what has become of the object is anybody's guess until a watch shows it.
impl From<Unreadable> for RequestError {
    fn from(why: Unreadable) -> Self {
        Self::Failed(format!(
            "the answer to the write cannot be understood: {why}"
        ))
    }
}
