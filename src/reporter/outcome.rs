//! What one check found.

use crate::api::ConditionStatus;

/// The longest message of a condition, in characters.
const MAX_MESSAGE: usize = 512;

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutcome {
    /// The finding.
    pub finding: CheckFinding,
    /// What was found, in one line.
    pub message: String,
}

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFinding {
    /// It answered that it is well.
    Ok,
    /// It answered something else.
    NotReady,
    /// It did not answer.
    NoAnswer,
    /// The check itself could not be made.
    Broken,
}

impl CheckOutcome {
    /// An outcome whose message is made to fit one line.
    pub fn new(finding: CheckFinding, message: &str) -> Self {
        Self {
            finding,
            message: one_line(message, MAX_MESSAGE),
        }
    }

    /// Whether it speaks for the node.
    pub fn is_good(&self) -> bool {
        self.finding == CheckFinding::Ok
    }
}

impl CheckFinding {
    /// The status of the condition that says so.
    pub fn status(self) -> ConditionStatus {
        match self {
            Self::Ok => ConditionStatus::True,
            Self::NotReady | Self::NoAnswer | Self::Broken => ConditionStatus::False,
        }
    }

    /// The reason of the condition that says so.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Ok => "EndpointOK",
            Self::NotReady => "EndpointNotReady",
            Self::NoAnswer => "EndpointConnectionError",
            Self::Broken => "HealthCheckFailed",
        }
    }

    /// How it is counted.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "healthy",
            Self::NotReady => "unhealthy",
            Self::NoAnswer | Self::Broken => "error",
        }
    }
}

/// A text on one line, of at most so many characters.
pub fn one_line(text: &str, longest: usize) -> String {
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
