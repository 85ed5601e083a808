//! Why a request failed, or may have failed.

use std::time::Duration;

use nodegate_core::object::Unreadable;

/// The reason of every failure on a node, in `failedNodes` and a metric: counted beside the specific one, as upstream does.
pub const EVALUATION_ERROR: &str = "EvaluationError";
pub const ADD_TAINT_ERROR: &str = "AddTaintError";
pub const REMOVE_TAINT_ERROR: &str = "RemoveTaintError";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the object has changed in the meantime")]
    Conflict,
    #[error("the object is gone")]
    Gone,
    /// Nothing listens at the API server's address, or the connection broke.
    #[error("cannot reach the API server: {0}")]
    Unreachable(String),
    /// The API server asks for fewer requests, or cannot handle any now.
    #[error("the API server has too much to do: {message}")]
    Throttled {
        message: String,
        /// When to retry, if it says so.
        retry_after: Option<Duration>,
    },
    /// The API server, or a backend of it, failed to handle the request, perhaps because of the object: etcd takes none too large.
    #[error("{0}")]
    Broken(String),
    #[error("the API server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The API server refused.
    #[error("{0}")]
    Failed(String),
}

impl RequestError {
    /// Whether the write's content was refused or could not be processed; false for errors of the connection or the object's state.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::TimedOut(_) | Self::Failed(_))
    }

    /// Whether the request may have been carried out all the same.
    pub fn may_be_done(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::Broken(_) | Self::TimedOut(_)
        )
    }
}

/// The write succeeded, but its response is unreadable: the new state is unknown until a watch shows it.
impl From<Unreadable> for RequestError {
    fn from(why: Unreadable) -> Self {
        Self::Failed(format!("the answer to the write cannot be parsed: {why}"))
    }
}
