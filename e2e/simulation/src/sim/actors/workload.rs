//! A workload: a fixed number of pods that any node may run, each replaced when it goes.

use serde_json::json;

use super::ask::create;
use super::due::Due;
use crate::sim::actor::Actor;
use crate::sim::cluster::{Change, Cluster};
use crate::sim::rng::Rng;
use crate::sim::time::{Time, ms};
use crate::{Key, Kind};

const WORKLOAD: &str = "replica-set-controller";

pub const NAMESPACE: &str = "default";

#[derive(Debug)]
pub struct Workload {
    due: Due<u64>,
    made: u64,
}

impl Workload {
    /// Creates this many pods, the first at this time and one more at each interval.
    pub fn new(pods: u64, first: Time, every: Time) -> Self {
        let mut due = Due::default();
        let mut at = first;
        for number in 0..pods {
            due.at(at, number);
            at += every;
        }
        Self { due, made: pods }
    }
}

impl Actor for Workload {
    fn wake(&self) -> Option<Time> {
        self.due.next()
    }

    fn act(&mut self, cluster: &mut Cluster, _: &mut Rng) {
        while let Some(number) = self.due.take(cluster.now()) {
            let key = Key::namespaced(Kind::Pod, NAMESPACE, &format!("web-{number}"));
            let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {}});
            // Pod names are unique.
            let _ = create(cluster, WORKLOAD, key, pod);
        }
    }

    fn changed(&mut self, change: &Change, _: &Cluster, rng: &mut Rng) {
        let (Kind::Pod, None) = (change.key.kind, &change.after) else {
            return;
        };
        if change.key.namespace == NAMESPACE && change.key.name.starts_with("web-") {
            let at = change.at + rng.between(ms(20), ms(500));
            self.due.at(at, self.made);
            self.made += 1;
        }
    }
}
