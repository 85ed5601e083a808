//! Why a check is not good.

use super::super::outcome::Finding;

/// Why a check is not good.
#[derive(Debug)]
pub struct Failure {
    pub(super) finding: Finding,
    /// The rest of a sentence that starts with the endpoint.
    pub(super) words: String,
}

impl Failure {
    pub(super) fn not_ready(words: impl Into<String>) -> Self {
        Self::new(Finding::NotReady, words)
    }

    pub(super) fn no_answer(words: impl Into<String>) -> Self {
        Self::new(Finding::NoAnswer, words)
    }

    pub(super) fn broken(words: impl Into<String>) -> Self {
        Self::new(Finding::Broken, words)
    }

    pub(super) fn new(finding: Finding, words: impl Into<String>) -> Self {
        Self {
            finding,
            words: words.into(),
        }
    }
}
