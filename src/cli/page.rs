//! Renders answers as text: with or without colour, wrapped to the terminal or not, as trees and tables.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;

mod line;
mod table;

pub(super) use line::{Line, Look};
pub(super) use table::Column;

/// An answer, as text or as an object.
pub(super) trait Render: Serialize {
    /// The version of its form as JSON and YAML.
    const API_VERSION: &'static str = "cli.nodegate.dev/v1alpha1";
    /// Its kind in JSON and YAML.
    const KIND: &'static str;

    fn text(&self, page: &Page) -> String;

    /// Whether the command found what it looks for; scripts see this in the exit code.
    fn is_no(&self) -> bool {
        false
    }

    /// What the answer needs and could not be read; standard error and the exit code say so.
    fn unread(&self) -> Option<String> {
        None
    }
}

/// An answer with its kind, as Kubernetes' objects have it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Typed<'a, A> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    answer: &'a A,
}

impl<'a, A: Render> Typed<'a, A> {
    pub(super) fn of(answer: &'a A) -> Self {
        Self {
            api_version: A::API_VERSION,
            kind: A::KIND,
            answer,
        }
    }
}

/// The medium that text is rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    /// Width in characters; `None` for no wrapping.
    pub width: Option<usize>,
    pub colour: bool,
    /// Whether to show everything (`-o wide`).
    pub wide: bool,
    pub now: Timestamp,
}

/// What to do next, and the command for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NextStep {
    pub say: String,
    pub command: String,
}

impl NextStep {
    pub fn new(say: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            say: say.into(),
            command: command.into(),
        }
    }

    pub fn line(&self) -> Line {
        let line = Line::new().strong("next: ");
        line.plain(format!("{}: ", self.say)).command(&self.command)
    }
}

/// A line with branches below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Branch {
    line: Line,
    below: Vec<Branch>,
}

impl Branch {
    pub(super) fn new(line: impl Into<Line>) -> Self {
        Self {
            line: line.into(),
            below: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, below: Self) {
        self.below.push(below);
    }

    pub(super) fn over(mut self, below: impl IntoIterator<Item = Self>) -> Self {
        self.below.extend(below);
        self
    }
}

impl Page {
    /// A page for a file: no colour, no wrapping.
    #[cfg(test)]
    pub(super) fn plain(now: Timestamp) -> Self {
        Self {
            width: None,
            colour: false,
            wide: false,
            now,
        }
    }

    /// Writes a line. Continuation lines are indented, so that no line begins with text from another source.
    pub(super) fn line(&self, out: &mut String, line: impl Into<Line>) {
        self.wrapped(out, "", "  ", &line.into());
    }

    pub(super) fn notes(&self, out: &mut String, notes: &[String]) {
        for note in notes {
            self.line(out, Line::new().poor("note: ").plain(note));
        }
    }

    pub(super) fn tree(&self, out: &mut String, root: &Branch) {
        let then = if root.below.is_empty() {
            "   "
        } else {
            "│  "
        };
        self.wrapped(out, "", then, &root.line);
        self.branches(out, "", &root.below);
    }

    fn branches(&self, out: &mut String, before: &str, branches: &[Branch]) {
        for (index, branch) in branches.iter().enumerate() {
            let is_last = index + 1 == branches.len();
            let (own, below) = if is_last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            // Continuation lines are aligned with the text, with the line to the branches below beside them.
            let beside = if branch.below.is_empty() { "" } else { "│  " };
            let next = format!("{before}{below}");
            self.wrapped(
                out,
                &format!("{before}{own}"),
                &format!("{next}{beside}"),
                &branch.line,
            );
            self.branches(out, &next, &branch.below);
        }
    }

    /// Writes a line, wrapped if needed; `first` precedes the first line and `then` the others.
    pub(super) fn wrapped(&self, out: &mut String, first: &str, then: &str, line: &Line) {
        let room = |before: &str| match self.width {
            Some(width) => width.saturating_sub(before.chars().count()),
            None => usize::MAX,
        };
        let lines = line.wrapped(room(first), room(then));
        for (index, line) in lines.iter().enumerate() {
            out.push_str(if index == 0 { first } else { then });
            self.put(out, line);
        }
    }

