//! What was there until a moment ago: labels of a node, and `DaemonSet`s (`docs/behavior.md`, "Absences").
//!
//! A process knows what it has seen. One that starts later has the node's own word: the condition that an earlier one published names
//! what it waited for, and an annotation the owner of a taint.

use std::sync::Arc;

use nodegate_core::api::names::TAINT_ADDED_BY_PREFIX;
use serde_json::Value;

use super::longest_age;
use super::placement::is_deleted;
use super::rule::{Rule, TaintId, first_of, governing};
use super::truth::Facts;
use crate::sim::actors::ask::{annotations, items, name, text, uid};
use crate::sim::actors::placement::selects_by;
use crate::sim::cluster::State;
use crate::sim::fault::Fault;
use crate::sim::law::Moment;
use crate::sim::time::{Time, s};

/// How long labels of a node must have been otherwise before what they leave out is left out.
const LABELS_LAST: Time = s(5 * 60);
/// How long a `DaemonSet` must have been gone.
const DELETION_LASTS: Time = s(15);
/// How exactly times are measured.
const MARGIN: Time = s(2);
/// How long a process that starts takes to see what is there.
const START: Time = s(5);

/// What counts as there beside what is.
#[derive(Debug)]
pub(super) struct Recalled {
    /// The labels that the node had, the latest first.
    pub labels: Vec<Value>,
    /// The `DaemonSet`s that are there, and those that are gone.
    pub daemon_sets: Vec<Arc<Value>>,
    /// The `DaemonSet`s, by UID, that the node is said to wait for whatever its labels.
    expected: Vec<String>,
    /// The rules, by UID, that are said to own a taint of the node.
    owners: Vec<String>,
}

impl Recalled {
    /// Whether the `DaemonSet` selects the node of this name, as it was or by its own word.
    pub(super) fn expects(&self, daemon_set: &Value, node: &str) -> bool {
        let spec = &daemon_set["spec"]["template"]["spec"];
        let mut labels = self.labels.iter();
        self.expected.iter().any(|it| it == uid(daemon_set))
            || labels.any(|labels| selects_by(spec, node, Some(labels)))
    }

    /// The rule that governs a taint of the node; where there is none now, the one that did.
    pub(super) fn governing<'a>(
        &self,
        rules: &'a [Arc<Rule>],
        taint: &TaintId,
        node: &Value,
    ) -> Option<&'a Arc<Rule>> {
        let did = |rule: &Rule| {
            self.owners.contains(&rule.uid) || self.labels.iter().any(|it| rule.selects_by(it))
        };
        governing(rules, taint, node).or_else(|| first_of(rules, taint, did))
    }
}

/// What this instance must still count as there; `None` for nothing but what is.
pub(super) fn surely(moment: &Moment<'_>, facts: &Facts<'_>, instance: usize) -> Option<Recalled> {
    let unseen = longest_unseen(moment);
    let report = moment.instances.get(instance);
    let began = report.and_then(|it| it.runs_since).unwrap_or(Time::MAX);
    let was_seen = |(from, until): (Time, Time)| until >= began.max(from).saturating_add(unseen);
    let ended = |state: &Former<'_>| state.until + LABELS_LAST > facts.at + MARGIN;
    let (mut labels, mut from_before) = (Vec::new(), Vec::new());
    for state in former(facts).filter(ended) {
        if was_seen((state.from, state.until)) {
            labels.push(state.labels.clone());
        } else if state.until <= began && state.until >= state.from + unseen {
            from_before.push(state.labels);
        }
    }
    let was_lately = |at: Time| at + DELETION_LASTS > facts.at + MARGIN;
    let daemon_sets = departed(moment, facts, |(from, until)| {
        was_lately(until) && was_seen((from, until))
    });
    // As the process found the node, and for so long before that it cannot have seen it otherwise.
    let states = [began, began.saturating_sub(unseen)].map(|at| as_of(facts.states, at));
    let says = |it: &dyn Fn(&Value) -> bool| states.iter().all(|node| node.is_some_and(it));
    let was_meant = |daemon_set: &Value| {
        let spec = &daemon_set["spec"]["template"]["spec"];
        let mut labels = from_before.iter();
        labels.any(|labels| selects_by(spec, name(facts.node), Some(labels)))
    };
    let expected = facts.daemon_sets.iter().filter(|it| was_meant(it));
    let expected = expected.filter(|it| says(&|node| waits_for(node, it)));
    let owners = facts.rules.iter().filter(|rule| {
        from_before.iter().any(|labels| rule.selects_by(labels)) && says(&|node| owns(rule, node))
    });
    let expected = expected.map(|it| uid(it).to_owned()).collect();
    let owners = owners.map(|it| it.uid.clone()).collect();
    Recalled::of(facts, labels, daemon_sets, expected, owners)
}

/// What some process may still count as there; `None` for nothing but what is.
pub(super) fn perhaps(moment: &Moment<'_>, facts: &Facts<'_>) -> Option<Recalled> {
    let may_last = |at: Time, lasts: Time| at + lasts + MARGIN + START >= facts.at;
    let labels = former(facts).filter(|it| may_last(it.until, LABELS_LAST));
    let labels = labels.map(|it| it.labels.clone()).collect();
    let daemon_sets = departed(moment, facts, |(_, until)| may_last(until, DELETION_LASTS));
    let mut processes = moment.instances.iter().filter_map(|it| it.runs_since);
    // At the very beginning no node has been written yet.
    let is_new = processes.any(|at| at > START && may_last(at, LABELS_LAST));
    let expected = facts
        .daemon_sets
        .iter()
        .filter(|it| is_new && waits_for(facts.node, it));
    let expected = expected.map(|it| uid(it).to_owned()).collect();
    let owners = facts
        .rules
        .iter()
        .filter(|it| is_new && owns(it, facts.node));
    let owners = owners.map(|it| it.uid.clone()).collect();
    Recalled::of(facts, labels, daemon_sets, expected, owners)
}

