//! What the nodes that joined last waited for, and for how long.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{ComponentStart, Phase, Startup, seconds, startup};
use crate::snapshot::Snapshot;

/// The parts of a component's start; the last ones are only on wide pages.
pub(super) const PARTS: [&str; 7] = [
    "images", "start", "probe", "whole", "gain", "bound", "other",
];

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Startups {
    /// The component that most nodes waited for last comes first.
    pub components: Vec<Figures>,
    /// The node that joined last comes first.
    pub nodes: Vec<Startup>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub component: String,
    /// On how many nodes it came last.
    pub last: usize,
    /// Median and 90th percentile of each part, in seconds, over the released nodes where it is known.
    pub parts: BTreeMap<&'static str, [i64; 2]>,
}

/// The starts of the nodes that joined last, at most so many.
pub(crate) fn startups(snapshot: &Snapshot, most: usize) -> Startups {
    let mut nodes: Vec<_> = snapshot.view.nodes().collect();
    nodes.sort_by_key(|node| (Reverse(node.created), &node.name));
    let nodes = nodes.iter();
    let nodes = nodes.filter_map(|node| startup(snapshot, &node.name));
    let nodes: Vec<Startup> = nodes.take(most).collect();
    let mut found: BTreeMap<&str, BTreeMap<&str, Vec<i64>>> = BTreeMap::new();
    for start in nodes.iter().filter(|it| it.released.is_some()) {
        for it in &start.components {
            let parts = found.entry(&it.component).or_default();
            for (part, seconds) in PARTS.into_iter().zip(parts_of(it, start)) {
                parts.entry(part).or_default().extend(seconds);
            }
        }
    }
    let quantiles = |(part, mut all): (_, Vec<i64>)| {
        all.sort_unstable();
        let at = |percent| all.get(all.len() * percent / 100).copied();
        Some((part, [at(50)?, at(90)?]))
    };
    let figures = found.into_iter().map(|(component, parts)| Figures {
        component: component.to_owned(),
        last: parts["gain"].len(),
        parts: parts.into_iter().filter_map(quantiles).collect(),
    });
    let mut components: Vec<Figures> = figures.collect();
    components.sort_by_key(|it| Reverse(it.last));
    Startups {
        components,
        nodes,
        notes: snapshot.notes(),
    }
}

/// The parts in seconds, as far as they are known.
fn parts_of(it: &ComponentStart, all: &Startup) -> [Option<i64>; PARTS.len()] {
    use Phase::{Prepared, Scheduled, Started, Waiting};
    let since = |from| Some(seconds((from, it.done?)));
    let of = [Scheduled, Prepared, Started, Waiting].map(|phase| it.seconds(phase));
    let [bound, images, start, other] = of;
    // A probe finds what has been so since the one before, or since the start.
    let probe = it.probed_every_seconds.map(i64::from).min(start);
    let others = all.components.iter();
    let others = others.filter(|other| other.component != it.component && other.done <= it.done);
    let second = others.filter_map(|other| other.done).max();
    let gain = since(second.unwrap_or(all.created));
    let gain = gain.filter(|_| all.last.as_ref() == Some(&it.component));
    let whole = since(all.created);
    [images, start, probe, whole, gain, bound, other]
}