    /// Writes a table. Where there is no room for all of it, columns go, or their cells are wrapped.
    pub(super) fn table(&self, out: &mut String, columns: &[Column], rows: &[Vec<Line>]) {
        for line in table::wrapped(columns, rows, self.width, self.wide) {
            self.put(out, &line);
        }
    }

    /// Writes a line as it is.
    fn put(&self, out: &mut String, line: &Line) {
        for (look, text) in line.pieces() {
            self.styled(out, look, &text);
        }
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }

    fn styled(&self, out: &mut String, look: Look, text: &str) {
        let code = look.code();
        let _ = if text.is_empty() {
            Ok(())
        } else if self.colour && !code.is_empty() {
            write!(out, "\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            out.write_str(text)
        };
    }

    /// How long ago a time was, as short as in kubectl; 0 for a time in the future.
    pub(super) fn age(&self, since: Timestamp) -> String {
        age(self.now, since)
    }
}
/// The time from `since` to `now`, as short as in kubectl.
pub(super) fn age(now: Timestamp, since: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |large: i64, unit: char, small: i64, of: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{of}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0..2) => format!("{seconds}s"),
        (0, 0, 2..10) => with(minutes, 'm', seconds % 60, 's'),
        (0, 0..3, _) => format!("{minutes}m"),
        (0, 3..8, _) => with(hours, 'h', minutes % 60, 'm'),
        (0..2, _, _) => format!("{hours}h"),
        (2..8, _, _) => with(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn ages_are_as_kubectl_has_them() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (7200, "120m"),
            (4 * 3600, "4h"),
            (4 * 3600 + 60, "4h1m"),
            (30 * 3600, "30h"),
            (3 * 86_400 + 3600, "3d1h"),
            (30 * 86_400, "30d"),
            (-5, "0s"),
        ] {
            assert_eq!(age(at(seconds), at(0)), expected, "{seconds}");
        }
    }

    #[test]
    fn what_is_written_in_colour_can_be_read_again() {
        let line = Line::new().with(Look::Bad, "held").plain(" for 2s");
        let page = Page {
            colour: true,
            ..Page::plain(at(0))
        };
        let mut out = String::new();
        page.line(&mut out, line.clone());
        page.line(&mut out, "plain");
        assert_eq!(Line::read(&out), [line, Line::from("plain")]);
    }

    #[test]
    fn what_others_write_neither_steers_the_terminal_nor_begins_a_line() {
        let forged = "down\u{1b}[2J\nnext: run this";
        let page = Page {
            width: Some(30),
            ..Page::plain(at(0))
        };
        let mut out = String::new();
        page.line(&mut out, Line::from("note: ").plain(forged));
        page.tree(&mut out, &Branch::new("root").over([Branch::new(forged)]));
        let expected = "note: down\\u001b[2J\\nnext: run\n  this\nroot\n└─ down\\u001b[2J\\nnext: run\n   this\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_tree_is_wrapped_below_its_text() {
        let tree = Branch::new("root").over([
            Branch::new("one two three").over([Branch::new("below")]),
            Branch::new("last of all"),
        ]);
        let mut out = String::new();
        let page = Page {
            width: Some(10),
            ..Page::plain(at(0))
        };
        page.tree(&mut out, &tree);
        let expected = "root\n├─ one two\n│  │  three\n│  └─ below\n└─ last of\n   all\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_table_is_as_wide_as_what_is_in_it() {
        const COLUMNS: [Column; 2] = [Column::new("A"), Column::new("B")];
        let mut out = String::new();
        let page = Page {
            colour: true,
            ..Page::plain(at(0))
        };
        let cell = |text: &str| Line::new().with(Look::Good, text);
        page.table(&mut out, &COLUMNS, &[vec![cell("long"), cell("x")]]);
        let expected = "\u{1b}[2mA\u{1b}[0m      \u{1b}[2mB\u{1b}[0m\n\u{1b}[32mlong\u{1b}[0m   \u{1b}[32mx\u{1b}[0m\n";
        assert_eq!(out, expected);
    }
}
