//! Truncates long texts and lists, and counts things, the same way everywhere.

/// The text in at most `most` bytes: a longer one is cut at a character boundary and ends in three dots.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most.saturating_sub(3))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
    }
    text
}

/// The first few names, and how many more there are.
pub(crate) fn enumerated(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 {
        format!("{shown} (+{more} more)")
    } else {
        shown
    }
}

/// The count with its noun: "1 node", "2 nodes".
pub(crate) fn counted(count: usize, word: &str) -> String {
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
}
