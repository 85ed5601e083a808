//! Fills a snapshot, list by list. Rules come first, because they determine what else to read: a class costs two lists and one of
//! `CSINode`s, each named `DaemonSet` two, and repair two. Each object is decoded on arrival: no whole list is kept in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use futures::future::{join_all, ready};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};

use super::controller::{config, instances, leader};
use super::kept_out::kept_out;
use super::no_pod::no_pod;
use super::source::{ObjectSource, record_gap};
use super::standing::standing;
use crate::failure::CliError;
use crate::snapshot::{Depth, Manifests, PodTimes, Snapshot, UnreadyPod, Wanted};
use crate::snapshot::{is_ready, last_seen, node_of};
use nodegate_cluster::{Gap, ResourceKind};
use nodegate_core::condition::{CriticalComponentClass, Source, Watch};
use nodegate_core::object::{ObjectKey, PodReady, RuleObject};
use nodegate_core::selector::Filter;
use nodegate_engine::Forecast;
use nodegate_engine::io::{Now, Object, Seen};

/// The most objects of a kind that are looked at more closely.
pub(super) const LOOKED_AT: usize = 5;

/// The classes and the passing taints, if they are not to be read from the cluster.
pub(crate) type Configured = Option<(Vec<CriticalComponentClass>, Vec<String>)>;

pub(crate) async fn snapshot(
    source: &ObjectSource,
    configured: Configured,
    wanted: &Wanted,
) -> Result<Snapshot, CliError> {
    let (at, all, mut gaps) = (source.at(), Filter::default(), Vec::new());
    let rules = source.all::<RuleObject>(ResourceKind::Rules, &all);
    let adds_tolerations = source.adds_tolerations();
    let (rules, leader, adds_tolerations) = futures::join!(rules, leader(source), adds_tolerations);
    let rules = match rules {
        Err(refusal) if wanted.depth == Depth::Decisions => return Err(refusal.into()),
        rules => record_gap(&mut gaps, rules),
    };
    let leader = record_gap(&mut gaps, leader);
    let runs_with = leader.as_ref().and_then(|it| it.says(at));
    let (classes, passing_taints) = match (configured, runs_with) {
        (Some(configured), _) => configured,
        (None, Some(it)) => it.config.parts()?,
        (None, None) => config(source, leader.as_ref(), &mut gaps).await?.parts()?,
    };
    let with_instances = leader.as_ref().filter(|_| wanted.instances);
    let controllers = instances(source, with_instances).await;
    let mut view = Forecast::new(classes, passing_taints, now(at));
    view.limits = runs_with.map(|it| it.limits).unwrap_or_default();
    view.listing(Watch::Rules);
    for rule in rules {
        view.apply(Seen::Apply(Object::Rule(rule.into())));
    }
    view.apply(Seen::InitDone(Watch::Rules));
    let mut snapshot = Snapshot {
        at,
        view,
        listed: vec![(Watch::Rules, all)],
        unlisted: Vec::new(),
        leader,
        adds_tolerations,
        controllers,
        unready: BTreeMap::new(),
        pods: BTreeMap::new(),
        node_events: BTreeMap::new(),
        manifests: Manifests::default(),
        standing: BTreeMap::new(),
        kept_out: BTreeMap::new(),
        no_pod: BTreeMap::new(),
        gaps,
        unreadable: Vec::new(),
    };
    fill(source, wanted, &mut snapshot).await?;
    events_of_unready(source, wanted, &mut snapshot).await;
    if wanted.starts {
        let named = wanted.node.iter();
        let of_nodes = Filter::default().is("involvedObject.kind", "Node");
        let of_nodes = named.fold(of_nodes, |it, name| it.is("involvedObject.name", name));
        let events = source.all(ResourceKind::Events, &of_nodes).await;
        let mut events: Vec<Event> = record_gap(&mut snapshot.gaps, events);
        events.sort_by_key(last_seen);
        for event in events {
            let node = event.involved_object.name.clone().unwrap_or_default();
            snapshot.node_events.entry(node).or_default().push(event);
        }
    }
    manifests(source, wanted, &mut snapshot).await;
    snapshot.standing = standing(source, wanted, &snapshot).await;
    let kept_out = kept_out(source, &snapshot).await;
    snapshot.kept_out = record_gap(&mut snapshot.gaps, kept_out);
    snapshot.prepare();
    snapshot.unreadable = snapshot.view.unreadable();
    if let Some(node) = &wanted.node {
        let read = no_pod(source, node, &mut snapshot).await;
        record_gap(&mut snapshot.gaps, read);
    }
    Ok(snapshot)
}

