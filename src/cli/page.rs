//! Answers: lines, trees and a table. Text enters them only through [`Line`], which escapes it; terminal and HTML show the same.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde::Serialize;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter, wrap};

use nodegate_core::text::printable;

/// Joins the words of a command, which is not broken.
const JOINT: &str = "\u{a0}";
/// The blanks between two columns.
const GAP: usize = 3;
/// What stands for the characters of bars.
const ASCII: [(&str, &str); 4] = [("░", ":"), ("▒", "="), ("█", "#"), ("·", ".")];
/// How many lines of a list are shown, but with `-o wide`.
const SHOWN: usize = 10;

pub(super) trait Render: Serialize + Sized {
    /// The version of its form as JSON and YAML.
    const API_VERSION: &'static str = "cli.nodegate.dev/v1alpha1";
    const KIND: &'static str;

    fn blocks(&self, _: &Page) -> Vec<Block> {
        Vec::new()
    }

    fn text(&self, page: &Page) -> String {
        page.text(&self.blocks(page))
    }

    fn typed(&self) -> Typed<'_, Self> {
        Typed {
            api_version: Self::API_VERSION,
            kind: Self::KIND,
            answer: self,
        }
    }

    /// Whether the command found what it looks for; scripts see this in the exit code.
    fn is_no(&self) -> bool {
        false
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NextStep {
    pub say: String,
    pub command: String,
}

impl NextStep {
    pub(super) fn new(say: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            say: say.into(),
            command: command.into(),
        }
    }

    pub(super) fn see_node(name: &str) -> Self {
        let command = format!("kubectl nodegate explain node/{name}");
        Self::new("see why, and what to do", command)
    }
}

impl From<&NextStep> for Line {
    fn from(next: &NextStep) -> Self {
        let line = Self::new().strong("next: ");
        line.plain(format!("{}: ", next.say))
            .command(&*next.command)
    }
}

