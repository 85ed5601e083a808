//! `startup`: what the start of a node was spent on, by the times that objects have. What none of them says is left out.

mod many;
#[cfg(test)]
pub(super) mod tests;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use serde::Serialize;

use super::page::{Page, states};
use super::snapshot::{PodTimes, Snapshot, last_seen};
use nodegate_core::api::ConditionStatus;
use nodegate_core::condition::{Detail, Hint, Source, Watch};
use nodegate_core::object::{KUBELETS_CONDITIONS, ObjectKey};
use nodegate_engine::{startup_component, startup_name};

pub(super) use many::{Startups, startups};

/// A taint that is added later after a node's creation is not about its start.
const JOINING: SignedDuration = SignedDuration::from_secs(60);
/// How far apart two times may be that are one: most have whole seconds, and the controller needs a moment.
const TOLERANCE: SignedDuration = SignedDuration::from_millis(1_100);
const READY: &str = KUBELETS_CONDITIONS[0];

/// The start of a node, from its creation until all rules had released it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Startup {
    pub node: Arc<str>,
    pub created: Timestamp,
    pub held: bool,
    /// `None` if it is held, or no Event says so any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Timestamp>,
    /// In the order in which they were done.
    pub components: Vec<ComponentStart>,
    /// What the released node waited for last, if it is known of everything when it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip)]
    now: Timestamp,
}

/// The start of something that a node waits for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComponentStart {
    /// Its name in metrics.
    pub component: String,
    /// Its kind and name.
    #[serde(skip)]
    words: String,
    /// When each phase began and ended, as far as that is known.
    pub phases: BTreeMap<Phase, [Timestamp; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probed_every_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

states! {
    /// What a component spends time on. The words begin with the character of its bar.
    pub(crate) enum Phase {
        Scheduled = Faint "░ scheduled",
        Prepared = Faint "▒ images and init containers",
        Started = Faint "█ started, not Ready yet",
        Waiting = Faint "· waiting for something else",
    }
}

/// The start of a node; `None` if it does not exist, or waits for nothing under the rules in force.
pub(crate) fn startup(snapshot: &Snapshot, name: &str) -> Option<Startup> {
    let (plan, state) = (snapshot.view.plan(name)?, snapshot.view.node(name)?);
    let (node, cluster) = (state.node, snapshot.view.cluster());
    let in_force = plan.outcomes.iter().filter(|it| it.governs().is_some());
    let (created, held) = (node.created?, in_force.clone().any(|it| it.tainted));
    let events = snapshot.node_events.get(name).into_iter().flatten();
    let released = released(created, events).filter(|_| !held);
    let mut start = Startup {
        node: node.name.clone(),
        created,
        held,
        released,
        components: Vec::new(),
        last: None,
        notes: Vec::new(),
        now: snapshot.at,
    };
    for finding in in_force.flat_map(|it| &it.findings) {
        let source = &finding.requirement.source;
        let pods = || snapshot.pods.get(name).into_iter().flatten();
        // The pods of `DaemonSet`s tell all of a condition that is about them alone.
        let mut is_told = matches!(finding.detail().map(Detail::hint), Some(Hint::Vacuous));
        for pod in pods().filter(|it| source.depends_on(it.shown_by, cluster.named)) {
            let group = pod.shown_by.group().map(|group| cluster.daemon_sets(group));
            let owner = group.and_then(|all| all.get(pod.daemon_set.as_ref()?));
            if let Some(owner) = owner.filter(|it| !it.ignored) {
                is_told |= finding.is_met() && !source.depends_on(Watch::CsiNodes, &[]);
                start.components.push(start.of_pod(&owner.key, pod));
            }
        }
        if is_told {
            continue;
        }
        let named = startup_name(finding.requirement);
        let lacks = startup_component((cluster, state), finding);
        let is_csi_driver = matches!(source, Source::CsiDriver(_));
        let kind = if is_csi_driver { "csidriver " } else { "" };
        let is_driver = |path: &String| path.split('/').any(|part| part == named);
        let driver = pods().find(|it| it.paths.iter().any(is_driver));
        let ready = driver.and_then(|it| it.steps[3]);
        let since = finding.transition().filter(|_| finding.is_met());
        let waits = [(Phase::Waiting, ready.max(Some(created)), since)];
        let words = kind.to_owned() + &named;
        let (name, words) = match lacks.filter(|lacks| *lacks != named) {
            Some(lacks) => (lacks.clone(), lacks),
            None => (named, words),
        };
        let mut it = start.component(name, words, &waits, since);
        let waited = ready.and(since).and_then(|_| it.seconds(Phase::Waiting));
        let waited = waited.map(|it| format!("{} after its pod was Ready", Page::lasting(it)));
        it.notes.extend(waited);
        start.components.push(it);
    }
    let waits = !start.components.is_empty();
    let ready = node.condition(READY);
    let ready = ready.filter(|it| it.status == ConditionStatus::True);
    let ready = ready.and_then(|it| it.transition);
    let kubelet = [(Phase::Started, Some(created), ready)];
    let words = format!("kubelet {READY}");
    let kubelet = start.component(READY.into(), words, &kubelet, ready);
    let all = &mut start.components;
    all.push(kubelet);
    all.sort_by(|a, b| a.component.cmp(&b.component));
    all.dedup_by(|a, b| a.component == b.component);
    all.sort_by_key(|it| (it.done.is_none(), it.done));
    // What is published of a pod is dated later: one that turned Ready just before the release came last.
    let is_just_before = |at: Timestamp| released < Some(at + TOLERANCE);
    let order = |it: &&ComponentStart| match it.words.starts_with("daemonset/") {
        true if it.done.is_some_and(is_just_before) => (released, true),
        is_pod => (it.done, is_pod),
    };
    let latest = all.iter().max_by_key(order).map(|it| it.component.clone());
    let is_known = all.iter().all(|it| it.done.is_some());
    start.last = released.and(latest).filter(|_| is_known);
    waits.then_some(start)
}

/// When every rule had released the node for the first time, by its Events.
fn released<'a>(created: Timestamp, events: impl Iterator<Item = &'a Event>) -> Option<Timestamp> {
    let mut firsts = BTreeMap::new();
    let dated = events.filter_map(|it| Some((last_seen(it)?, it)));
    for (at, event) in dated.filter(|(at, _)| *at >= created) {
        match event.reason.as_deref() {
            // It is gated again.
            Some("TaintAdded") if at > created + JOINING => break,
            Some("TaintRemoved" | "NodeCriticalComponentsReady") => {
                firsts.entry(&event.message).or_insert(at);
            }
            _ => {}
        }
    }
    firsts.into_values().max()
}