/// The same cluster with these rules, as if they had just been accepted.
pub(crate) async fn with_rules(
    source: &ObjectSource,
    mut snapshot: Snapshot,
    rules: Vec<RuleObject>,
) -> Result<Snapshot, CliError> {
    for rule in rules {
        snapshot.view.apply(Seen::Apply(Object::Rule(rule.into())));
    }
    fill(source, &Wanted::default(), &mut snapshot).await?;
    snapshot.prepare();
    Ok(snapshot)
}

/// Lists what the rules need and is not listed yet: also what they name, as `DaemonSet`s, then their pods, and so on.
async fn fill(source: &ObjectSource, wanted: &Wanted, snapshot: &mut Snapshot) -> Result<(), Gap> {
    loop {
        let due = due(snapshot, wanted.depth);
        if due.is_empty() {
            return Ok(());
        }
        for (watch, _) in &due {
            snapshot.view.listing(*watch);
        }
        snapshot.listed.extend(due.iter().cloned());
        let objects = due.iter().map(|(watch, scope)| {
            let (watch, filter) = (*watch, scope.clone());
            let filter = match (watch, &wanted.node) {
                (Watch::Nodes | Watch::CsiNodes, Some(node)) => filter.is("metadata.name", node),
                (Watch::Pods(_), Some(node)) => filter.is("spec.nodeName", node),
                _ => filter,
            };
            let objects = source.list(watch.resource(), &filter);
            objects.map(move |object| (watch, object))
        });
        let mut objects = stream::select_all(objects);
        let mut absent = Vec::new();
        while let Some((watch, object)) = objects.next().await {
            match object {
                Ok(json) => take(snapshot, watch, &json, wanted.starts),
                // Decisions require nodes. Any other refused list becomes a gap.
                Err(refusal) if watch == Watch::Nodes && wanted.depth == Depth::Decisions => {
                    return Err(refusal);
                }
                Err(refusal) => {
                    absent.extend((refusal.absent && watch.is_optional()).then_some(watch));
                    record_gap::<()>(&mut snapshot.gaps, Err(refusal));
                }
            }
        }
        for (watch, _) in &due {
            snapshot.view.apply(if absent.contains(watch) {
                Seen::NotInstalled(*watch)
            } else {
                Seen::InitDone(*watch)
            });
        }
    }
}

/// The lists that the rules need and that were not due before. Every other one counts as listed and empty.
pub(super) fn due(snapshot: &mut Snapshot, depth: Depth) -> Vec<(Watch, Filter)> {
    let Snapshot { view, unlisted, .. } = snapshot;
    let (mut due, mut wanted) = (Vec::new(), view.wanted());
    loop {
        unlisted.append(&mut wanted);
        let is_due = |(watch, _): &mut (Watch, Filter)| is_needed(*watch, view, depth);
        due.extend(unlisted.extract_if(.., is_due));
        for (watch, _) in &*unlisted {
            if *watch != Watch::Rules {
                view.apply(Seen::InitDone(*watch));
            }
        }
        // What is listed may name more.
        wanted = view.wanted();
        if wanted.is_empty() {
            return due;
        }
    }
}

