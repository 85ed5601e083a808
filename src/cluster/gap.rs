//! Why objects of a kind could not be read.

use std::fmt;

use kube::Error;
use serde::{Deserialize, Serialize};

use super::causes::with_causes;
use nodegate_core::object::ResourceKind;

/// A kind that could not be read, at all or to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub kind: ResourceKind,
    pub forbidden: bool,
    /// Whether the cluster has no such resource.
    #[serde(skip)]
    pub absent: bool,
    /// Why, as a sentence.
    pub why: String,
}

impl Gap {
    pub fn failed(kind: ResourceKind, why: impl Into<String>) -> Self {
        Self {
            kind,
            forbidden: false,
            absent: false,
            why: why.into(),
        }
    }

    pub fn absent(kind: ResourceKind) -> Self {
        Self {
            absent: true,
            ..Self::failed(kind, "the cluster has no such resource")
        }
    }

    pub(crate) fn of(kind: ResourceKind, error: &Error, server: &str) -> Self {
        match error {
            Error::Api(status) if status.code == 404 => Self::absent(kind),
            error => Self {
                forbidden: matches!(error, Error::Api(status) if status.code == 403),
                ..Self::failed(kind, why(error, server))
            },
        }
    }

    /// Which list was refused.
    pub fn refusal(&self) -> String {
        let name = self.kind.name();
        if self.forbidden {
            format!("not allowed to list {name}")
        } else {
            format!("cannot list {name} ({})", self.why)
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.refusal(), self.kind.tells())
    }
}

/// Why the API server at this address gave no answer.
pub(super) fn why(error: &Error, server: &str) -> String {
    match error {
        Error::Api(status) => status.message.clone(),
        Error::SerdeError(error) => format!("the answer cannot be parsed: {error}"),
        error => format!(
            "the API server at {server} cannot be reached: {}",
            with_causes(error)
        ),
    }
}
