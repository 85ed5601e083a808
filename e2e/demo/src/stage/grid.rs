//! Tables of cells under headings.

use super::layout::{Colours, Paint, cut};

/// A cell: its text and colour.
pub type Cell = (String, Paint);

/// Lays out cells under headings. Each column is as wide as its widest cell; the last one fills the rest of `width`.
pub fn grid(heading: &[&str], rows: &[Vec<Cell>], width: usize, colours: Colours) -> Vec<String> {
    let heading: Vec<Cell> = heading
        .iter()
        .map(|text| ((*text).to_owned(), Paint::Strong))
        .collect();
    let all = || std::iter::once(&heading).chain(rows);
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| {
            let cells = all().filter_map(|row| row.get(column));
            cells
                .map(|(text, _)| text.chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    all()
        .map(|row| line(row, &widths, width, colours))
        .collect()
}

fn line(row: &[Cell], widths: &[usize], width: usize, colours: Colours) -> String {
    let mut line = String::new();
    let mut left = width;
    // Gaps precede the next cell that is not empty, so that lines have no trailing blanks.
    let mut gap = 0;
    for ((text, paint), column) in row.iter().zip(widths) {
        let text = cut(text, left.saturating_sub(gap));
        let length = text.chars().count();
        if length > 0 {
            line.push_str(&" ".repeat(gap));
            line.push_str(&colours.paint(*paint, &text));
            left -= gap + length;
            gap = 0;
        }
        gap += column.saturating_sub(length) + 2;
    }
    line
}
