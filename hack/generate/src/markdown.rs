//! Markdown that all pages share.

/// The comment at the top of a generated page.
pub(crate) const GENERATED: &str =
    "<!-- Written by `make generate` from the code; change that. -->\n";

/// Escapes text for a table cell.
pub(crate) fn cell(text: &str) -> String {
    text.trim()
        .replace('|', "\\|")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}