/// Whether an absence that may not have lasted decides about the node: about what a rule says of it, or about which rule holds it.
pub(super) fn may_wait(moment: &Moment<'_>, facts: &Facts<'_>) -> bool {
    let Some(recalled) = perhaps(moment, facts) else {
        return false;
    };
    let mut taints = TaintId::all(facts.node).map(|(taint, _)| taint);
    let is_another = |taint: &TaintId| {
        let rule = recalled.governing(facts.rules, taint, facts.node);
        governing(facts.rules, taint, facts.node).is_none() && rule.is_some()
    };
    let mut rules = facts.rules.iter().filter(|rule| rule.selects(facts.node));
    rules.any(|rule| facts.met(rule) != facts.recalling(&recalled, |it| it.met(rule)))
        || taints.any(|taint| is_another(&taint))
}

impl Recalled {
    fn of(
        facts: &Facts<'_>,
        labels: Vec<Value>,
        gone: Vec<Arc<Value>>,
        expected: Vec<String>,
        owners: Vec<String>,
    ) -> Option<Self> {
        if labels.is_empty() && gone.is_empty() && expected.is_empty() && owners.is_empty() {
            return None;
        }
        let there = facts
            .daemon_sets
            .iter()
            .filter(|it| !is_deleted(it))
            .cloned();
        Some(Self {
            labels,
            daemon_sets: there.chain(gone).collect(),
            expected,
            owners,
        })
    }
}

/// For how long something may be there without being seen.
fn longest_unseen(moment: &Moment<'_>) -> Time {
    if moment.faults.is_empty() {
        return MARGIN;
    }
    let lasts = moment.faults.iter().filter_map(Fault::timed);
    lasts.map(|(.., lasts)| lasts).sum::<Time>() + longest_age(moment)
}

/// Labels that the node had, and no longer has.
struct Former<'a> {
    labels: &'a Value,
    from: Time,
    until: Time,
}

/// The labels that this very node had, the latest first.
fn former<'a>(facts: &Facts<'a>) -> impl Iterator<Item = Former<'a>> + use<'a> {
    let node = uid(facts.node);
    let states = facts.states.iter().rev();
    let states = states.map_while(|it| Some((it.at, it.object.as_deref()?)));
    let mut until = None;
    let mut all: Vec<Former<'a>> = Vec::new();
    for (at, object) in states.take_while(|(_, object)| uid(object) == node) {
        let labels = &object["metadata"]["labels"];
        match (all.last_mut(), until) {
            (Some(last), _) if last.labels == labels => last.from = at,
            (None, _) if *labels == facts.node["metadata"]["labels"] => {}
            (_, until) => all.push(Former {
                labels,
                from: at,
                until: until.unwrap_or(at),
            }),
        }
        until = Some(at);
    }
    all.into_iter()
}

/// The `DaemonSet`s that are gone, or being deleted, as they were until then, for which that is so of when they came and went.
fn departed(
    moment: &Moment<'_>,
    facts: &Facts<'_>,
    is_so: impl Fn((Time, Time)) -> bool,
) -> Vec<Arc<Value>> {
    let is_there = |it: &Value| {
        let key = |object: &Value| object["metadata"]["namespace"].clone();
        let mut there = facts.daemon_sets.iter().filter(|it| !is_deleted(it));
        there.any(|other| name(other) == name(it) && key(other) == key(it))
    };
    let mut all = Vec::new();
    for states in moment.daemon_sets() {
        let states = &states[..states.partition_point(|state| state.at <= facts.at)];
        let live = |state: &State| state.object.clone().filter(|it| !is_deleted(it));
        let Some(last) = states.iter().rposition(|state| live(state).is_some()) else {
            continue;
        };
        let (Some(object), Some(gone)) = (live(&states[last]), states.get(last + 1)) else {
            continue;
        };
        let own = states.iter().filter(|it| {
            it.object
                .as_deref()
                .is_some_and(|it| uid(it) == uid(&object))
        });
        let came = own.map(|state| state.at).min().unwrap_or_default();
        if !is_there(&object) && is_so((came, gone.at)) {
            all.push(object);
        }
    }
    all
}

/// The node as it was at this time.
fn as_of(states: &[State], at: Time) -> Option<&Value> {
    let states = &states[..states.partition_point(|state| state.at <= at)];
    states.last()?.object.as_deref()
}

/// Whether a condition that Nodegate has published on the node says that the `DaemonSet` lacks a pod there.
fn waits_for(node: &Value, daemon_set: &Value) -> bool {
    let metadata = &daemon_set["metadata"];
    let key = format!("{}/{}", text(&metadata["namespace"]), name(daemon_set));
    let mut conditions = items(&node["status"]["conditions"]).iter();
    conditions.any(|it| {
        let mut words = text(&it["message"]).split([' ', ',']);
        it["status"] == "False"
            && it["reason"] == "DaemonSetPodMissing"
            && words.any(|it| it == key)
    })
}

/// Whether an annotation says that the rule owns a taint of the node.
fn owns(rule: &Rule, node: &Value) -> bool {
    annotations(node, TAINT_ADDED_BY_PREFIX).any(|(owner, _)| owner == rule.uid)
}
