//! A demo's promises, and whether it kept them.

use super::layout::{Colours, Paint, wrap};

/// A promise of a demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// It was kept, in this way.
    Held(String),
    /// It was broken: what was observed instead.
    Failed(String),
}

impl Check {
    /// The promise was kept, unless there is a problem.
    pub fn new(problem: Option<String>, promise: String) -> Self {
        problem.map_or(Self::Held(promise), Self::Failed)
    }

    /// What was observed instead of the broken promises.
    pub fn problems(checks: &[Self]) -> Vec<&str> {
        let problems = checks.iter().filter_map(|check| match check {
            Self::Held(_) => None,
            Self::Failed(problem) => Some(problem.as_str()),
        });
        problems.collect()
    }
}

/// The checks as lines, each after a mark.
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
pub fn marked(mark: &str, text: &str, width: usize) -> Vec<String> {
    let lines = wrap(text, width.saturating_sub(5)).into_iter();
    let marked = lines.enumerate().map(|(index, line)| match index {
        0 => format!("{mark} {line}"),
        _ => format!("     {line}"),
    });
    marked.collect()
}
