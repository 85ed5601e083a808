//! Where each node that replaces a late one is late too, Nodegate replaces three in a row and then no more, until a node of the pool gets
//! ready, or the rule or the pool changes. A process that takes over may not know of the last one. One whose clock
//! was set takes nodes that came since for older: it is not held to this.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ledger::is_ours;
use super::{Process, incidents, is_deleted, process, seconds};
use crate::sim::actors::ask::{annotations, text};
use crate::sim::cluster::{Change, Who};
use crate::sim::fault::Incident;
use crate::sim::law::{Law, Moment};
use crate::sim::time::Time;
use crate::{Key, Kind};

const COMPLETED: &str = "readiness.k8s.io/bootstrap-completed-";
const MOST: usize = 3;

/// The claims that were deleted one after the other, by pool: when, and by whom.
#[derive(Default)]
pub(super) struct Futile(BTreeMap<String, Vec<(Time, Process)>>);

impl Law for Futile {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        for change in moment.new_changes {
            match change.key.kind {
                Kind::Node if is_completed(change) => {
                    self.0.remove(&pool(change.after.as_deref()));
                }
                Kind::NodeReadinessRule | Kind::NodePool if is_edited(change) => self.0.clear(),
                Kind::NodeClaim if is_ours(change.who) && is_deleted(change) => {
                    self.deleted(moment, change)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Futile {
    fn deleted(&mut self, moment: &Moment<'_>, change: &Change) -> Result<(), String> {
        let claim = change.before.as_deref().unwrap_or(&Value::Null);
        let Who::Nodegate(instance) = change.who else {
            return Ok(());
        };
        let node = Key::cluster(Kind::Node, text(&claim["status"]["nodeName"]));
        let came = moment.cluster.history(&node).first().map(|it| it.at);
        let row = self.0.entry(pool(Some(claim))).or_default();
        let last = row.last().map(|it| it.0);
        if last.is_some_and(|last| came.is_none_or(|came| came <= last)) {
            return Ok(());
        }
        row.push((change.at, process(moment, instance)));
        let processes: BTreeSet<_> = row.iter().map(|it| it.1).collect();
        let is_set = incidents(moment).any(|it| matches!(it.0, Incident::ClockStep(..)));
        if is_set || row.len() < MOST + processes.len() {
            return Ok(());
        }
        let times: Vec<String> = row.iter().map(|it| seconds(it.0)).collect();
        Err(format!(
            "{} nodes were replaced one after the other, at {}, and none of the pool has got ready",
            row.len(),
            times.join(", "),
        ))
    }
}

fn pool(object: Option<&Value>) -> String {
    let label = object.map(|it| text(&it["metadata"]["labels"]["karpenter.sh/nodepool"]));
    label.unwrap_or_default().to_owned()
}

fn is_completed(change: &Change) -> bool {
    let has = |object: &Value| annotations(object, COMPLETED).next().is_some();
    change.after.as_deref().is_some_and(has) && !change.before.as_deref().is_some_and(has)
}

fn is_edited(change: &Change) -> bool {
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    change.before.as_deref().map(generation) != change.after.as_deref().map(generation)
}
