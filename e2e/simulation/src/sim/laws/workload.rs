//! A joining node under a rule that adds its taint runs no workload pod before its conditions are met. A `DaemonSet`'s pod is part
//! of the node.
//!
//! Once the leader has observed a node, it has a second to gate it. Faults in requests may delay that indefinitely, so
//! schedules that trouble the API server or the leader are not judged.

use std::sync::Arc;

use nodegate_core::api::TaintEffect;
use nodegate_core::condition::Watch;
use serde_json::Value;

use super::placement::tolerates;
use super::rule::Rule;
use super::truth::Answer;
use super::{incidents, longest_age, seconds};
use crate::sim::actors::ask::{is_going, items};
use crate::sim::cluster::Change;
use crate::sim::fault::{Fault, Incident, Trouble};
use crate::sim::law::{Law, Moment};
use crate::sim::time::{Time, s};
use crate::{Key, Kind};

/// How long gating an observed node takes.
const WRITE: Time = s(1);
/// The same when nodes are observed late: the first write may conflict and be retried.
const WRITE_AGAIN: Time = s(3);

pub(super) struct Workload;

impl Law for Workload {
    fn check(&mut self, moment: &Moment<'_>) -> Result<(), String> {
        if moment.faults.iter().any(is_troubling) {
            return Ok(());
        }
        for change in moment.new_changes {
            if let Some((node, pod)) = bound(change) {
                judge(moment, change, node, pod)?;
            }
        }
        Ok(())
    }
}

/// Whether a fault keeps the leader from writing at once.
fn is_troubling(fault: &Fault) -> bool {
    let is_of_watches = |what| {
        matches!(
            what,
            Incident::Stale(_)
                | Incident::Lagging(_)
                | Incident::WatchDelay(..)
                | Incident::Expired(_)
                | Incident::SilentDeath(_)
                | Incident::Storm(Trouble::EventRateLimit)
        )
    };
    match fault {
        Fault::Unobserved { .. } => false,
        Fault::Timed { what, .. } => !is_of_watches(*what),
        Fault::Kill { .. } | Fault::AnswerLost { .. } => true,
    }
}

/// The node and the pod, if the change binds a pod.
fn bound(change: &Change) -> Option<(&str, &Value)> {
    let node = |pod: &Arc<Value>| pod["spec"].get("nodeName").is_some();
    if change.key.kind != Kind::Pod || change.before.as_ref().is_some_and(node) {
        return None;
    }
    let pod = change.after.as_ref()?;
    let mut owners = items(&pod["metadata"]["ownerReferences"]).iter();
    if owners.any(|it| it["kind"] == "DaemonSet") {
        return None;
    }
    Some((pod["spec"]["nodeName"].as_str()?, pod))
}

fn judge(moment: &Moment<'_>, change: &Change, node: &str, pod: &Value) -> Result<(), String> {
    let (at, revision) = (change.at, change.revision);
    let states = moment.cluster.history(&Key::cluster(Kind::Node, node));
    let Some(object) = states.last().and_then(|state| state.object.as_ref()) else {
        return Ok(());
    };
    let uid = &object["metadata"]["uid"];
    let is_of_it = |node: &Arc<Value>| node["metadata"]["uid"] == *uid;
    let came = states
        .iter()
        .find(|state| state.object.as_ref().is_some_and(is_of_it));
    let leaders = moment
        .instances
        .iter()
        .filter(|it| it.leads_since.is_some());
    let seen = leaders
        .filter_map(|it| it.nodes_seen.get(uid.as_str()?))
        .min();
    let (Some(came), Some(seen)) = (came, seen) else {
        return Ok(());
    };
    // An instance that has led for a while observed the node when it came, unless its watch was late or missed an event.
    let is_delayed = incidents(moment).any(|(what, ..)| matches!(what, Incident::WatchDelay(..)));
    let is_late = is_delayed || *seen > came.at + WRITE;
    let write = if is_late { WRITE_AGAIN } else { WRITE };
    // A node that is seen while its API server lags may have changed since: it is gated once the watch is current.
    let caught_up = incidents(moment)
        .filter(|(what, from, lasts)| {
            *what == Incident::Lagging(Watch::Nodes) && (*from..*from + *lasts).contains(seen)
        })
        .map(|(_, from, lasts)| from + lasts + WRITE_AGAIN);
    let closable = caught_up.max().unwrap_or_default().max(*seen + write);
    if at < closable || *seen > came.at + longest_age(moment) {
        return Ok(());
    }
    let known = moment.rules(
        moment
            .cluster
            .at(came.at.saturating_sub(longest_age(moment)))
            .revision(),
    );
    for rule in moment.rules(revision - 1) {
        let was_in_force = known.iter().any(|it| it.uid == rule.uid && is_in_force(it));
        if !was_in_force || !is_in_force(&rule) || !rule.selects(object) {
            continue;
        }
        let taint = rule.taint();
        let value = rule.spec.taint.value.as_deref().unwrap_or_default();
        let is_excused = rule.effect() == TaintEffect::PreferNoSchedule
            || tolerates(&pod["spec"], &taint, value)
            || taint.is_on(object)
            || (rule.is_bootstrap() && rule.is_completed_on(object))
            || is_going(object);
        let was_free = || {
            moment.was_ever(node, (came.at, at), revision, |facts| {
                facts.met(&rule) != Answer::No
                    || !rule.selects(facts.node)
                    || taint.is_on(facts.node)
            })
        };
        if !is_excused && !was_free() {
            return Err(format!(
                "pod {} was bound to node {node} at {}, which the leader saw at {}; its conditions under rule {} have never \
                 been met, and it was never gated",
                change.key.name,
                seconds(at),
                seconds(*seen),
                rule.name,
            ));
        }
    }
    Ok(())
}

fn is_in_force(rule: &Rule) -> bool {
    rule.is_live() && rule.adds()
}
