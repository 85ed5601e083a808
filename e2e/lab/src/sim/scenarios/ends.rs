//! Checks for the end of a scenario without faults.

use std::collections::BTreeSet;

use crate::sim::actors::ask::{condition, has_taint, name, uid};
use crate::sim::cluster::{Change, Cluster, Who};
use crate::{Key, Kind};

/// What is wrong at the end, if anything.
pub(super) type Checked = Result<(), String>;

/// Each node has this status of a condition; empty for none.
pub(super) fn says(cluster: &Cluster, kind: &str, is: &str) -> Checked {
    let mut nodes = cluster.objects(Kind::Node);
    match nodes.find(|(_, node)| condition(node, kind) != is) {
        Some((key, _)) => Err(format!("{key} does not say {is:?} of {kind}")),
        None => Ok(()),
    }
}

/// This many nodes, counted by UID, were ever closed by this key, whoever closed them.
pub(super) fn gated(cluster: &Cluster, key: &str, nodes: usize) -> Checked {
    let states = cluster.changes().iter().filter(|it| is_node(it));
    let states = states.filter_map(|change| change.after.as_ref());
    let gated: BTreeSet<&str> = states
        .filter(|node| has_taint(node, key))
        .map(|node| uid(node))
        .collect();
    same("nodes that have been closed", &gated.len(), &nodes)
}

/// These nodes were created, in this order, each closed by this key or not.
pub(super) fn born_closed(cluster: &Cluster, key: &str, closed: &[bool]) -> Checked {
    let born = cluster.changes().iter().filter(|it| is_node(it));
    let born = born.filter(|change| change.before.is_none());
    let born: Vec<bool> = born
        .filter_map(|change| change.after.as_ref())
        .map(|node| has_taint(node, key))
        .collect();
    same("nodes born closed", &born.as_slice(), &closed)
}

/// Nodegate has added this taint this many times.
pub(super) fn put_on(cluster: &Cluster, key: &str, times: usize) -> Checked {
    same(
        "times that the taint was put on",
        &times_put_on(cluster, key),
        &times,
    )
}

/// How often Nodegate has added this taint.
#[must_use]
pub(super) fn times_put_on(cluster: &Cluster, key: &str) -> usize {
    let had = |change: &Change| change.before.as_ref().is_some_and(|it| has_taint(it, key));
    let has = |change: &Change| change.after.as_ref().is_some_and(|it| has_taint(it, key));
    let ours = cluster.changes().iter().filter(|it| is_node(it));
    let ours = ours.filter(|change| matches!(change.who, Who::Nodegate(_)));
    ours.filter(|change| has(change) && !had(change)).count()
}

/// Exactly these nodes are closed by this key now.
pub(super) fn closed(cluster: &Cluster, key: &str, names: &[&str]) -> Checked {
    let nodes = cluster.objects(Kind::Node).map(|(_, node)| node);
    let closed: Vec<&str> = nodes
        .filter(|node| has_taint(node, key))
        .map(|node| name(node))
        .collect();
    same("nodes that are closed", &closed.as_slice(), &names)
}

/// Exactly these nodes exist.
pub(super) fn there(cluster: &Cluster, names: &[&str]) -> Checked {
    let nodes: Vec<&str> = cluster
        .objects(Kind::Node)
        .map(|(_, node)| name(node))
        .collect();
    same("nodes that are there", &nodes.as_slice(), &names)
}

/// This object is gone.
pub(super) fn gone(cluster: &Cluster, key: &Key) -> Checked {
    match cluster.get(key) {
        Some(_) => Err(format!("{key} is still there")),
        None => Ok(()),
    }
}

/// Compares a value with the expected one.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, should: &T) -> Checked {
    if is == should {
        Ok(())
    } else {
        Err(format!("{what}: {is:?} instead of {should:?}"))
    }
}

fn is_node(change: &Change) -> bool {
    change.key.kind == Kind::Node
}
