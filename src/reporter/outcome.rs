//! The outcome of one check. Pure.

use nodegate_core::api::ConditionStatus;
use nodegate_core::text::cut;

const MAX_MESSAGE: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckOutcome {
    pub(super) finding: CheckFinding,
    /// The rest of a sentence that starts with the endpoint; once [`Self::of`] has been called, the whole sentence.
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckFinding {
    Ok,
    /// It answered that it is unhealthy, or answered something else.
    NotReady,
    NoAnswer,
    /// The check itself could not run.
    Broken,
}

impl CheckOutcome {
    /// The outcome of a check of this endpoint, with a message of one line and at most [`MAX_MESSAGE`] bytes.
    pub(super) fn of(self, endpoint: impl std::fmt::Display) -> Self {
        let message = one_line(&format!("{endpoint} {}", self.message));
        let message = cut(message, MAX_MESSAGE);
        Self { message, ..self }
    }
}

impl CheckFinding {
    pub(super) fn because(self, message: impl Into<String>) -> CheckOutcome {
        CheckOutcome {
            finding: self,
            message: message.into(),
        }
    }

    /// The status and the reason of the condition, and the result in metrics.
    pub(super) const fn row(self) -> (ConditionStatus, &'static str, &'static str) {
        match self {
            Self::Ok => (ConditionStatus::True, "EndpointOK", "healthy"),
            Self::NotReady => (ConditionStatus::False, "EndpointNotReady", "unhealthy"),
            Self::NoAnswer => (ConditionStatus::False, "EndpointConnectionError", "error"),
            Self::Broken => (ConditionStatus::False, "HealthCheckFailed", "error"),
        }
    }
}

fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
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
        ] {
            assert_eq!(one_line(text), expected, "{text:?}");
        }
        let long = CheckFinding::Ok.because("long ".repeat(1000));
        assert_eq!(long.of("http://a").message.len(), MAX_MESSAGE);
    }
}
