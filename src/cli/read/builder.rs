//! Fills a snapshot, list by list. Rules come first, because they determine what else to read. Rules that wait for no class
//! cost four lists (rules, the Lease, the configuration, nodes); each class adds two and one of `CSINode`s, each named
//! `DaemonSet` adds two, and repair adds two. Each object is decoded on arrival into the engine's form, so no whole list is
//! kept in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Resource;
use kube::runtime::watcher::Event as Shown;
use serde::de::DeserializeOwned;

use super::controller::{config, instances, leader, limits};
use super::source::{ObjectSource, record_gap};
use super::watches::Watchers;
use crate::cli::failure::CliError;
use crate::cli::snapshot::{
    Depth, Leader, Manifests, Snapshot, UnreadyPod, Wanted, is_ready, last_seen,
};
use crate::cluster::{Filter, ResourceKind, Unreadable};
use crate::condition::ComponentGroup;
use crate::condition::{self, CriticalComponentClass};
use crate::config::Config;
use crate::engine::io::{Now, Object, Seen};
use crate::engine::kind::{Scope, Watch};
use crate::engine::{View, says_all_suspended};
use crate::object::{ObjectKey, RuleObject};
use crate::rule::Rule;

/// The most pods whose warning events are read.
const EVENTS_OF: usize = 5;

/// The source of the controller's configuration.
#[derive(Debug, Clone)]
pub(crate) enum Configured<'a> {
    InTheCluster,
    File(&'a Path),
    AtHand(Vec<CriticalComponentClass>, Vec<String>),
}

impl Configured<'_> {
    /// The classes and the passing taints.
    async fn read(
        self,
        source: &ObjectSource,
        leader: Option<&Leader>,
        gaps: &mut Vec<Unreadable>,
    ) -> Result<(Vec<CriticalComponentClass>, Vec<String>), CliError> {
        let config = match self {
            Self::InTheCluster => config(source, leader, gaps).await?,
            Self::File(path) => Config::read(path)?,
            Self::AtHand(classes, passing_taints) => {
                return Ok((classes, passing_taints));
            }
        };
        Ok((config.classes()?, config.passing_taints))
    }
}

pub(crate) async fn snapshot(
    source: &ObjectSource,
    configured: Configured<'_>,
    wanted: &Wanted,
) -> Result<Snapshot, CliError> {
    let builder = SnapshotBuilder::read(source, configured, wanted, None).await?;
    Ok(builder.snapshot)
}

/// The same cluster with these rules, as if they had just been accepted.
pub(crate) async fn with_rules(
    source: &ObjectSource,
    snapshot: Snapshot,
    rules: Vec<RuleObject>,
) -> Result<Snapshot, CliError> {
    let mut builder = SnapshotBuilder {
        source,
        wanted: &Wanted::default(),
        needs: Needs::default(),
        snapshot,
        watches: None,
    };
    for rule in rules {
        builder.snapshot.view.put(Object::Rule(rule.into()));
    }
    builder.named().await?;
    builder.snapshot.view.settle();
    Ok(builder.snapshot)
}

/// A snapshot under construction.
pub(super) struct SnapshotBuilder<'a> {
    source: &'a ObjectSource,
    wanted: &'a Wanted,
    /// The evidence that the current rules need.
    pub needs: Needs,
    pub snapshot: Snapshot,
    /// Reads the lists and then watches them; without it, each is listed once.
    pub watches: Option<Watchers>,
}

impl<'a> SnapshotBuilder<'a> {
    pub(super) async fn read(
        source: &'a ObjectSource,
        configured: Configured<'_>,
        wanted: &'a Wanted,
        watches: Option<Watchers>,
    ) -> Result<Self, CliError> {
        let at = source.at();
        let (all, mut gaps) = (Filter::default(), Vec::new());
        let rules = source.all::<RuleObject>(ResourceKind::Rules, &all);
        let (rules, leader) = futures::join!(rules, leader(source));
        let rules = match rules {
            Err(refusal) if wanted.depth != Depth::Decisions => {
                // Without their definition there are none.
                gaps.extend((!refusal.absent).then_some(refusal));
                Vec::new()
            }
            rules => rules?,
        };
        let leader = record_gap(&mut gaps, leader);
        let (classes, passing_taints) = configured.read(source, leader.as_ref(), &mut gaps).await?;
        let needs = Needs::of(&rules, &classes, wanted);
        let mut view = View::new(classes, passing_taints, needs.karpenter, now(at));
        view.listing(Watch::Rules);
        for rule in &rules {
            view.put(Object::Rule(rule.clone().into()));
        }
        view.listed(Watch::Rules);
        let mut builder = Self {
            source,
            wanted,
            needs,
            snapshot: Snapshot {
                at,
                view,
                rules,
                limits: None,
                leader,
                controllers: Vec::new(),
                unready: BTreeMap::new(),
                manifests: Manifests::default(),
                gaps,
                unreadable: Vec::new(),
            },
            watches,
        };
        builder.fill().await?;
        Ok(builder)
    }

