//! Why a request was not carried out, or may not have been.

use std::time::Duration;

use super::turns::Pauses;
use crate::object::Unreadable;

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
    /// The pauses after which to try again what has met this.
    #[must_use]
    pub fn pauses(&self) -> Pauses {
        match self {
            Self::Unreachable(_) => Pauses::UNREACHABLE,
            _ => Pauses::REFUSED,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_an_error_depends_on_whose_trouble_it_is() {
        let message = String::new;
        for (error, is_soon, is_refusal) in [
            (RequestError::Conflict, false, false),
            (RequestError::Gone, false, false),
            (RequestError::Unreachable(message()), true, false),
            (
                RequestError::Throttled {
                    message: message(),
                    come_again: None,
                },
                false,
                false,
            ),
            (
                RequestError::Broken {
                    message: message(),
                    come_again: None,
                },
                false,
                true,
            ),
            (RequestError::TimedOut(Duration::ZERO), false, true),
            (RequestError::Failed(message()), false, true),
        ] {
            let tried_again = error.pauses().longest < Duration::from_secs(10);
            assert_eq!(tried_again, is_soon, "{error:?}");
            assert_eq!(error.is_refusal(), is_refusal, "{error:?}");
        }
    }
}
