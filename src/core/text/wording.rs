//! Truncates long texts and lists, escapes what others wrote, and counts things, the same way everywhere.

use std::fmt::Write as _;

/// The text in at most `most` bytes: a longer one is cut at a character boundary and ends in three dots.
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let mut ends = (0..=most.saturating_sub(3)).rev();
        let end = ends.find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
    }
    text
}

/// What others wrote, for logs and messages: at most 1 KiB of it, [`printable`].
pub fn quoted(text: String) -> String {
    printable(cut(text, 1024))
}

/// Escapes as in JSON what a terminal would not show: controls, line ends, bidirectional overrides, zero-width characters.
pub fn printable(text: impl Into<String>) -> String {
    let text = text.into();
    if !text.contains(is_hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            hidden if is_hidden(hidden) => {
                for unit in hidden.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            shown => out.push(shown),
        }
    }
    out
}

/// Escapes each line of a text, and keeps the line ends.
pub fn printable_lines(text: &str) -> String {
    let lines = text.split('\n').map(printable);
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether this is a control or formatting character of Unicode (categories Cc, Cf, Zl and Zp).
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The first few names, and how many more there are.
pub fn enumerated(names: impl ExactSizeIterator<Item = String>) -> String {
    first(5, names, ", ")
}

/// The first few statements, and how many more there are.
pub fn stated(statements: impl ExactSizeIterator<Item = String>) -> String {
    first(3, statements, "; ")
}

fn first(shown: usize, all: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let more = all.len().saturating_sub(shown);
    and_more(all.take(shown).collect::<Vec<_>>().join(separator), more)
}

pub fn and_more(shown: String, more: usize) -> String {
    match more {
        0 => shown,
        more => format!("{shown} (+{more} more)"),
    }
}

/// The count with its noun: "1 node", "2 nodes".
pub fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(cut("short".into(), 5), "short");
        assert_eq!(cut("éééé".into(), 7), "éé...");
    }

    #[test]
    fn a_long_list_is_cut_off() {
        let names = |count: usize| (0..count).map(|it| it.to_string());
        assert_eq!(
            enumerated(names(5).collect::<Vec<_>>().into_iter()),
            "0, 1, 2, 3, 4"
        );
        assert_eq!(
            enumerated(names(7).collect::<Vec<_>>().into_iter()),
            "0, 1, 2, 3, 4 (+2 more)"
        );
    }

    #[test]
    fn what_steers_a_terminal_or_hides_is_escaped() {
        for (text, expected) in [
            ("as it is: é 日本 ├─ ✓", "as it is: é 日本 ├─ ✓"),
            ("\u{1b}]52;c;eA==\u{7}", "\\u001b]52;c;eA==\\u0007"),
            ("a\r\n\tb\u{7f}", "a\\r\\n\\tb\\u007f"),
            ("\u{9b}31m\u{85}\u{2028}", "\\u009b31m\\u0085\\u2028"),
            (
                "\u{202e}gpj\u{2069}\u{200b}\u{feff}",
                "\\u202egpj\\u2069\\u200b\\ufeff",
            ),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\u{8}\nb\n"), "a\\u0008\nb\n");
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({"a": ["\u{1b}[2J\n", "\u{9b}\u{202e}\u{e0041}"]});
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        let printed = printable_lines(&text);
        assert!(printed.is_ascii(), "{printed}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&printed).ok(),
            Some(value)
        );
    }
}
