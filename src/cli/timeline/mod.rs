//! `timeline`: what took how long at the start of nodes, and which component makes them slow.

mod bar;
mod spread;
mod start;
#[cfg(test)]
mod tests;
mod text;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::snapshot::Snapshot;
pub use bar::length;
pub use spread::{Spread, spreads};
pub use start::{StageKind, Start};

/// What took how long.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// The node that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many starts are on record.
    pub recorded: usize,
    /// How many starts have not ended yet.
    pub held: usize,
    /// Starts, the slowest first; no more than were asked for.
    pub starts: Vec<Start>,
    /// How long each condition takes, the one first that costs most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Spread>,
    /// What this answer goes without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How a node has started; `None` where there is none of this name.
pub fn timeline_of(snapshot: &Snapshot, node: &str) -> Option<Timeline> {
    let starts = start::of_node(snapshot, snapshot.view.node(node)?.node);
    let mut notes = snapshot.notes();
    if starts.is_empty() {
        notes.push(
            "there is no record of how this node started: no rule has held it, or it was opened before records were kept"
                .into(),
        );
    }
    Some(Timeline {
        conditions: Vec::new(),
        ..timeline(Some(node.to_owned()), starts, usize::MAX, notes)
    })
}

/// How all nodes have started that were created after a time, with so many of the slowest.
pub fn timelines(snapshot: &Snapshot, since: Option<Timestamp>, slowest: usize) -> Timeline {
    let nodes = snapshot.view.nodes();
    let nodes = nodes.filter(|node| since.is_none_or(|since| node.created >= Some(since)));
    let starts = nodes.flat_map(|node| start::of_node(snapshot, node));
    timeline(None, starts.collect(), slowest, snapshot.notes())
}

fn timeline(
    node: Option<String>,
    mut starts: Vec<Start>,
    slowest: usize,
    notes: Vec<String>,
) -> Timeline {
    let conditions = spreads(&starts);
    let recorded = starts.iter().filter(|start| start.opened.is_some()).count();
    let held = starts.len() - recorded;
    starts.sort_by(|a, b| {
        let names = || (&a.node, &a.rule).cmp(&(&b.node, &b.rule));
        b.seconds.total_cmp(&a.seconds).then_with(names)
    });
    starts.truncate(slowest);
    Timeline {
        node,
        recorded,
        held,
        starts,
        conditions,
        notes,
    }
}
