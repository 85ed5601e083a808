//! Renders answers as text: with or without colour, wrapped to the terminal or not, as trees and tables.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde::Serialize;
use textwrap::{Options, WordSeparator, WordSplitter, wrap};

use super::printable::printable;

/// Joins the words of a command, which is not broken.
const JOINT: char = '\u{a0}';
/// The blanks between two columns.
const GAP: usize = 3;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    Strong,
    Faint,
    Good,
    Poor,
    Bad,
}

/// Text for a page. Each piece is escaped by [`printable`], and each of its words is styled by itself, so that a line is broken
/// between words without regard to styles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line(String);

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a line with ✓ or ✗.
    pub fn mark(is_good: bool) -> Self {
        if is_good {
            Self::new().good("✓ ")
        } else {
            Self::new().bad("✗ ")
        }
    }

    pub(super) fn with(mut self, look: Look, text: impl Into<String>) -> Self {
        let style = match look {
            Look::Plain => Style::new(),
            Look::Strong => Style::new().bold(),
            Look::Faint => Style::new().dimmed(),
            Look::Good => AnsiColor::Green.on_default(),
            Look::Poor => AnsiColor::Yellow.on_default(),
            Look::Bad => AnsiColor::Red.on_default(),
        };
        for (index, word) in printable(text).split(' ').enumerate() {
            if index > 0 {
                self.0.push(' ');
            }
            if !word.is_empty() {
                let _ = write!(self.0, "{style}{word}{style:#}");
            }
        }
        self
    }

    pub fn plain(self, text: impl Into<String>) -> Self {
        self.with(Look::Plain, text)
    }

    pub fn strong(self, text: impl Into<String>) -> Self {
        self.with(Look::Strong, text)
    }

    pub fn faint(self, text: impl Into<String>) -> Self {
        self.with(Look::Faint, text)
    }

    pub fn good(self, text: impl Into<String>) -> Self {
        self.with(Look::Good, text)
    }

    pub fn poor(self, text: impl Into<String>) -> Self {
        self.with(Look::Poor, text)
    }

    pub fn bad(self, text: impl Into<String>) -> Self {
        self.with(Look::Bad, text)
    }

    /// Appends a command, which stays on one line.
    pub fn command(self, command: &str) -> Self {
        self.strong(command.replace(' ', &JOINT.to_string()))
    }

    fn width(&self) -> usize {
        textwrap::core::display_width(&self.0)
    }
}

impl<T: Into<String>> From<T> for Line {
    fn from(text: T) -> Self {
        Self::new().plain(text)
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

#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    head: &'static str,
    /// Whether only `-o wide` shows it.
    is_wide: bool,
}

impl Column {
    pub(super) const fn new(head: &'static str) -> Self {
        let is_wide = false;
        Self { head, is_wide }
    }

    pub(super) const fn wide(head: &'static str) -> Self {
        let is_wide = true;
        Self { head, is_wide }
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

impl Page {
    /// No colour, no wrapping.
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
            let (first, next) = (format!("{before}{own}"), format!("{before}{below}"));
            self.wrapped(out, &first, &format!("{next}{beside}"), &branch.line);
            self.branches(out, &next, &branch.below);
        }
    }

    /// Writes a line, wrapped if needed; `first` precedes the first line and `then` the others.
    pub(super) fn wrapped(&self, out: &mut String, first: &str, then: &str, line: &Line) {
        let options = Options::new(self.width.unwrap_or(usize::MAX))
            .initial_indent(first)
            .subsequent_indent(then)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        for line in wrap(&line.0, options) {
            self.put(out, &line);
        }
    }

    /// Writes a table as kubectl does: one line for each row.
    pub(super) fn table(&self, out: &mut String, columns: &[Column], rows: &[Vec<Line>]) {
        let heads = columns.iter().map(|it| Line::new().faint(it.head));
        let heads: Vec<Line> = heads.collect();
        let rows = || std::iter::once(&heads).chain(rows);
        let shown = (0..columns.len()).filter(|it| self.wide || !columns[*it].is_wide);
        let widths = shown.map(|it| (it, rows().map(|row| row[it].width()).max()));
        let widths: Vec<(usize, usize)> = widths
            .map(|(it, width)| (it, width.unwrap_or_default()))
            .collect();
        for row in rows() {
            let cells = widths.iter().map(|(it, width)| {
                let blanks = " ".repeat(width + GAP - row[*it].width());
                row[*it].0.clone() + &blanks
            });
            self.put(out, &cells.collect::<String>());
        }
    }

    /// Writes a line as it is.
    fn put(&self, out: &mut String, line: &str) {
        let line = line.replace(JOINT, " ");
        let line = line.trim_end();
        let _ = if self.colour {
            writeln!(out, "{line}")
        } else {
            writeln!(out, "{}", anstream::adapter::strip_str(line))
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
    fn a_command_is_not_broken() {
        let page = Page {
            width: Some(14),
            ..Page::plain(at(0))
        };
        let mut out = String::new();
        page.line(
            &mut out,
            Line::from("next: say: ").command("kubectl get x -o yaml"),
        );
        assert_eq!(out, "next: say:\n  kubectl get x -o yaml\n");
    }

    #[test]
    fn a_table_has_a_line_for_each_row_and_some_columns_only_if_wide() {
        const COLUMNS: [Column; 3] = [Column::new("A"), Column::wide("C"), Column::new("B")];
        let rows = [vec![Line::new().good("long"), "y".into(), "x".into()]];
        let printed = |page: Page| {
            let mut out = String::new();
            page.table(&mut out, &COLUMNS, &rows);
            out
        };
        assert_eq!(printed(Page::plain(at(0))), "A      B\nlong   x\n");
        let wide = Page {
            wide: true,
            ..Page::plain(at(0))
        };
        assert_eq!(printed(wide), "A      C   B\nlong   y   x\n");
        let coloured = printed(Page {
            colour: true,
            ..Page::plain(at(0))
        });
        assert!(
            coloured.ends_with("\u{1b}[32mlong\u{1b}[0m   x\n"),
            "{coloured:?}"
        );
    }
}
