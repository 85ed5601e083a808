//! `report`: status, held nodes, starts and findings as one HTML page: printable, dark or light, without scripts or external resources.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::check::Checkup;
use super::explain::NodeExplanation;
use super::page::{Block, Branch, Line, Page, Render};
use super::snapshot::last_seen;
use super::status::ClusterStatus;
use nodegate_engine::startup_in;

/// The page. `cluster` is the name of what was read, `held` has some of the held nodes, each with its events, and `completed` the
/// events of completed bootstraps.
pub(super) fn report(
    at: Timestamp,
    cluster: &str,
    status: &ClusterStatus,
    held: &[(NodeExplanation, Vec<Event>)],
    completed: &[Event],
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
    let sections = [
        ("Status", status.blocks(&page)),
        ("Held nodes", held.collect()),
        ("New nodes", starts(completed).into_iter().collect()),
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

/// What new nodes waited for last, and for how long, by their events: what most nodes waited for comes first.
fn starts(completed: &[Event]) -> Option<Block> {
    let mut starts: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let notes = completed.iter().filter_map(|it| it.message.as_deref());
    for (took, component) in notes.filter_map(startup_in) {
        starts.entry(component).or_default().push(took);
    }
    let mut starts: Vec<_> = starts.into_iter().collect();
    starts.sort_by_key(|(_, took)| Reverse(took.len()));
    let heads = ["WAITED FOR LAST", "NODES", "MEDIAN", "LONGEST"];
    let mut rows = vec![heads.map(|head| Line::new().faint(head)).to_vec()];
    for (component, mut took) in starts {
        took.sort_unstable();
        let (nodes, last) = (took.len(), took.len() - 1);
        let cells = [component.to_owned(), nodes.to_string()].into_iter();
        let times = [took[nodes / 2], took[last]].map(Page::lasting);
        rows.push(cells.chain(times).map(Line::from).collect());
    }
    (rows.len() > 1).then_some(Block::Table(rows))
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
