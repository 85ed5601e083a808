//! A cache of what the watches have shown: it keeps together all that is known of a node, and queues the nodes that a change
//! may affect. Events that cannot change a decision are dropped here.

mod components;
mod entries;
mod rulebook;
mod staleness;
mod stores;
#[cfg(test)]
mod tests;
mod unreadable;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use tracing::debug;

use super::freshness::{MAX_AGE, Phase, WatchStates, WatchStep};
use super::io::{Now, Object, Seen};
use super::schedule::{Schedule, Why};
use super::settings::Settings;
use components::Components;
use entries::{Entries, put};
use nodegate_core::condition::{Component, ComponentGroup, PassingTaints, Watch, selects};
use nodegate_core::finding::{Around, Backing};
use nodegate_core::guard::Zone;
use nodegate_core::object::{
    self, CsiNode, DaemonSet, Kept, Kind, Node, NodeClaim, NodePool, ObjectKey, Pod, ResourceSlice,
    RuleObject, State, Taint, Version, Watched,
};
use nodegate_core::plan::{ClusterState, NodeState};
use nodegate_core::repair::{Census, Karpenter, NoClaim, NodeClaims, may_be_late};
use nodegate_core::rule::Rule;
use nodegate_core::selector::Filter;
pub use rulebook::CachedRule;
use rulebook::Rulebook;
use staleness::Freshness;
use stores::{AnyShelf, Stores};
pub use stores::{Readers, Stored};
pub use unreadable::Broken;

/// A gap of up to this length in the watch of nodes hides no missed heartbeat: the silence still shows afterwards.
const BLINK: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Cache {
    pub(super) views: WatchStates,
    pub(super) stores: Stores,
    pub(super) nodes: Entries,
    components: Components,
    pub(super) rules: Rulebook,
    pub(super) claims: NodeClaims,
    pub(super) schedule: Schedule,
    pub(super) freshness: Freshness,
    /// When the last event or answer came.
    now: Timestamp,
}

impl Cache {
    /// An empty cache that has not synced. Unless Karpenter is enabled, it does not wait for Karpenter's objects.
    pub fn new(settings: &Settings, now: Now) -> Self {
        let mut views = WatchStates::default();
        let karpenter = [Watch::NodeClaims, Watch::NodePools].into_iter();
        let karpenter = karpenter.filter(|_| settings.enable_karpenter);
        for watch in [Watch::Nodes, Watch::Rules].into_iter().chain(karpenter) {
            views.begin(watch, Filter::default(), Some(now.monotonic));
        }
        Self {
            views,
            stores: Stores::default(),
            nodes: Entries::default(),
            components: Components {
                classes: settings.classes.clone(),
                are_published: settings.publish_conditions,
                with_csi_nodes: settings.watch_csi_nodes,
                ..Components::default()
            },
            rules: Rulebook::new(settings.passing_taints.clone()),
            claims: NodeClaims::default(),
            schedule: Schedule::default(),
            freshness: Freshness::default(),
            now: now.wall,
        }
    }

