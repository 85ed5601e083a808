//! Why a check is not good.

use super::super::outcome::CheckFinding;

/// Why a check is not good.
#[derive(Debug)]
pub struct CheckFailure {
    pub(super) finding: CheckFinding,
    /// The rest of a sentence that starts with the endpoint.
    pub(super) words: String,
}

impl CheckFailure {
    pub(super) fn not_ready(words: impl Into<String>) -> Self {
        Self::new(CheckFinding::NotReady, words)
    }

    pub(super) fn no_answer(words: impl Into<String>) -> Self {
        Self::new(CheckFinding::NoAnswer, words)
    }

    pub(super) fn broken(words: impl Into<String>) -> Self {
        Self::new(CheckFinding::Broken, words)
    }

    pub(super) fn new(finding: CheckFinding, words: impl Into<String>) -> Self {
        Self {
            finding,
            words: words.into(),
        }
    }
}