impl Startup {
    /// Something that was done then, if it was. Of its phases those count whose ends are known; the latest on a held node goes on.
    fn component(
        &self,
        component: String,
        words: String,
        phases: &[(Phase, Option<Timestamp>, Option<Timestamp>)],
        done: Option<Timestamp>,
    ) -> ComponentStart {
        let mut it = ComponentStart {
            component,
            words,
            ..ComponentStart::default()
        };
        if self
            .released
            .is_some_and(|end| done > Some(end + TOLERANCE))
        {
            it.notes.push("restarted or changed since".into());
            return it;
        }
        it.done = done.filter(|at| *at >= self.created);
        let latest = phases.iter().rposition(|(_, from, _)| from.is_some());
        for (index, (phase, from, until)) in phases.iter().enumerate() {
            let goes_on = self.held && done.is_none() && Some(index) == latest;
            let until = until.or(goes_on.then_some(self.now));
            let Some((from, until)) = from.zip(until) else {
                continue;
            };
            if from < self.created || until < from {
                it.notes = vec!["older than the node, or clocks differ".into()];
            } else {
                it.phases.insert(*phase, [from, until]);
            }
        }
        it
    }

    fn of_pod(&self, key: &ObjectKey, pod: &PodTimes) -> ComponentStart {
        let [created, bound, started, ready] = pod.steps;
        let first = started.filter(|_| pod.restarts == 0);
        let phases = [
            (Phase::Scheduled, created, bound),
            (Phase::Prepared, bound, first),
            (Phase::Started, started, ready),
        ];
        let words = format!("daemonset/{} -n {}", key.name, key.namespace);
        let mut it = self.component(key.to_string(), words, &phases, ready);
        it.probed_every_seconds = pod.probed_every;
        if it.done.is_none() && !self.held {
            return it;
        }
        let inits = bound.zip(pod.initialized).map(seconds);
        if let Some(took @ 1..) = inits {
            let inits = format!("{took}s until its init containers had ended");
            it.notes.push(inits);
        }
        if pod.restarts > 0 {
            it.notes.push(format!("restarts: {}", pod.restarts));
        }
        let took = it.seconds(Phase::Started).filter(|_| ready.is_some());
        let started = took.map(|took| format!("{took}s from start to Ready"));
        let probed = pod
            .probed_every
            .map(|period| format!("probed every {period}s"));
        match probed {
            Some(probed) => it.notes.extend(started.into_iter().chain([probed])),
            None => it.notes.push("no readiness probe".into()),
        }
        it
    }
}

fn seconds((from, until): (Timestamp, Timestamp)) -> i64 {
    until.duration_since(from).as_secs()
}

impl ComponentStart {
    fn note(&self) -> String {
        self.notes.join("; ")
    }

    /// The length of a phase, in seconds, if it is known.
    fn seconds(&self, phase: Phase) -> Option<i64> {
        self.phases.get(&phase).map(|it| seconds((it[0], it[1])))
    }
}
