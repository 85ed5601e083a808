//! Somebody who undoes what is done to a taint, for a while: he takes it off where it is put on, or puts it back where it is
//! lifted.

use serde_json::{Value, json};

use super::ask::{has_taint, node_key, set_taints, taints};
use super::due::Due;
use crate::Kind;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster, Who};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};

const UNDOER: &str = "undoer";

/// Somebody who undoes.
#[derive(Debug)]
pub struct Undoer {
    key: &'static str,
    from: Time,
    until: Time,
    /// Whether he takes the taint off, and not puts it back.
    removes: bool,
    due: Due<String>,
}

impl Undoer {
    /// He takes the taint of this key off where it is put on, in this time.
    #[must_use]
    pub fn removes(key: &'static str, from: Time, until: Time) -> Self {
        Self {
            key,
            from,
            until,
            removes: true,
            due: Due::default(),
        }
    }

    /// He puts the taint of this key back where it is lifted, in this time.
    #[must_use]
    pub fn puts_back(key: &'static str, from: Time, until: Time) -> Self {
        Self {
            removes: false,
            ..Self::removes(key, from, until)
        }
    }
}

impl Actor for Undoer {
    fn name(&self) -> &'static str {
        UNDOER
    }

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
            let ours = (!self.removes).then(|| json!({"key": self.key, "effect": "NoSchedule"}));
            let list: Vec<Value> = others.cloned().chain(ours).collect();
            // It was read just now: nobody has come between.
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
