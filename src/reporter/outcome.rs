//! The outcome of one check. Pure.

use crate::api::ConditionStatus;

/// The longest condition message, in characters.
const MAX_MESSAGE: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckOutcome {
    pub(super) finding: CheckFinding,
    /// At most [`MAX_MESSAGE`] characters on one line.
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckFinding {
    Ok,
    /// It answered that it is unhealthy, or answered something else.
    NotReady,
    /// It did not answer.
    NoAnswer,
    /// The check itself could not run.
    Broken,
}

impl CheckOutcome {
    /// An outcome with its message cut to one line.
    pub(super) fn new(finding: CheckFinding, message: &str) -> Self {
        Self {
            finding,
            message: one_line(message, MAX_MESSAGE),
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.finding == CheckFinding::Ok
    }
}

impl CheckFinding {
    pub(super) fn status(self) -> ConditionStatus {
        match self {
            Self::Ok => ConditionStatus::True,
            Self::NotReady | Self::NoAnswer | Self::Broken => ConditionStatus::False,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Ok => "EndpointOK",
            Self::NotReady => "EndpointNotReady",
            Self::NoAnswer => "EndpointConnectionError",
            Self::Broken => "HealthCheckFailed",
        }
    }

    /// The value of the metric's label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Ok => "healthy",
            Self::NotReady => "unhealthy",
            Self::NoAnswer | Self::Broken => "error",
        }
    }
}

/// Why a check failed.
#[derive(Debug)]
pub(super) struct CheckFailure {
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

    fn new(finding: CheckFinding, words: impl Into<String>) -> Self {
        Self {
            finding,
            words: words.into(),
        }
    }
}

/// Joins a text into one line of at most `longest` characters.
fn one_line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    if let Some((end, _)) = line.char_indices().nth(longest) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_answered_fits_on_one_line() {
        for (text, expected) in [
            ("", ""),
            ("ok", "ok"),
            (" two\r\n\tlines\n", "two lines"),
            ("a\u{0}b\u{1b}[31m", "a b [31m"),
            ("öäü-and-more", "öäü-and-mo..."),
        ] {
            assert_eq!(one_line(text, 10), expected, "{text:?}");
        }
    }
}
