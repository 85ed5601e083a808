//! `timeline`: how long each stage of a node's start took, and which component delays nodes.

mod bar;
mod spread;
mod start;
#[cfg(test)]
mod tests;
mod text;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::snapshot::Snapshot;
pub(super) use bar::length;
pub(super) use spread::{Spread, spreads};
pub(super) use start::{StageKind, Start};

/// The stages of node starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Timeline {
    /// The node; `None` for the whole fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many starts are recorded.
    pub recorded: usize,
    /// How many starts have not ended yet.
    pub held: usize,
    /// The slowest starts, slowest first, as many as requested.
    pub starts: Vec<Start>,
    /// The durations of each condition, longest delay first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Spread>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The starts of one node; `None` if it does not exist.
pub(super) fn timeline_of(snapshot: &Snapshot, node: &str) -> Option<Timeline> {
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

/// The starts of all nodes created after `since`, with the `slowest` ones listed.
pub(super) fn timelines(snapshot: &Snapshot, since: Option<Timestamp>, slowest: usize) -> Timeline {
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
