//! What every page is written with.

/// The remark at the top of a generated page.
pub(super) const GENERATED: &str = "<!-- Written by `make docs` from the code; change that. -->\n";

/// Text as a cell of a table takes it.
pub(super) fn cell(text: &str) -> String {
    text.trim()
        .replace('|', "\\|")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}
