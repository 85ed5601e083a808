//! An actor that reverses changes to a taint for a while: it removes the taint when it is added, or restores it when it is
//! removed.

use serde_json::Value;

use super::ask::{has_taint, node_key, set_taints, taint, taints};
use super::due::Due;
use crate::Kind;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster, Who};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};

const UNDOER: &str = "undoer";

/// Reverses changes to one taint.
#[derive(Debug)]
pub struct Undoer {
    key: &'static str,
    from: Time,
    until: Time,
    /// Whether it removes the taint rather than restores it.
    removes: bool,
    due: Due<String>,
}

impl Undoer {
    /// Removes the taint of this key whenever it is added in this time.
    pub fn removes(key: &'static str, from: Time, until: Time) -> Self {
        Self {
            key,
            from,
            until,
            removes: true,
            due: Due::default(),
        }
    }

    /// Restores the taint of this key whenever it is removed in this time.
    pub fn puts_back(key: &'static str, from: Time, until: Time) -> Self {
        Self {
            removes: false,
            ..Self::removes(key, from, until)
        }
    }
}

impl Actor for Undoer {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some(name) = self.due.take(cluster.now()) {
            let Some(node) = cluster.get(&node_key(&name)).cloned() else {
                continue;
            };
            if has_taint(&node, self.key) != self.removes {
                continue;
            }
            let others = taints(&node).iter().filter(|it| it["key"] != self.key);
            let ours = (!self.removes).then(|| taint(self.key));
            let list: Vec<Value> = others.cloned().chain(ours).collect();
            // Nobody has written the node since it was read.
            let _ = set_taints(cluster, UNDOER, &node, &list);
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        let (Kind::Node, Some(after)) = (change.key.kind, &change.after) else {
            return;
        };
        let is_ours = change.who == Who::Actor(UNDOER);
        if is_ours || change.at < self.from || change.at >= self.until {
            return;
        }
        let before = change.before.as_deref();
        let had = before.is_some_and(|before| has_taint(before, self.key));
        let has = has_taint(after, self.key);
        if had != has && has == self.removes {
            let at = change.at + rng.between(ms(50), ms(500));
            self.due.at(at, change.key.name.clone());
        }
    }
}