    async fn fill(&mut self) -> Result<(), CliError> {
        let lists = self.lists();
        self.list(lists).await?;
        self.named().await?;
        self.events().await;
        self.manifests().await;
        let Snapshot { leader, .. } = &self.snapshot;
        let controllers = match leader {
            // No decision needs them, so that a refusal is no gap.
            Some(_) if self.wanted.controllers => {
                let instances = instances(self.source, leader.as_ref()).await;
                instances.unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let limits = if self.wanted.limits {
            limits(self.source, leader.as_ref()).await
        } else {
            None
        };
        let snapshot = &mut self.snapshot;
        let suspends_all = suspends_all(snapshot.leader.as_ref(), &snapshot.rules);
        if let Some(limits) = limits {
            snapshot.view.limit(limits);
        }
        snapshot.view.suspend_all(suspends_all);
        snapshot.view.settle();
        snapshot.unreadable = snapshot.view.unreadable();
        (snapshot.controllers, snapshot.limits) = (controllers, limits);
        Ok(())
    }

    /// The lists that the rules need; every other one counts as listed and empty.
    fn lists(&mut self) -> Vec<(Watch, Filter)> {
        let classes = self.snapshot.classes().to_vec();
        let mut lists = Vec::new();
        let mut list = |watch, is_needed, filter| {
            if is_needed {
                lists.push((watch, filter));
            } else {
                self.snapshot.view.listed(watch);
            }
        };
        let of_the_node = self.wanted.node.as_ref();
        let of_the_node = of_the_node.map_or_else(Filter::default, Filter::named);
        let reads_nodes = self.wanted.depth != Depth::Outline;
        let reads_pods = self.wanted.depth == Depth::Decisions;
        list(Watch::Nodes, reads_nodes, of_the_node.clone());
        list(Watch::CsiNodes, self.needs.csi_nodes, of_the_node);
        for (index, class) in classes.into_iter().enumerate() {
            let group = ComponentGroup::Class(index);
            let is_needed = self.needs.classes[index];
            let daemon_sets = Filter::labelled(class.selector);
            let pods = daemon_sets.clone().within(class.namespaces.single());
            let pods = pods.bound(self.wanted.node.as_deref()).alive();
            list(Watch::DaemonSets(group), is_needed, daemon_sets);
            list(Watch::Pods(group), is_needed && reads_pods, pods);
        }
        // The view does not need an empty list of these.
        if self.needs.karpenter {
            list(Watch::NodePools, true, Filter::default());
            list(Watch::NodeClaims, true, Filter::default());
        }
        // Rules have already been listed, and must be watched too.
        if self.watches.is_some() {
            list(Watch::Rules, true, Filter::default());
        }
        lists
    }

    /// Reads what rules name: `DaemonSet`s, then their pods, and so on.
    async fn named(&mut self) -> Result<(), CliError> {
        loop {
            let wanted = self.snapshot.view.wanted();
            if wanted.is_empty() {
                return Ok(());
            }
            let mut lists = Vec::new();
            for (watch, scope) in wanted {
                let is_left_out = self.wanted.depth != Depth::Decisions;
                if is_left_out && matches!(watch, Watch::Pods(_)) {
                    self.snapshot.view.listed(watch);
                } else {
                    lists.push((watch, self.of_scope(watch, &scope)));
                }
            }
            self.list(lists).await?;
        }
    }

    pub(super) fn of_scope(&self, watch: Watch, scope: &Scope) -> Filter {
        let filter = of_scope(scope);
        match watch {
            Watch::Pods(_) if scope.with_ended => filter.bound(self.wanted.node.as_deref()),
            Watch::Pods(_) => filter.bound(self.wanted.node.as_deref()).alive(),
            _ => filter,
        }
    }

    async fn list(&mut self, lists: Vec<(Watch, Filter)>) -> Result<(), CliError> {
        if let Some(watches) = self.watches.take() {
            return self.watch(watches, lists).await;
        }
        for (watch, _) in &lists {
            self.snapshot.view.listing(*watch);
        }
        let objects = lists.iter().map(|(watch, filter)| {
            let objects = self.source.list(kind(*watch), filter);
            // After its last object, each list yields one more item: its end or its error.
            let watch = *watch;
            let objects = stream::unfold(Some(objects), move |objects| async move {
                let mut objects = objects?;
                let next = objects.next().await;
                let goes_on = matches!(next, Some(Ok(_)));
                Some(((watch, next), goes_on.then_some(objects)))
            });
            objects.boxed_local()
        });
        let mut objects = stream::select_all(objects);
        while let Some((watch, object)) = objects.next().await {
            match object {
                Some(Ok(json)) => self.take(watch, &json),
                Some(Err(refusal)) => self.refused(watch, refusal)?,
                None => self.snapshot.view.listed(watch),
            }
        }
        Ok(())
    }

    /// Watches lists, and processes their events until each list is complete.
    async fn watch(
        &mut self,
        mut watches: Watchers,
        lists: Vec<(Watch, Filter)>,
    ) -> Result<(), CliError> {
        let mut incomplete: BTreeSet<Watch> = lists.iter().map(|(watch, _)| *watch).collect();
        for (watch, filter) in lists {
            watches.begin(watch, &filter);
        }
        while !incomplete.is_empty() {
            let (watch, shown) = watches.next().await;
            match shown {
                Ok(event) => {
                    if matches!(event, Shown::InitDone) {
                        incomplete.remove(&watch);
                    }
                    self.see(watch, event);
                }
                Err(refusal) if incomplete.remove(&watch) => {
                    watches.end(watch);
                    self.refused(watch, refusal)?;
                }
                // The watch restarts by itself.
                Err(_) => {}
            }
        }
        self.watches = Some(watches);
        Ok(())
    }

    /// Puts a listed object into the view, and keeps details that no decision uses.
    fn take(&mut self, watch: Watch, json: &str) {
        let snapshot = &mut self.snapshot;
        if let Some(object) = decoded(watch, json) {
            snapshot.view.put(object);
        }
        // Most pods are Ready and need no explanation.
        if matches!(watch, Watch::Pods(_))
            && !json.contains(r#""type":"Ready","status":"True""#)
            && let Ok(pod) = serde_json::from_str::<Pod>(json)
            && !is_ready(&pod)
        {
            let events = Vec::new();
            let key = ObjectKey::of(&pod.metadata);
            snapshot.unready.insert(key, UnreadyPod { pod, events });
        }
    }

    pub(super) fn see(&mut self, watch: Watch, event: Shown<Object>) {
        let Snapshot { view, rules, .. } = &mut self.snapshot;
        match &event {
            Shown::InitApply(Object::Rule(rule)) | Shown::Apply(Object::Rule(rule)) => {
                rules.retain(|it| it.metadata.name != rule.meta().name);
                rules.extend(rule.clone().read());
            }
            Shown::Delete(Object::Rule(rule)) => {
                rules.retain(|it| it.metadata.name != rule.meta().name);
            }
            _ => {}
        }
        match event {
            Shown::Init => view.listing(watch),
            Shown::InitApply(object) | Shown::Apply(object) => view.put(object),
            Shown::Delete(object) => view.see(Seen::Delete(object)),
            Shown::InitDone => {
                view.listed(watch);
                if watch == Watch::Rules {
                    let known = view.cached_rules();
                    let is_known = |name: &String| known.contains_key(&**name);
                    rules.retain(|it| it.metadata.name.as_ref().is_some_and(is_known));
                }
            }
        }
    }

    /// Handles a refused list: rules and nodes are required, any other kind becomes a gap.
    fn refused(&mut self, watch: Watch, refusal: Unreadable) -> Result<(), CliError> {
        let is_required = matches!(watch, Watch::Nodes | Watch::Rules);
        if is_required && self.wanted.depth == Depth::Decisions {
            return Err(refusal.into());
        }
        let Snapshot { view, gaps, .. } = &mut self.snapshot;
        if refusal.absent && watch.is_optional() {
            view.not_installed(watch);
        } else {
            view.listed(watch);
        }
        record_gap::<()>(gaps, Err(refusal));
        Ok(())
    }

    /// Reads objects as written.
    async fn manifests(&mut self) {
        let Snapshot {
            manifests, gaps, ..
        } = &mut self.snapshot;
        if let ObjectSource::Memory(lists) = self.source {
            manifests.are_files = lists.are_files;
            manifests.unreadable.clone_from(&lists.unreadable);
        }
        for kind in self.wanted.manifests {
            // They matter only where a rule names a driver.
            if *kind == ResourceKind::CsiDrivers && !self.needs.csi_nodes {
                continue;
            }
            let mut objects = self.source.list(*kind, &Filter::default());
            let listed = loop {
                match objects.try_next().await {
                    Ok(Some(json)) => manifests.take(*kind, &json),
                    end => break end.map(drop),
                }
            };
            record_gap(gaps, listed);
        }
    }

    /// Reads warning events of the wanted node's unready pods: only events have a probe's answers.
    async fn events(&mut self) {
        if self.wanted.node.is_none() {
            return;
        }
        let pods = self.snapshot.unready.iter_mut().take(EVENTS_OF);
        let lists = pods.map(async |(key, pod)| {
            pod.events = events(self.source, key).await?;
            Ok(())
        });
        for listed in join_all(lists).await {
            record_gap(&mut self.snapshot.gaps, listed);
        }
    }
}

/// The kind of a watch's objects.
pub(super) const fn kind(watch: Watch) -> ResourceKind {
    match watch {
        Watch::Nodes => ResourceKind::Nodes,
        Watch::CsiNodes => ResourceKind::CsiNodes,
        Watch::Pods(_) => ResourceKind::Pods,
        Watch::DaemonSets(_) => ResourceKind::DaemonSets,
        Watch::ResourceSlices(_) => ResourceKind::ResourceSlices,
        Watch::Rules => ResourceKind::Rules,
        Watch::NodeClaims => ResourceKind::NodeClaims,
        Watch::NodePools => ResourceKind::NodePools,
    }
}

/// The objects of what a rule names.
pub(crate) fn of_scope(scope: &Scope) -> Filter {
    let mut filter = Filter::default().within(scope.namespace.as_deref());
    filter.labels.clone_from(&scope.labels);
    if let Some(name) = &scope.name {
        filter = filter.is("metadata.name", &**name);
    }
    match &scope.driver {
        Some(driver) => filter.is("spec.driver", &**driver),
        None => filter,
    }
}

/// The warning events of a pod, latest first.
pub(super) async fn events(
    source: &ObjectSource,
    pod: &ObjectKey,
) -> Result<Vec<Event>, Unreadable> {
    let filter = Filter::default().within(Some(&pod.namespace));
    let filter = filter.warnings(Some(&pod.name));
    let mut events: Vec<Event> = source.all(ResourceKind::Events, &filter).await?;
    events.sort_by_key(|event| Reverse(last_seen(event)));
    Ok(events)
}

/// An object in the engine's form, if it can be decoded.
fn decoded(watch: Watch, json: &str) -> Option<Object> {
    fn of<T: DeserializeOwned>(json: &str, wrap: impl FnOnce(T) -> Object) -> Option<Object> {
        serde_json::from_str(json).ok().map(wrap)
    }
    match watch {
        Watch::Nodes => of(json, Object::Node),
        Watch::CsiNodes => of(json, Object::CsiNode),
        Watch::Pods(group) => of(json, |pod| Object::Pod(group, pod)),
        Watch::DaemonSets(group) => of(json, |it| Object::DaemonSet(group, it)),
        Watch::ResourceSlices(group) => of(json, |it| Object::ResourceSlice(group, it)),
        Watch::Rules => of(json, Object::Rule),
        Watch::NodeClaims => of(json, Object::NodeClaim),
        Watch::NodePools => of(json, Object::NodePool),
    }
}

/// What must be read for the rules.
#[derive(Default)]
pub(super) struct Needs {
    /// Whether to read the `DaemonSet`s and pods of each class.
    classes: Vec<bool>,
    csi_nodes: bool,
    karpenter: bool,
}

impl Needs {
    /// Whether `self` needs something that `other` does not.
    pub(super) fn exceed(&self, other: &Self) -> bool {
        let mut classes = self.classes.iter().zip(&other.classes);
        classes.any(|(own, others)| *own && !others)
            || self.csi_nodes && !other.csi_nodes
            || self.karpenter && !other.karpenter
    }

    /// What these rules and a command need.
    pub(super) fn of(
        rules: &[RuleObject],
        classes: &[CriticalComponentClass],
        wanted: &Wanted,
    ) -> Self {
        if wanted.depth == Depth::Outline {
            return Self {
                classes: vec![false; classes.len()],
                ..Self::default()
            };
        }
        let rules: Vec<Rule> = rules
            .iter()
            .chain(&wanted.rules)
            .map(|rule| Rule::compile(&rule.metadata, rule.spec.clone(), classes))
            .collect();
        let specs = || rules.iter().flat_map(|rule| &rule.spec);
        let waits = |class| specs().any(|it| it.waits_for_class(class));
        let classes: Vec<bool> = (0..classes.len()).map(waits).collect();
        let decides = wanted.depth == Depth::Decisions;
        let mut required = specs().flat_map(|spec| &spec.conditions);
        let is_of_a_driver =
            required.any(|it| matches!(it.source, condition::Source::CsiDriver(_)));
        Self {
            csi_nodes: is_of_a_driver || (decides && classes.contains(&true)),
            karpenter: decides && specs().any(|spec| spec.repair.is_some()),
            classes,
        }
    }
}

/// Whether all rules are suspended: the Lease says so, or the controller's flag does, which shows in the rules' statuses.
pub(super) fn suspends_all(leader: Option<&Leader>, rules: &[RuleObject]) -> bool {
    leader.is_some_and(|leader| leader.suspends_all)
        || rules.iter().any(|rule| says_all_suspended(&rule.status))
}

pub(super) fn now(wall: Timestamp) -> Now {
    Now {
        wall,
        monotonic: Instant::now(),
    }
}
