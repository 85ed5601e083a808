//! What must be so at the end of a scenario without faults.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::objects::GATE;
use crate::sim::actors::ask::{condition, has_taint, name, uid};
use crate::sim::cluster::{Change, Cluster, Who};
use crate::{Key, Kind};

/// Something that must be so at the end. Taints are named by their keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// Each node has this condition with this status; empty for none.
    Says(&'static str, &'static str),
    /// This many nodes, counted by UID, were ever held by this taint, whoever put it on.
    Gated(&'static str, usize),
    /// These nodes were created, in this order, each held by this taint or not.
    BornHeld(&'static str, &'static [bool]),
    /// Nodegate has added this taint this many times.
    PutOn(&'static str, usize),
    /// After this many nodes had joined, at most that many were gated again.
    GatedAgain(usize, usize),
    /// Exactly these nodes are held by this taint now.
    Held(&'static str, &'static [&'static str]),
    There(&'static [&'static str]),
    /// This cluster-scoped object is gone.
    Gone(Kind, &'static str),
    /// This many pods are on these nodes.
    Pods(&'static [&'static str], usize),
}

impl End {
    /// What is wrong, if anything.
    pub(super) fn check(self, cluster: &Cluster) -> Result<(), String> {
        let changes = cluster.changes().iter();
        let changes = changes.filter(|change| change.key.kind == Kind::Node);
        let nodes = || cluster.objects(Kind::Node).map(|(_, node)| &**node);
        match self {
            Self::Says(kind, is) => {
                let odd = nodes().filter(|it| condition(it, kind) != is);
                same(self, odd.map(name).collect(), Vec::<&str>::new())
            }
            Self::Gated(key, count) => {
                let states = changes.filter_map(|change| change.after.as_ref());
                let gated = states.filter(|node| has_taint(node, key));
                let gated: BTreeSet<_> = gated.map(|node| uid(node)).collect();
                same(self, gated.len(), count)
            }
            Self::BornHeld(key, should) => {
                let born = changes.filter(|change| change.before.is_none());
                let gated = born.map(|change| has(change.after.as_deref(), key));
                same(self, gated.collect(), should.to_vec())
            }
            Self::PutOn(key, count) => {
                same(self, changes.filter(|it| adds(it, key)).count(), count)
            }
            Self::GatedAgain(joined, most) => {
                let gated = changes.filter(|it| adds(it, GATE)).count();
                same(self, gated.saturating_sub(joined) <= most, true)
            }
            Self::Held(key, names) => {
                let gated = nodes().filter(|node| has_taint(node, key));
                same(self, gated.map(name).collect::<Vec<_>>(), names.to_vec())
            }
            Self::There(names) => same(self, nodes().map(name).collect::<Vec<_>>(), names.to_vec()),
            Self::Gone(kind, name) => same(self, cluster.get(&Key::cluster(kind, name)), None),
            Self::Pods(on, count) => {
                let pods = cluster.objects(Kind::Pod);
                let pods =
                    pods.filter(|(_, pod)| on.iter().any(|it| pod["spec"]["nodeName"] == **it));
                same(self, pods.count(), count)
            }
        }
    }
}

fn has(node: Option<&serde_json::Value>, key: &str) -> bool {
    node.is_some_and(|node| has_taint(node, key))
}

/// Whether Nodegate has added this taint.
fn adds(change: &Change, key: &str) -> bool {
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    matches!(change.who, Who::Nodegate(_)) && has(after, key) && !has(before, key)
}

fn same<T: PartialEq + Debug>(end: End, is: T, should: T) -> Result<(), String> {
    if is == should {
        Ok(())
    } else {
        Err(format!("{end:?}: {is:?} instead of {should:?}"))
    }
}
