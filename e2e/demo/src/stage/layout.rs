//! Text that fits a terminal's width, and its colours.

use std::time::Duration;

/// Whether to print colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// ANSI colours.
    Ansi,
    /// None: plain output, or `NO_COLOR`.
    None,
}

/// A colour, by its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// As it should be.
    Good,
    /// Not yet.
    Waiting,
    /// Something is wrong.
    Bad,
    /// Of minor interest.
    Faint,
    /// A heading.
    Strong,
    /// Without a colour.
    Plain,
}

impl Colours {
    /// The text in a colour.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Good => "32",
            Paint::Waiting => "33",
            Paint::Bad => "31",
            Paint::Faint => "2",
            Paint::Strong => "1",
            Paint::Plain => return text.to_owned(),
        };
        match self {
            Self::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::None => text.to_owned(),
        }
    }
}

/// The text, cut to `width` characters with an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// Breaks the text between words into lines of at most `width` characters. A longer word has a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A duration in seconds, with a tenth: `8.1 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f32())
}

/// A latency: `27 ms`, or in seconds if it is long.
pub fn latency(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        seconds(duration)
    }
}

/// `1 pod`, `2 pods`.
pub fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_only_where_it_is_too_long() {
        for (text, width, expected) in [
            ("gated", 5, "gated"),
            ("gated", 4, "gat…"),
            ("gäted", 4, "gät…"),
            ("gated", 1, "…"),
            ("gated", 0, ""),
        ] {
            assert_eq!(cut(text, width), expected);
        }
    }

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("incomprehensible word", 4),
            ["incomprehensible", "word"]
        );
        assert!(wrap("", 4).is_empty());
    }

    #[test]
    fn there_is_no_escape_sequence_without_colours() {
        assert_eq!(Colours::None.paint(Paint::Bad, "no"), "no");
        assert_eq!(Colours::Ansi.paint(Paint::Bad, "no"), "\x1b[31mno\x1b[0m");
    }

    #[test]
    fn a_latency_is_told_in_the_unit_that_suits_it() {
        assert_eq!(latency(Duration::from_micros(27_900)), "27 ms");
        assert_eq!(latency(Duration::from_millis(1_250)), "1.2 s");
    }
}