    pub fn cluster(&self) -> ClusterState<'_> {
        let census = self.freshness.census.as_ref();
        ClusterState {
            classes: &self.components.classes,
            named: &self.components.named,
            daemon_sets: &self.components.daemon_sets,
            rules: &self.rules.set,
            publish_conditions: self.components.are_published,
            stale: &self.freshness.stale,
            unseen: &self.components.unseen,
            nodes_as_of: self.freshness.nodes_as_of,
            census: census.filter(|_| self.freshness.stale.is_empty()),
            repair_after: self.freshness.repair_after,
        }
    }

    /// Works out which rules select this node, tracks heartbeats that they need, and counts all nodes' health if it may be late.
    pub fn select_rules(&mut self, name: &str, now: Timestamp) {
        let at = self.freshness.at;
        let Some(entry) = self.nodes.all.get_mut(name) else {
            return;
        };
        entry.select_rules(&self.rules, now);
        let is_late = |node: &Node| {
            let mut selecting = self.rules.set.at(&entry.selecting);
            selecting.any(|rule| may_be_late(node, rule, at))
        };
        if self.freshness.census.is_none() && entry.node.as_deref().is_some_and(is_late) {
            let census = Census::take(self.placed(), self.rules.set.rules(), |_| false, at);
            self.freshness.census = Some(census);
        }
    }

    /// All nodes, each with its claim and the zone that it counts in.
    pub fn placed(&self) -> impl Iterator<Item = (&Node, Karpenter<'_>, Zone)> {
        self.nodes.with_nodes().map(|(node, entry)| {
            let karpenter = self.claims.of(node);
            let zones = karpenter.zones(node, &entry.observations);
            (node, karpenter, zones.home)
        })
    }

    /// The state of the node of this name, if it exists. Call [`Cache::select_rules`] first.
    pub fn node(&self, name: &str) -> Option<NodeState<'_>> {
        let entry = self.nodes.all.get(name)?;
        let node = entry.node.as_deref()?;
        let no_claims = self.no_claims().map(Karpenter::without);
        Some(NodeState {
            node,
            csi_node: entry.csi_node.as_deref(),
            pods: &entry.pods,
            slices: &entry.slices,
            selecting: &entry.selecting,
            observations: &entry.observations,
            joined: entry.joined,
            knows_rules: entry.seen <= self.freshness.rules_as_of,
            karpenter: no_claims.unwrap_or_else(|| self.claims.of(node)),
        })
    }

    /// Why nothing is known of Karpenter's objects, if so: nothing can be deleted then, and the rules' own readiness TTLs apply.
    pub fn no_claims(&self) -> Option<NoClaim<'static>> {
        let phases = [Watch::NodeClaims, Watch::NodePools].map(|watch| self.views.phase(watch));
        match phases {
            [None, _] | [_, None] => Some(NoClaim::Disabled),
            [Some(Phase::Unlisted), _] | [_, Some(Phase::Unlisted)] => Some(NoClaim::Unseen),
            [Some(Phase::Absent), _] => Some(NoClaim::NotInstalled),
            [Some(Phase::Listed), _] => None,
        }
    }

    /// What stands behind a rule, and how much was looked at, in nodes.
    pub(crate) fn backing(&self, rule: &Rule) -> (Backing, usize) {
        let Some(spec) = rule.spec.as_ref().ok().filter(|_| !rule.deleting) else {
            return <_>::default();
        };
        let is_unseen = self.components.unseen.contains(&Watch::CsiNodes);
        let drivers = (!is_unseen).then(|| self.nodes.csi_drivers().collect());
        let nodes = Some(self.nodes.nodes().collect());
        let around = Around::watched(&rule.uid, spec, self.cluster(), nodes, drivers);
        let named = around.named.values().flatten();
        let all = named.chain(around.labelled.values().flatten());
        let size = self.nodes.all.len() * all.map(|it| it.size()).sum::<usize>();
        (Backing::of(&rule.name, spec, &around), size)
    }

    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let is_watched = |kind: &Watch| match kind {
            Watch::NodeClaims | Watch::NodePools => self.views.phase(*kind).is_some(),
            _ => true,
        };
        let kinds = Watch::KINDS.into_iter().filter(is_watched);
        let name = |kind| match kind {
            Watch::Rules => "rules",
            watch => watch.resource().name(),
        };
        kinds.map(move |kind| {
            let watches = self.views.of_kind(kind);
            let shelves = watches.filter_map(|watch| self.stores.of(watch));
            (name(kind), shelves.map(AnyShelf::len).sum::<usize>())
        })
    }

    pub fn begin_evaluations(&mut self) {
        self.schedule.evaluates = true;
        self.mark_all(Why::Anew);
    }

    fn mark_all(&mut self, why: Why) {
        self.schedule.changes.rules |= why == Why::Rules;
        self.schedule.mark_each(self.nodes.names(), why);
    }

    /// Takes in what a watch shows, unless something newer is known.
    pub fn apply(&mut self, seen: Seen, now: Now) {
        self.now = now.wall;
        let watch = seen.watch();
        if self.views.phase(watch).is_none() {
            return;
        }
        if seen.is_sign_of_life() {
            self.views.saw(watch, now.monotonic);
        }
        match seen {
            Seen::Init(watch, asked) => self.step(watch, WatchStep::List(asked), now),
            Seen::Apply(object) => {
                let key = ObjectKey::of(object.meta());
                let version = object::resource_version(object.meta());
                // A list shows the present state even if its version is lower: the cluster may have been restored from a backup.
                let list = self.views.list(watch);
                let is_listed = list.map(|list| list.insert(key.clone())).is_some();
                if is_listed || !self.is_outdated(watch, &key, version) {
                    self.keep(key, object, now);
                }
                if !is_listed {
                    self.step(watch, WatchStep::Shown(version), now);
                }
            }
            Seen::Delete(object) => {
                let key = ObjectKey::of(object.meta());
                let version = object::resource_version(object.meta());
                if !self.is_outdated(watch, &key, version) {
                    self.remove(watch, &key);
                }
                self.step(watch, WatchStep::Shown(version), now);
            }
            Seen::InitDone(watch) => self.end_list(watch, false, now),
            Seen::Progress(watch, version) => {
                self.step(watch, WatchStep::Shown(version), now);
                self.step(watch, WatchStep::Bookmark, now);
            }
            Seen::NotInstalled(watch) if self.may_lack(watch) => self.end_list(watch, true, now),
            Seen::NotInstalled(_) => {}
        }
        self.update_group(watch);
        self.conclude();
    }

    /// Takes in an object from an answer, unless the cache has a newer state or no such object. An equal version may show more: the
    /// answer to a patch has metadata only. If a newer one has another UID, the known object is gone; the watch shows the new one.
    pub fn apply_answer(&mut self, object: Object, now: Now) {
        self.now = now.wall;
        let (watch, meta) = (object.watch(), object.meta());
        let key = ObjectKey::of(meta);
        let version = object::resource_version(meta);
        if let Some(known) = self.uid(watch, &key.name)
            && !self.is_outdated(watch, &key, version)
        {
            if meta.uid.as_deref() == Some(known) {
                self.keep(key, object, now);
            } else if version != 0 {
                self.remove(watch, &key);
            }
        }
        self.conclude();
    }

    /// Takes in the metadata in the response to a patch, unless the cache has a newer state. The caller evaluates the node again.
    pub fn patched_node(
        &mut self,
        version: Version,
        patched: Node,
        taints: Option<Vec<Taint>>,
        now: Timestamp,
    ) {
        let key = ObjectKey::unscoped(patched.name.clone());
        if let Some(known) = self.stores.nodes.get(&key)
            && let Some(entry) = self.nodes.all.get_mut(&key.name)
            && known.uid == patched.uid
            && known.version() < version
        {
            let mut value = Node::clone(&known);
            value.take_in(patched, taints);
            let state = State {
                key,
                version,
                value,
            };
            let (node, _) = self.stores.nodes.put(state);
            entry.patch(node, &self.rules.set, now);
        }
    }

    pub fn suspend_all(&mut self, suspends_all: bool, now: Timestamp) {
        let classes = &self.components.classes;
        self.rules.suspend_all(suspends_all, classes, now);
        self.conclude();
    }

    pub fn refused_finalizer(&mut self, name: &str) {
        self.rules.refused_finalizer(name);
        self.conclude();
    }

    /// Restarts all measurements by the wall clock, which was set forward or back by `step`.
    pub fn measure_anew(&mut self, now: Timestamp, step: SignedDuration) {
        for entry in self.nodes.all.values_mut() {
            entry.joined = None;
            entry.observations.measure_anew(now, step);
        }
        self.components.measure_anew(now);
        self.freshness.clock_was_set = true;
        self.mark_all(Why::Anew);
    }

    /// Trusts reporters about their last heartbeats, and rebooted nodes about their boot times, for callers that read nodes once.
    pub fn trust_reporters(&mut self, now: Timestamp) {
        for entry in self.nodes.all.values_mut() {
            if let Some(node) = &entry.node {
                entry.observations.trust_reporters(node, now);
            }
        }
    }

    /// The UID of a known object of a kind that requests are about.
    fn uid(&self, watch: Watch, name: &str) -> Option<&str> {
        Some(match watch {
            Watch::Nodes => &self.nodes.all.get(name)?.node.as_ref()?.uid,
            Watch::Rules => &self.rules.all.get(name)?.rule.uid,
            Watch::NodeClaims => &self.claims.get(name)?.uid,
            _ => return None,
        })
    }

    fn keep(&mut self, key: ObjectKey, object: Object, now: Now) {
        let watch = object.watch();
        match object {
            Object::Node(it) => self.read(watch, key, it, |cache, it| cache.put_node(it, now)),
            Object::CsiNode(it) => self.read(watch, key, it, Self::put_csi_node),
            // If a class has several namespaces, its watch covers all namespaces.
            Object::Pod(group, _) if !self.components.covers(group, &key.namespace) => {}
            Object::Pod(group, it) => {
                self.read(watch, key, it, |cache, it| {
                    cache.put_pod(group, it, now.wall);
                });
            }
            Object::DaemonSet(group, it) => {
                self.read(watch, key, it, |cache, it| cache.put_daemon_set(group, it));
            }
            Object::ResourceSlice(group, it) => {
                self.read(watch, key, it, |cache, it| cache.put_slice(group, it));
            }
            Object::Rule(it) => self.read(watch, key, it, |cache, it| cache.put_rule(it, now.wall)),
            Object::NodeClaim(it) => self.read(watch, key, it, Self::put_claim),
            Object::NodePool(it) => self.read(watch, key, it, Self::put_pool),
        }
    }

    /// Reads an object, and puts it in its place. Of an unreadable one the last readable state stays, and its node is left as it
    /// is until the object is readable; but a `NodeClaim` is dropped, so that the controller never deletes it.
    fn read<T: Kind>(
        &mut self,
        watch: Watch,
        key: ObjectKey,
        object: Watched<T>,
        put: impl FnOnce(&mut Self, State<T>),
    ) {
        let version = object.version();
        let is_unreadable = object.value().is_none();
        let uid = object.meta().uid.as_deref().filter(|_| is_unreadable);
        let uid = uid.map(Arc::from);
        let node = match watch {
            _ if !is_unreadable => None,
            Watch::Nodes | Watch::CsiNodes => Some(key.name.clone()),
            _ => {
                let known = self.stores.of(watch).and_then(|it| it.node(&key));
                known.or_else(|| object.node_name().map(Arc::from))
            }
        };
        match object.read() {
            Ok(value) => {
                let left_alone = self.stores.unreadable.clear(watch, &key);
                self.schedule.mark_each(left_alone.iter(), Why::Seen);
                let state = State {
                    key,
                    version,
                    value,
                };
                put(self, state);
            }
            Err(why) => {
                if watch == Watch::NodeClaims {
                    self.remove_claim(&key);
                }
                let concerned = self.stores.unreadable.note(Broken {
                    watch,
                    key,
                    uid,
                    node,
                    why,
                });
                self.schedule.mark_each(concerned.iter(), Why::Seen);
            }
        }
    }

    fn remove(&mut self, watch: Watch, key: &ObjectKey) {
        let left_alone = self.stores.unreadable.clear(watch, key);
        self.schedule.mark_each(left_alone.iter(), Why::Seen);
        match watch {
            Watch::Nodes => {
                if let Some(gone) = self.stores.nodes.remove(key)
                    && let Some(entry) = self.nodes.all.get_mut(&gone.name)
                {
                    entry.node = None;
                    self.schedule.changes.behind = true;
                    self.schedule.mark(&gone.name, Why::Seen);
                    self.nodes.drop_if_empty(&gone.name);
                }
            }
            Watch::CsiNodes => {
                if self.stores.csi_nodes.remove(key).is_some() {
                    self.set_csi_node(&key.name, None);
                }
            }
            Watch::Pods(group) => {
                let gone = self.stores.pods.entry(group).or_default().remove(key);
                self.take_off(watch, key, gone.map(|gone| gone.node.clone()));
            }
            Watch::ResourceSlices(group) => {
                let gone = self.stores.slices.entry(group).or_default().remove(key);
                self.take_off(watch, key, gone.map(|gone| gone.node.clone()));
            }
            Watch::DaemonSets(group) => {
                let shelf = self.stores.daemon_sets.entry(group).or_default();
                if let Some(gone) = shelf.remove(key)
                    && self.components.depart(group, &gone, self.now)
                {
                    self.daemon_set_changed(group, &[Some(&gone)]);
                }
            }
            Watch::Rules => {
                self.stores.rules.remove(key);
                self.rules.remove(&key.name);
            }
            Watch::NodeClaims => self.remove_claim(key),
            Watch::NodePools => {
                if self.stores.pools.remove(key).is_some() {
                    self.claims.pools.remove(&key.name);
                    self.mark_where(|_, pool| pool == Some(&*key.name));
                }
            }
        }
    }

    fn forget_ended(&mut self) {
        for watch in std::mem::take(&mut self.components.ended) {
            for key in self.stores.known(watch) {
                self.remove(watch, &key);
            }
            self.stores.end(watch);
        }
    }

    /// Ends a list: objects that it has not shown are gone; all of them if the cluster has no such resource.
    fn end_list(&mut self, watch: Watch, is_absent: bool, now: Now) {
        let before = self.views.phase(watch);
        let listed = self.views.list(watch).map(std::mem::take);
        let listed = listed.unwrap_or_default();
        for key in self.stores.known(watch) {
            if !listed.contains(&key) {
                self.remove(watch, &key);
            }
        }
        if before == Some(Phase::Unlisted) {
            self.stores.complete(watch);
        }
        let size = (!is_absent).then_some(listed.len());
        self.step(watch, WatchStep::Listed(size), now);
        let is_karpenters = matches!(watch, Watch::NodeClaims | Watch::NodePools);
        if self.components.unseen.remove(&watch)
            || is_karpenters && self.views.phase(watch) != before
        {
            self.mark_all(Why::Rules);
        }
    }

    /// Takes in what happens to a watch, and restarts what cannot be told after a gap.
    pub(super) fn step(&mut self, watch: Watch, step: WatchStep, now: Now) {
        let Some(blind) = self.views.step(watch, step, now.monotonic) else {
            return;
        };
        if watch == Watch::Nodes {
            self.freshness.clock_was_set = false;
        }
        self.schedule.resume();
        if blind.is_zero() {
            return;
        }
        debug!(watch = %watch.name(), ?blind, "what was seen is certain again");
        self.freshness.postpone_repair(now.monotonic + blind);
        self.schedule.changes.outage_ended |= blind > MAX_AGE;
        if blind > BLINK && watch == Watch::Nodes {
            // The silence of every reporter counts from now on, because its heartbeats could not be seen.
            let is_followed = !self.rules.set.followed.is_empty();
            for entry in self.nodes.all.values_mut() {
                entry.missed_changes(now.wall);
                if is_followed {
                    entry.observations.restart(now.wall);
                }
            }
            if is_followed {
                self.mark_all(Why::Current);
            }
        }
    }

    /// Whether the cluster may lack this resource. One of Kubernetes' own that was there stays: a server without it is an old one.
    fn may_lack(&self, watch: Watch) -> bool {
        let is_kubernetes_own = matches!(watch, Watch::ResourceSlices(_));
        let was_there = self.views.phase(watch) == Some(Phase::Listed);
        watch.is_optional() && !(is_kubernetes_own && was_there)
    }

    /// Whether a newer state of the object is known than this version, from the answer to a write.
    fn is_outdated(&self, watch: Watch, key: &ObjectKey, shown: Version) -> bool {
        let known = self.stores.of(watch).and_then(|it| it.version(key));
        shown != 0 && known.is_some_and(|known| shown < known)
    }

    /// If the watch belongs to a group, works out whether all of the group has been seen: not a `DaemonSet` that was never readable.
    fn update_group(&mut self, watch: Watch) {
        let Some(group) = watch.group() else { return };
        let unreadable = &self.stores.unreadable;
        let lacks = |key| self.components.lacks(group, key);
        let is_unreadable = unreadable.of(Watch::DaemonSets(group)).any(lacks);
        if self.components.update(group, is_unreadable, &self.views) {
            self.mark_all(Why::Rules);
        }
    }

    /// If rules have changed, sorts them again and marks the nodes that this concerns; not until everything has synced.
    fn conclude(&mut self) {
        if self.views.have_synced()
            && let Some(concerns) = self.rules.sort()
        {
            // Before any node is evaluated: the one that shows that a type is renewed may come last.
            let (since, generation) = (&self.rules.since, self.rules.generation);
            for node in self.nodes.nodes() {
                let is_new = |rule: usize| since[rule] == generation;
                self.rules.set.see_beats(None, node, is_new);
            }
            self.components.follow(&self.rules.set, &mut self.views);
            self.forget_ended();
            self.schedule.changes.rules = true;
            let nodes = self.nodes.nodes().filter(|node| concerns(node));
            let names = nodes.map(|node| &node.name);
            self.schedule.mark_each(names, Why::Rules);
        }
    }

    /// Keeps a node, whatever showed it: the watch may never show a state that an answer shows.
    fn put_node(&mut self, mut state: State<Node>, now: Now) {
        let name = state.key.name.clone();
        state.value.name = name.clone();
        let (node, known) = self.stores.nodes.put(state);
        if (self.rules.set).see_beats(known.as_deref(), &node, |_| true) {
            self.mark_all(Why::Rules);
        }
        let passing = &self.rules.set.passing;
        self.schedule.changes.behind |= known.is_none_or(|it| differ(&it, &node, passing));
        let joined = self.freshness.earliest_join(&self.views, now);
        let is_late = self.views.as_of(Watch::Nodes, now.monotonic).is_none();
        let entry = self.nodes.entry(&name);
        if entry.put_node(&node, joined, is_late, &self.rules.set, now) {
            self.schedule.mark(&name, Why::Seen);
        }
    }

    fn put_csi_node(&mut self, state: State<CsiNode>) {
        let name = state.key.name.clone();
        let (csi_node, _) = self.stores.csi_nodes.put(state);
        self.set_csi_node(&name, Some(csi_node));
    }

    fn set_csi_node(&mut self, name: &Arc<str>, csi_node: Option<Kept<CsiNode>>) {
        let is_first_sight = self.views.phase(Watch::CsiNodes) != Some(Phase::Listed);
        let entry = self.nodes.entry(name);
        if entry.set_csi_node(csi_node, is_first_sight) {
            self.schedule.changes.behind = true;
            self.schedule.mark(name, Why::Seen);
        }
        self.nodes.drop_if_empty(name);
    }

    fn put_pod(&mut self, group: ComponentGroup, mut state: State<Pod>, now: Timestamp) {
        let watch = Watch::Pods(group);
        if !self.components.counts(group, &mut state.value) {
            return self.remove(watch, &state.key);
        }
        state.value.node = self.nodes.shared(&state.value.node);
        state.value.key = state.key.clone();
        let shelf = self.stores.pods.entry(group).or_default();
        state.value.see(shelf.get(&state.key).as_deref(), now);
        let (pod, known) = shelf.put(state);
        // A pod is bound once. Another node means a new pod of the same name.
        let (node, before) = (pod.node.clone(), known.map(|known| known.node.clone()));
        self.take_off(watch, pod.key(), before.filter(|it| *it != node));
        if put(&mut self.nodes.entry(&node).pods, group, pod) {
            self.schedule.mark(&node, Why::Seen);
        }
    }

    fn put_slice(&mut self, group: ComponentGroup, state: State<ResourceSlice>) {
        let watch = Watch::ResourceSlices(group);
        if state.value.node.is_empty() {
            return self.remove(watch, &state.key);
        }
        let (slice, known) = self.stores.slices.entry(group).or_default().put(state);
        let (node, before) = (slice.node.clone(), known.map(|known| known.node.clone()));
        self.take_off(watch, slice.key(), before.filter(|it| *it != node));
        if put(&mut self.nodes.entry(&node).slices, group, slice) {
            self.schedule.mark(&node, Why::Seen);
        }
    }

    fn take_off(&mut self, watch: Watch, key: &ObjectKey, node: Option<Arc<str>>) {
        if let Some(node) = node {
            self.nodes.take_off(watch, key, &node);
            self.schedule.mark(&node, Why::Seen);
        }
    }

    fn put_daemon_set(&mut self, group: ComponentGroup, mut state: State<DaemonSet>) {
        let shelf = self.stores.daemon_sets.entry(group).or_default();
        if let Some(class) = self.components.class(group)
            && !class.namespaces.contains(&state.key.namespace)
        {
            state.value = state.value.outline(&class.selector);
        }
        let all = self.components.daemon_sets.entry(group).or_default();
        if let (Some(known), Some(at)) = (all.get(&state.key), &mut state.value.deleted) {
            *at = known.deleted.unwrap_or(self.now);
        }
        let (daemon_set, known) = shelf.put(state);
        all.insert(daemon_set.key.clone(), daemon_set.clone());
        if known.as_deref() == Some(&daemon_set) {
            return;
        }
        self.daemon_set_changed(group, &[known.as_deref(), Some(&daemon_set)]);
        let (components, selector) = (&mut self.components, daemon_set.selector.clone());
        components.select_pods(group, selector, &mut self.views);
        self.forget_ended();
    }

    /// Marks what depends on a `DaemonSet`, given its states before and after. Who may change some must not keep the controller
    /// busy: outside its class's namespaces it is only reported; named by no rule, only nodes that it selects or has pods on count.
    fn daemon_set_changed(&mut self, group: ComponentGroup, states: &[Option<&DaemonSet>]) {
        self.schedule.changes.rules = true;
        let mut covered = states.iter().flatten();
        if !covered.all(|it| self.components.covers(group, &it.key.namespace)) {
            return;
        }
        let is_named = matches!(self.components.get(group), Some(Component::DaemonSet(_)));
        for (node, entry) in self.nodes.with_nodes() {
            let concerns = |it: &&DaemonSet| selects(it, node) || entry.runs(group, it);
            if is_named || states.iter().flatten().any(concerns) {
                self.schedule.mark(&node.name, Why::Seen);
            }
        }
    }

    fn put_rule(&mut self, state: State<RuleObject>, now: Timestamp) {
        // Rules that existed before this process are as old as the cluster.
        let has_synced = self.views.have_synced();
        let since = if has_synced { now } else { Timestamp::MIN };
        let (rule, _) = self.stores.rules.put(state);
        let known = self.rules.put(rule, &self.components.classes, since);
        let shown = known.filter(|_| self.schedule.evaluates);
        self.schedule.changes.statuses.extend(shown);
    }

    fn put_claim(&mut self, state: State<NodeClaim>) {
        let (claim, known) = self.stores.claims.put(state);
        self.claims.put(claim.clone());
        if known.as_deref() != Some(&claim) {
            self.mark_where(|node, _| {
                claim.names(node) || known.as_ref().is_some_and(|known| known.names(node))
            });
        }
    }

    fn remove_claim(&mut self, key: &ObjectKey) {
        if let Some(gone) = self.stores.claims.remove(key) {
            self.claims.remove(&key.name);
            self.mark_where(|node, _| gone.names(node));
        }
    }

    fn put_pool(&mut self, state: State<NodePool>) {
        let name = state.key.name.clone();
        let (pool, known) = self.stores.pools.put(state);
        if known.as_deref() != Some(&pool) {
            self.mark_where(|_, pool| pool == Some(&*name));
        }
        self.claims.pools.insert(name, pool);
    }

    /// Marks the nodes that a predicate holds for, given each with the name of its pool, if any rule repairs nodes.
    fn mark_where(&mut self, is_meant: impl Fn(&Node, Option<&str>) -> bool) {
        if !self.rules.set.repairing.is_empty() {
            let nodes = self.nodes.nodes();
            let meant = nodes.filter(|node| is_meant(node, self.claims.of(node).pool_name()));
            self.schedule
                .mark_each(meant.map(|node| &node.name), Why::Seen);
        }
    }
}

/// Whether findings about rules may depend on what differs: labels, taints that stay, and which conditions a node has.
fn differ(known: &Node, node: &Node, passing: &PassingTaints) -> bool {
    let [was, is] = [known, node].map(|node| {
        let staying = node.taints.iter().filter(|it| !passing.contains(it));
        (
            &node.labels,
            staying,
            node.conditions.iter().map(|it| &it.kind),
        )
    });
    was.0 != is.0 || !was.1.eq(is.1) || !was.2.eq(is.2)
}