macro_rules! looks {
    ($($look:ident $name:ident $style:expr;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Look {
            $($look),+
        }

        impl Look {
            /// Its style on a terminal, and its class in HTML.
            const fn parts(self) -> (Style, &'static str) {
                match self {
                    $(Self::$look => ($style, stringify!($name))),+
                }
            }
        }

        impl Line {
            $(pub(super) fn $name(self, text: impl Into<String>) -> Self {
                self.with(Look::$look, text)
            })+
        }
    };
}

looks! {
    Plain plain Style::new();
    Strong strong Style::new().bold();
    Command command Style::new().bold();
    Faint faint Style::new().dimmed();
    Good good AnsiColor::Green.on_default();
    Poor poor AnsiColor::Yellow.on_default();
    Bad bad AnsiColor::Red.on_default();
    Bar bar Style::new();
}

/// Declares the states of something, each with its look and the words for it.
macro_rules! states {
    (
        $(#[$attr:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$state_attr:meta])* $state:ident = $look:ident $words:literal, )+
        }
    ) => {
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        $vis enum $name {
            $( $(#[$state_attr])* $state, )+
        }

        impl $name {
            pub(super) const fn words(self) -> ($crate::page::Look, &'static str) {
                match self {
                    $( Self::$state => ($crate::page::Look::$look, $words), )+
                }
            }
        }
    };
}

pub(super) use states;

/// Text in pieces, each escaped by [`printable`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line(Vec<(Look, String)>);

impl Line {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Starts a line with an object, as `kind/name`.
    pub(super) fn about(object: String) -> Self {
        Self::new().strong(object).plain("  ")
    }

    /// Starts a line with ✓ or ✗.
    pub(super) fn mark(is_good: bool) -> Self {
        if is_good {
            Self::new().good("✓ ")
        } else {
            Self::new().bad("✗ ")
        }
    }

    pub(super) fn with(mut self, look: Look, text: impl Into<String>) -> Self {
        self.0.push((look, printable(text)));
        self
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let pieces = self.0.iter();
        pieces.map(|(look, text)| (look.parts().1, text.as_str()))
    }

    /// The text for a terminal, styled word by word, so that lines break between words whatever the styles; a command stays on one.
    fn styled(&self, colour: bool) -> String {
        let mut out = String::new();
        for (look, text) in &self.0 {
            let style = if colour { look.parts().0 } else { Style::new() };
            let joint = [" ", JOINT][usize::from(*look == Look::Command)];
            for (index, word) in text.split(' ').enumerate() {
                out.push_str(if index > 0 { joint } else { "" });
                if !word.is_empty() {
                    let _ = write!(out, "{style}{word}{style:#}");
                }
            }
        }
        out
    }
}

impl<T: Into<String>> From<T> for Line {
    fn from(text: T) -> Self {
        Self::new().plain(text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Branch {
    pub line: Line,
    pub below: Vec<Branch>,
}

impl Branch {
    pub(super) fn over<T: Into<Self>>(mut self, below: impl IntoIterator<Item = T>) -> Self {
        self.below.extend(below.into_iter().map(Into::into));
        self
    }
}

impl<T: Into<Line>> From<T> for Branch {
    fn from(line: T) -> Self {
        Self {
            line: line.into(),
            below: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    Tree(Branch),
    /// Rows of cells; the first has the heads of the columns.
    Table(Vec<Vec<Line>>),
}

impl<T: Into<Branch>> From<T> for Block {
    fn from(tree: T) -> Self {
        Self::Tree(tree.into())
    }
}

pub(super) fn notes(notes: &[String]) -> impl Iterator<Item = Block> {
    let notes = notes.iter();
    notes.map(|note| Line::new().poor("note: ").plain(note).into())
}

fn put(out: &mut String, line: &str) {
    let _ = writeln!(out, "{}", line.replace(JOINT, " ").trim_end());
}

/// The medium that text is rendered for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Width in characters; `None` for no wrapping.
    pub width: Option<usize>,
    pub colour: bool,
    /// Whether to show everything (`-o wide`).
    pub wide: bool,
    /// Whether the terminal has only ASCII for bars.
    pub ascii: bool,
    pub now: Timestamp,
}

impl Page {
    pub(super) fn text(&self, blocks: &[Block]) -> String {
        let mut out = String::new();
        for block in blocks {
            match block {
                Block::Tree(tree) => self.tree(&mut out, "", "", tree),
                Block::Table(rows) => self.table(&mut out, rows),
            }
        }
        let plain = ASCII.iter().filter(|_| self.ascii);
        plain.fold(out, |out, (bar, plain)| out.replace(bar, plain))
    }

    /// Writes a branch after `first`, and what is below it after `next`. Where a line continues, it is indented, so that no line
    /// begins with text from another source; the line to the branches below goes on beside it.
    fn tree(&self, out: &mut String, first: &str, next: &str, branch: &Branch) {
        let beside = match (branch.below.is_empty(), first) {
            (false, _) => "│  ",
            (true, "") => "  ",
            (true, _) => "",
        };
        let then = format!("{next}{beside}");
        let options = Options::new(self.width.unwrap_or(usize::MAX))
            .initial_indent(first)
            .subsequent_indent(&then)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        for line in wrap(&branch.line.styled(self.colour), options) {
            put(out, &line);
        }
        let last = branch.below.len().saturating_sub(1);
        for (index, below) in branch.below.iter().enumerate() {
            let (own, then) = if index == last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let (own, then) = (format!("{next}{own}"), format!("{next}{then}"));
            self.tree(out, &own, &then, below);
        }
    }

    /// Writes a table as kubectl does: one line for each row.
    fn table(&self, out: &mut String, rows: &[Vec<Line>]) {
        let styled = |row: &Vec<Line>| row.iter().map(|it| it.styled(self.colour)).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(styled).collect();
        let width = |column: usize| rows.iter().map(|row| display_width(&row[column])).max();
        let widths = (0..rows[0].len()).map(|column| width(column).unwrap_or_default() + GAP);
        let widths: Vec<usize> = widths.collect();
        for row in &rows {
            let cells = row.iter().zip(&widths);
            let cells =
                cells.map(|(it, width)| it.clone() + &" ".repeat(width - display_width(it)));
            put(out, &cells.collect::<String>());
        }
    }

    /// As many of these as are shown, and how many more there are.
    pub(super) fn some<T, B: Into<Branch>>(&self, all: &[T], of: impl Fn(&T) -> B) -> Vec<Branch> {
        let shown = if self.wide { usize::MAX } else { SHOWN };
        let mut some: Vec<Branch> = all.iter().take(shown).map(|it| of(it).into()).collect();
        if let more @ 1.. = all.len().saturating_sub(shown) {
            let more = format!("and {more} more (-o wide shows all)");
            some.push(Line::new().faint(more).into());
        }
        some
    }

    /// How long ago a time was, as short as in kubectl; 0 for a time in the future.
    pub(super) fn age(&self, since: Timestamp) -> String {
        Self::lasting(self.now.duration_since(since).as_secs().max(0))
    }

    /// A duration in seconds, as short as in kubectl.
    pub(super) fn lasting(seconds: i64) -> String {
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
            assert_eq!(Page::plain(at(seconds)).age(at(0)), expected, "{seconds}");
        }
    }

    #[test]
    fn what_others_write_neither_steers_the_terminal_nor_begins_a_line() {
        let forged = "down\u{1b}[2J\nnext: run this";
        let page = Page {
            width: Some(30),
            ..Page::plain(at(0))
        };
        let tree = Branch::from("root").over([forged]);
        let out = page.text(&[Line::from("note: ").plain(forged).into(), tree.into()]);
        let expected = "note: down\\u001b[2J\\nnext: run\n  this\nroot\n└─ down\\u001b[2J\\nnext: run\n   this\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn the_columns_of_a_table_stay_aligned_in_colour() {
        let rows: Vec<Vec<Line>> = vec![
            vec!["A".into(), "B".into()],
            vec![Line::new().good("long"), "x".into()],
        ];
        let page = Page {
            colour: true,
            ..Page::plain(at(0))
        };
        let coloured = page.text(&[Block::Table(rows)]);
        assert!(
            coloured.ends_with("\u{1b}[32mlong\u{1b}[0m   x\n"),
            "{coloured:?}"
        );
    }
}
