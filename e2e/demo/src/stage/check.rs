//! Promises of a demo, and whether they were kept.

use super::layout::{Colours, Paint, wrap};

/// Something a demo promises to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// It happened, in this way.
    Held(String),
    /// It did not: what was seen instead.
    Failed(String),
}

impl Check {
    /// The promise, unless there is a problem.
    #[must_use]
    pub fn new(problem: Option<String>, promise: String) -> Self {
        problem.map_or(Self::Held(promise), Self::Failed)
    }

    /// What was seen instead, where the promise was not kept.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Held(_) => None,
            Self::Failed(problem) => Some(problem),
        }
    }
}

/// The checks, each after a mark.
#[must_use]
pub fn check_lines(checks: &[Check], width: usize, colours: Colours) -> Vec<String> {
    let mut lines = Vec::new();
    for check in checks {
        let (mark, text) = match check {
            Check::Held(promise) => (colours.paint(Paint::Good, "ok  "), promise),
            Check::Failed(problem) => (colours.paint(Paint::Bad, "FAIL"), problem),
        };
        lines.extend(marked(&mark, text, width));
    }
    lines
}

/// A text after a mark of four characters, broken between words.
#[must_use]
pub fn marked(mark: &str, text: &str, width: usize) -> Vec<String> {
    let lines = wrap(text, width.saturating_sub(5)).into_iter();
    let marked = lines.enumerate().map(|(index, line)| match index {
        0 => format!("{mark} {line}"),
        _ => format!("     {line}"),
    });
    marked.collect()
}
