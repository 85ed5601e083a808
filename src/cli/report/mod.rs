//! `report`: status, held nodes, starts and findings as one HTML page: printable, dark or light, without scripts or external resources.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::check::Checkup;
use super::explain::NodeExplanation;
use super::page::{Block, Branch, Line, Page, Render};
use super::snapshot::last_seen;
use super::startup::Startups;
use super::status::ClusterStatus;

/// Of how many nodes that joined last it has the picture.
const PICTURES: usize = 10;

/// The page. `cluster` is the name of what was read, `held` has some of the held nodes, each with its events, and `starts` those of
/// new nodes, some of them as pictures.
pub(super) fn report(
    at: Timestamp,
    cluster: &str,
    status: &ClusterStatus,
    held: &[(NodeExplanation, Vec<Event>)],
    starts: &Startups,
    checkup: &Checkup,
) -> String {
    let page = Page {
        wide: true,
        now: at,
        ..Page::default()
    };
    let made = concat!("made by kubectl nodegate ", env!("CARGO_PKG_VERSION"));
    let made = format!("cluster {cluster}, read at {at:.0}; {made}");
    let held = held.iter().flat_map(|(node, events)| {
        let events = Branch::from("its events").over(events.iter().map(of_event));
        let events = (!events.below.is_empty()).then(|| events.into());
        node.blocks(&page).into_iter().chain(events)
    });
    let new = starts.nodes.iter().take(PICTURES);
    let new = new.flat_map(|it| it.blocks(&page));
    let new = starts.blocks(&page).into_iter().chain(new).collect();
    let sections = [
        ("Status", status.blocks(&page)),
        ("Held nodes", held.collect()),
        ("New nodes", new),
        ("Findings", checkup.blocks(&page)),
    ];
    let sections = sections.into_iter().filter(|it| !it.1.is_empty());
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
        of_tree(&Line::new().faint(made).into()),
        sections.collect::<String>()
    )
}

fn of_block(block: &Block) -> String {
    let rows = match block {
        Block::Tree(tree) => return of_tree(tree),
        Block::Table(rows) => rows.iter(),
    };
    let rows = rows.enumerate().map(|(index, row)| {
        let name = if index == 0 { "th" } else { "td" };
        let cell = |line: &Line| format!("<{name}>{}</{name}>", of_line(line));
        format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>())
    });
    let rows: String = rows.collect();
    format!("<div class=\"wide\">\n<table>\n{rows}</table>\n</div>\n")
}

fn of_event(event: &Event) -> Line {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let at = last_seen(event).map_or_else(String::new, |at| format!("{at:.0}"));
    let line = Line::new().faint(at + " ").strong(text(&event.reason));
    line.plain(format!(": {}", text(&event.message)))
}

fn of_tree(tree: &Branch) -> String {
    let line = format!("<p>{}</p>\n", of_line(&tree.line));
    let below = tree.below.iter();
    let below = below.map(|it| format!("<li>{}</li>\n", of_tree(it)));
    let below: String = below.collect();
    if below.is_empty() {
        return line;
    }
    format!("{line}<ul>{below}</ul>\n")
}

/// A line; all text of a page comes through this, escaped.
fn of_line(line: &Line) -> String {
    let spans = line.pieces().map(|(class, text)| {
        if class == "bar" {
            return of_bar(text);
        }
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

/// A bar, each of its characters as a rectangle.
fn of_bar(text: &str) -> String {
    let drawn = text.chars().enumerate().filter(|(_, it)| *it != ' ');
    let drawn = drawn.map(|(at, it)| {
        let class = u32::from(it);
        format!("<rect class=\"bar-{class:x}\" x=\"{at}\" width=\"1\" height=\"1\"></rect>")
    });
    let (drawn, width) = (drawn.collect::<String>(), text.chars().count());
    format!("<svg viewBox=\"0 0 {width} 1\" preserveAspectRatio=\"none\">{drawn}</svg>")
}
