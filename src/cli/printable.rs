//! Prints text from other sources (names, messages, container output), so that it can neither control a terminal nor imitate
//! this command's lines. The escapes are JSON's, so JSON output keeps its value.

pub(super) use crate::wording::printable;

/// Escapes each line of a text, and keeps the line ends.
pub(super) fn printable_lines(text: &str) -> String {
    let lines = text.split('\n').map(printable);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

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