/// Whether a list that the rules ask for is needed to this depth. Rules are listed before.
fn is_needed(watch: Watch, view: &Forecast, depth: Depth) -> bool {
    let (decides, is_outline) = (depth == Depth::Decisions, depth == Depth::Outline);
    let rules = view.cached_rules().values();
    let mut specs = rules.flat_map(|cached| &cached.rule.spec);
    match watch {
        Watch::Rules => false,
        Watch::Nodes => !is_outline,
        Watch::CsiNodes if decides => true,
        Watch::CsiNodes => {
            let mut sources = specs.flat_map(|spec| &spec.conditions);
            !is_outline && sources.any(|it| matches!(it.source, Source::CsiDriver(_)))
        }
        Watch::Pods(_) => decides,
        Watch::DaemonSets(group) => !is_outline || group.class().is_none(),
        Watch::ResourceSlices(_) => true,
        Watch::NodeClaims | Watch::NodePools => decides && specs.any(|it| it.ours.repair.is_some()),
    }
}

/// Puts a listed object into the view, and keeps details that no decision uses: of pods when they did what, if these are `timed`.
fn take(snapshot: &mut Snapshot, watch: Watch, json: &str, timed: bool) {
    let object = Object::of(watch, json);
    // Most pods are Ready and need no explanation.
    if let Object::Pod(_, pod) = &object
        && (timed || pod.value().is_none_or(|pod| pod.ready == PodReady::No))
        && let is_live = matches!(pod.value(), Some(pod) if pod.is_live())
        && let Ok(pod) = serde_json::from_str::<Pod>(json)
    {
        if timed && is_live {
            let of_node = snapshot.pods.entry(node_of(&pod).into()).or_default();
            of_node.push(PodTimes::of(&pod, watch));
        }
        if !is_ready(&pod) {
            let (key, events) = (ObjectKey::of(&pod.metadata), Vec::new());
            snapshot.unready.insert(key, UnreadyPod { pod, events });
        }
    }
    snapshot.view.apply(Seen::Apply(object));
}

async fn manifests(source: &ObjectSource, wanted: &Wanted, snapshot: &mut Snapshot) {
    let manifests = &mut snapshot.manifests;
    if let ObjectSource::Memory(lists) = source {
        manifests.are_files = lists.are_files;
        manifests.unreadable.clone_from(&lists.unreadable);
    }
    for kind in wanted.manifests {
        // To a check, they matter only where a rule names a driver.
        let mut listed = snapshot.listed.iter().map(|(watch, _)| *watch);
        if *kind == ResourceKind::CsiDrivers
            && wanted.depth != Depth::Outline
            && !listed.any(|watch| watch == Watch::CsiNodes)
        {
            continue;
        }
        let objects = source.list(*kind, &Filter::default());
        let listed = objects.try_for_each(|json| {
            manifests.take(*kind, &json);
            ready(Ok(()))
        });
        record_gap(&mut snapshot.gaps, listed.await);
    }
}

/// Reads warning events of the wanted node's unready pods: only events have a probe's answers.
async fn events_of_unready(source: &ObjectSource, wanted: &Wanted, snapshot: &mut Snapshot) {
    if wanted.node.is_none() {
        return;
    }
    let pods = snapshot.unready.iter_mut().take(LOOKED_AT);
    let lists = pods.map(async |(key, pod)| {
        pod.events = events(source, "Pod", key).await?;
        Ok(())
    });
    for listed in join_all(lists).await {
        record_gap(&mut snapshot.gaps, listed);
    }
}

/// The warning events of an object of this kind, latest first.
pub(super) async fn events(
    source: &ObjectSource,
    kind: &str,
    key: &ObjectKey,
) -> Result<Vec<Event>, Gap> {
    let filter = Filter::default().within(Some(&key.namespace));
    let filter = filter.warnings(kind).is("involvedObject.name", &key.name);
    let mut events: Vec<Event> = source.all(ResourceKind::Events, &filter).await?;
    events.sort_by_key(|event| Reverse(last_seen(event)));
    Ok(events)
}

pub(super) fn now(wall: Timestamp) -> Now {
    Now {
        wall,
        monotonic: Instant::now(),
    }
}
