//! `report`: status and findings as one self-contained HTML page for a post-mortem or a pull request. It has no scripts and no
//! external resources, supports dark and light themes, and can be printed.

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::check::Checkup;
use super::page::{Block, Branch, Line, Page, Render};
use super::status::ClusterStatus;

pub(super) fn report(at: Timestamp, status: &ClusterStatus, checkup: &Checkup) -> String {
    let page = Page {
        wide: true,
        ..Page::plain(at)
    };
    let made = concat!("made by kubectl nodegate ", env!("CARGO_PKG_VERSION"));
    let made = Line::new().faint(format!("read at {at}; {made}"));
    let sections = [
        ("Status", status.blocks(&page)),
        ("Findings", checkup.blocks(&page)),
    ];
    let sections = sections.map(|(title, blocks)| {
        let blocks: String = blocks.iter().map(of_block).collect();
        format!("<section><h2>{title}</h2>\n{blocks}</section>\n")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Nodegate report</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <h1>Nodegate report</h1>\n{}{}</body>\n</html>\n",
        include_str!("style.css"),
        of_tree(&made.into()),
        sections.concat()
    )
}

fn of_block(block: &Block) -> String {
    let rows = match block {
        Block::Tree(tree) => return of_tree(tree),
        Block::Table(rows) => rows.iter(),
    };
    let cell = |line: &Line| format!("<td>{}</td>", of_line(line));
    let rows = rows.map(|row| format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>()));
    format!("<table>\n{}</table>\n", rows.collect::<String>())
}

fn of_tree(tree: &Branch) -> String {
    let line = format!("<p>{}</p>\n", of_line(&tree.line));
    let below = tree.below.iter();
    let below: String = below
        .flat_map(|it| ["<li>".to_owned(), of_tree(it), "</li>\n".to_owned()])
        .collect();
    if below.is_empty() {
        return line;
    }
    format!("{line}<ul>{below}</ul>\n")
}

/// A line; all text of a page comes through this, escaped.
fn of_line(line: &Line) -> String {
    let spans = line.pieces().map(|(class, text)| {
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;");
        format!("<span class=\"{class}\">{text}</span>")
    });
    spans.collect()
}
