//! Lines of styled text, and where they are broken: between words only.

use crate::cli::printable::printable;

/// Joins words that stay on one line where they fit on one.
const JOINT: char = '\u{a0}';

/// The style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Look {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Poor,
    Bad,
}

/// A line of styled pieces. Every piece is escaped by [`printable`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line(Vec<(Look, String)>);

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

    /// Appends a piece.
    pub fn with(mut self, look: Look, text: impl Into<String>) -> Self {
        self.0.push((look, printable(text)));
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

    /// Appends a command: it is only broken where it does not fit on a line of its own.
    pub fn command(self, command: &str) -> Self {
        self.strong(command.replace(' ', &JOINT.to_string()))
    }

    /// The length in characters.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces as they are shown.
    pub fn pieces(&self) -> impl Iterator<Item = (Look, String)> {
        self.0
            .iter()
            .map(|(look, text)| (*look, text.replace(JOINT, " ")))
    }

    /// Whether it says nothing: it is empty, a dash or a zero.
    pub fn is_blank(&self) -> bool {
        let text: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        matches!(text.trim(), "" | "-" | "0")
    }

    /// The length of the longest word.
    pub fn longest_word(&self) -> usize {
        let words = self.words(usize::MAX).into_iter();
        words.map(|word| word.trimmed().len()).max().unwrap_or(0)
    }

    /// Appends blanks, or another line.
    pub fn then(mut self, other: Self) -> Self {
        for (look, text) in other.0 {
            match self.0.last_mut() {
                Some((last, before)) if *last == look => before.push_str(&text),
                _ => self.0.push((look, text)),
            }
        }
        self
    }

    /// Breaks it into lines of at most these lengths: the first one, and all others. A longer word has a line of its own.
    pub fn wrapped(&self, first: usize, others: usize) -> Vec<Self> {
        let mut lines = vec![Self::new()];
        for word in self.words(others) {
            let is_first = lines.len() == 1;
            let room = if is_first { first } else { others };
            let Some(line) = lines.last_mut() else {
                break;
            };
            if line.is_empty() || line.len() + word.clone().trimmed().len() <= room {
                *line = std::mem::take(line).then(word);
            } else {
                lines.push(word);
            }
        }
        lines.into_iter().map(Self::trimmed).collect()
    }

    /// Its words with the blanks behind them. Blanks at its beginning belong to the first word; joined words count as one if
    /// that has room.
    fn words(&self, room: usize) -> Vec<Self> {
        let mut words: Vec<Self> = Vec::new();
        let (mut has_begun, mut is_over) = (false, true);
        for (look, text) in &self.0 {
            for letter in text.chars() {
                if letter == ' ' {
                    is_over = has_begun;
                } else {
                    if is_over {
                        words.push(Self::new());
                    }
                    (has_begun, is_over) = (true, false);
                }
                if words.is_empty() {
                    words.push(Self::new());
                    is_over = false;
                }
                if let Some(word) = words.last_mut() {
                    match word.0.last_mut() {
                        Some((last, before)) if last == look => before.push(letter),
                        _ => word.0.push((*look, letter.into())),
                    }
                }
            }
        }
        let is_long =
            |word: &Self| word.len() > room && word.0.iter().any(|it| it.1.contains(JOINT));
        words
            .into_iter()
            .flat_map(|word| {
                if is_long(&word) {
                    let pieces = word.pieces();
                    Self(pieces.collect()).words(room)
                } else {
                    vec![word]
                }
            })
            .collect()
    }

    /// The line without blanks at its end.
    fn trimmed(mut self) -> Self {
        while let Some((_, text)) = self.0.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// Parses a text with ANSI styles into lines.
    pub fn read(text: &str) -> Vec<Self> {
        let lines = text.lines().map(|line| {
            let mut read = Self::new();
            for (index, piece) in line.split("\u{1b}[").enumerate() {
                let (look, text) = match piece.split_once('m') {
                    Some((code, text)) if index > 0 => (Look::of_code(code), text),
                    _ => (Look::Plain, piece),
                };
                if !text.is_empty() {
                    read = read.with(look, text);
                }
            }
            read
        });
        lines.collect()
    }
}

impl Look {
    const ALL: [Self; 6] = [
        Self::Plain,
        Self::Strong,
        Self::Faint,
        Self::Good,
        Self::Poor,
        Self::Bad,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Poor => "33",
            Self::Bad => "31",
        }
    }

    fn of_code(code: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|look| look.code() == code).unwrap_or_default()
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::new().plain(text)
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        let text = |line: &Line| line.pieces().map(|(_, text)| text).collect();
        lines.iter().map(text).collect()
    }

    #[test]
    fn a_line_is_broken_between_words_only() {
        let styled = Line::new()
            .plain("  closed by ")
            .strong("rule/x")
            .plain(", for one");
        let next = Line::from("next: ").command("kubectl get x");
        for (line, room, expected) in [
            (Line::from("one two  three"), 9, &["one two", "three"][..]),
            (
                Line::from("one incomprehensible two"),
                5,
                &["one", "incomprehensible", "two"],
            ),
            (styled.clone(), 11, &["  closed by", "rule/x, for", "one"]),
            (styled, 7, &["  closed", "by", "rule/x,", "for one"]),
            (next.clone(), 14, &["next:", "kubectl get x"]),
            (next, 11, &["next:", "kubectl get", "x"]),
            (Line::new(), 5, &[""]),
        ] {
            assert_eq!(texts(&line.wrapped(room, room)), expected, "{line:?}");
        }
    }
}
