//! A cache of what the watches have shown: it keeps together all that is known of a node, and queues the nodes that a change
//! may affect. Events that cannot change a decision are dropped here.

mod cached_rule;
mod certain;
mod components;
mod dirty;
mod groups;
mod index;
mod karpenter;
mod named;
mod nodes;
mod rules;
mod see;
#[cfg(test)]
mod tests;
mod understood;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use super::freshness::Views;
use super::io::{Effect, Now};
use super::map::{Map, Set};
use crate::condition::{
    ByGroup, ComponentGroup, CriticalComponentClass, Observations, Scope, Watch,
};
use crate::object::{CsiNode, DaemonSet, Node, ObjectKey, Pod, ResourceSlice};
use crate::plan::{Backing, ClusterState, NodeState};
use crate::repair::{Census, may_be_late};
use crate::rule::{CompiledSpec, Rule, RuleSet};
pub(crate) use cached_rule::CachedRule;
use dirty::Dirty;
use index::Index;
pub(super) use karpenter::KarpenterCache;
use named::Named;
use unreadable::Unreadables;

/// A node that joined longer ago than this may be in use, unless every change of it has been seen.
const JOINED_LONG_AGO: SignedDuration = SignedDuration::from_secs(30);

/// What is known under one node name.
#[derive(Debug, Default)]
struct Entry {
    node: Option<Node>,
    /// When the node joined, if this process saw that. For a node that a relist shows, the time when the nodes were last
    /// current.
    joined: Option<Timestamp>,
    /// When the node's latest state came.
    seen: Option<Instant>,
    observations: Observations,
    csi_node: Option<CsiNode>,
    /// Pods bound to the node, by group.
    pods: ByGroup<Vec<Pod>>,
    /// `ResourceSlice`s of the node, by group.
    slices: ByGroup<Vec<ResourceSlice>>,
    /// Indices into the rule set of the rules that select the node, as of `selected_at`.
    selecting: Vec<usize>,
    /// The rule generation at which `selecting` was computed; 0 for never.
    selected_at: u64,
}

/// Freshness of the cache at the last [`Cache::assess_freshness`].
#[derive(Debug)]
struct Freshness {
    /// When that was.
    at: Timestamp,
    /// The watches that are not known to be current.
    stale: BTreeSet<Watch>,
    /// As of when the nodes are known.
    nodes_as_of: Timestamp,
    /// As of when the rules are known; `None` while they are stale.
    rules_as_of: Option<Instant>,
    /// Until when repair is postponed.
    repair_after: Option<Timestamp>,
    /// The health of all nodes, once a late node was to be evaluated.
    census: Option<Census>,
}

impl Entry {
    /// Changes of the node may have been missed. If it joined long ago, it may have been open and met its rules' conditions
    /// meanwhile, so closing it may take something away.
    fn missed_changes(&mut self, now: Timestamp) {
        let is_long_ago = |joined: &mut Timestamp| now.duration_since(*joined) > JOINED_LONG_AGO;
        self.joined.take_if(is_long_ago);
    }
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            at: Timestamp::MIN,
            stale: BTreeSet::new(),
            nodes_as_of: Timestamp::MIN,
            rules_as_of: None,
            repair_after: None,
            census: None,
        }
    }
}

/// What has to follow a change of the rules.
#[derive(Debug)]
struct RuleNews {
    /// Whether the rule set must be rebuilt.
    are_unsorted: bool,
    /// Whether the engine has not been told yet.
    are_untold: bool,
}

impl Default for RuleNews {
    fn default() -> Self {
        Self {
            are_unsorted: true,
            are_untold: false,
        }
    }
}

/// What the watches have shown of the cluster.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says something else, whatever becomes of the others"
)]
pub struct Cache {
    classes: Vec<CriticalComponentClass>,
    passing_taints: Vec<String>,
    publish_conditions: bool,
    index: Index,
    /// By node name. Boxed, because a large part of a map's places is empty.
    entries: Map<Arc<str>, Box<Entry>>,
    named: Named,
    daemon_sets: ByGroup<BTreeMap<ObjectKey, DaemonSet>>,
    rules: Map<Arc<str>, CachedRule>,
    suspends_all: bool,
    /// The last rules that were deleted.
    former_rules: VecDeque<Arc<Rule>>,
    rule_set: RuleSet,
    /// Grows whenever `rule_set` changes.
    rule_generation: u64,
    views: Views,
    /// The permanent watches to start.
    orders: Vec<Effect>,
    /// Whether the clock was set since the nodes were last current: then it is unknown for how long they could not be seen.
    clock_was_set: bool,
    dirty: Dirty,
    rule_news: RuleNews,
    /// The rules whose status has been shown again.
    shown_statuses: Set<Arc<str>>,
    karpenter: KarpenterCache,
    /// Whether an outage has ended since the last [`Cache::take_outage`].
    outage_ended: bool,
    /// Freshness at the last evaluation.
    freshness: Freshness,
    /// The nodes on which the controller did not act because something was stale.
    withheld: Set<Arc<str>>,
    repair_after: Option<Instant>,
    unreadables: Unreadables,
}

impl Cache {
    /// An empty cache that has not synced. Unless `karpenter_is_watched`, it does not wait for Karpenter's objects.
    pub fn new(
        classes: Vec<CriticalComponentClass>,
        passing_taints: Vec<String>,
        publish_conditions: bool,
        karpenter_is_watched: bool,
        now: Now,
    ) -> Self {
        let of_classes = classes.iter().enumerate().flat_map(|(index, class)| {
            let group = ComponentGroup::Class(index);
            let watches = [Watch::Pods(group), Watch::DaemonSets(group)];
            watches.map(|watch| (watch, class.scope(watch)))
        });
        let karpenter = [Watch::NodeClaims, Watch::NodePools].into_iter();
        let unscoped = [Watch::Nodes, Watch::CsiNodes, Watch::Rules]
            .into_iter()
            .chain(karpenter.filter(|_| karpenter_is_watched));
        let unscoped = unscoped.map(|watch| (watch, Scope::default()));
        let mut views = Views::default();
        let mut orders = Vec::new();
        for (watch, scope) in unscoped.chain(of_classes) {
            views.begin(watch, scope.clone(), Some(now.monotonic));
            orders.push(Effect::Watch(watch, scope));
        }
        Self {
            rule_set: RuleSet::new([], passing_taints.clone()),
            named: Named::default(),
            classes,
            passing_taints,
            suspends_all: false,
            publish_conditions,
            index: Index::default(),
            entries: Map::default(),
            daemon_sets: ByGroup::default(),
            rules: Map::default(),
            former_rules: VecDeque::new(),
            rule_generation: 1,
            views,
            orders,
            clock_was_set: false,
            dirty: Dirty::default(),
            rule_news: RuleNews::default(),
            shown_statuses: Set::default(),
            karpenter: KarpenterCache::new(karpenter_is_watched),
            outage_ended: false,
            freshness: Freshness::default(),
            withheld: Set::default(),
            repair_after: None,
            unreadables: Unreadables::default(),
        }
    }

    /// Whether every watch has synced. Nothing may be decided before.
    pub fn has_synced(&self) -> bool {
        self.views.have_synced()
    }

    /// The state that all nodes share.
    pub fn cluster(&self) -> ClusterState<'_> {
        ClusterState {
            classes: &self.classes,
            named: self.named.all(),
            daemon_sets: &self.daemon_sets,
            rules: &self.rule_set,
            publish_conditions: self.publish_conditions,
            stale: &self.freshness.stale,
            nodes_as_of: self.freshness.nodes_as_of,
            census: self.census().filter(|_| self.freshness.stale.is_empty()),
            repair_after: self.freshness.repair_after,
        }
    }

    /// Works out which rules select this node, if its labels or the rules have changed, and tracks the heartbeats that rules
    /// ask for.
    pub fn select_rules(&mut self, name: &str, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(name)
            && entry.selected_at != self.rule_generation
            && let Some(node) = &entry.node
        {
            entry.selecting = self.rule_set.selecting(&node.labels);
            let followed = &self.rule_set.followed;
            entry.observations.follow(followed, node, now);
            let repairing = &self.rule_set.repairing;
            entry.observations.see_deadlines(node, repairing);
            entry.selected_at = self.rule_generation;
        }
        self.count_health(name);
    }

    /// Counts the health of all nodes, if this one may be late and it is not counted yet.
    fn count_health(&mut self, name: &str) {
        let at = self.freshness.at;
        let Some(entry) = self.entries.get(name) else {
            return;
        };
        let rules = self.rule_set.rules();
        let mut selecting = entry.selecting.iter().map(|index| &rules[*index]);
        let is_late = |node: &Node| selecting.any(|rule| may_be_late(node, rule, at));
        if self.freshness.census.is_none() && entry.node.as_ref().is_some_and(is_late) {
            let nodes = self.nodes();
            let nodes = nodes.map(|node| (node, self.karpenter.pool_name(node)));
            let census = Census::take(nodes, rules, |_| false, at);
            self.freshness.census = Some(census);
        }
    }

    /// The health of all nodes, if it was counted since the last [`Self::assess_freshness`].
    pub fn census(&self) -> Option<&Census> {
        self.freshness.census.as_ref()
    }

    /// The state of the node of this name, if it exists. Call [`Cache::select_rules`] first.
    pub fn node(&self, name: &str) -> Option<NodeState<'_>> {
        let entry = self.entries.get(name)?;
        let node = entry.node.as_ref()?;
        Some(NodeState {
            node,
            csi_node: entry.csi_node.as_ref(),
            pods: &entry.pods,
            slices: &entry.slices,
            selecting: &entry.selecting,
            observations: &entry.observations,
            joined: entry.joined,
            knows_rules: entry.seen <= self.freshness.rules_as_of,
            karpenter: self.karpenter.of(node),
        })
    }

    pub fn node_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries
            .iter()
            .filter_map(|(name, entry)| entry.node.is_some().then_some(name))
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.entries
            .values()
            .filter_map(|entry| entry.node.as_ref())
    }

    /// The CSI drivers that are registered on any node.
    pub fn csi_drivers(&self) -> impl Iterator<Item = &str> {
        let csi_nodes = self.entries.values().filter_map(|it| it.csi_node.as_ref());
        let drivers = csi_nodes.flat_map(|csi_node| &csi_node.drivers);
        drivers.map(|driver| driver.name.as_str())
    }

    /// What stands behind the conditions of a rule.
    pub fn backing(&self, spec: &CompiledSpec) -> Backing {
        let has_csi_driver = |name: &str| self.csi_drivers().any(|driver| driver == name);
        Backing::of(spec, self.cluster(), || self.nodes(), has_csi_driver)
    }

    pub fn karpenter(&self) -> &KarpenterCache {
        &self.karpenter
    }

    /// How many objects of each watched kind are known.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let is_watched = |kind: &Watch| match kind {
            Watch::NodeClaims | Watch::NodePools => self.karpenter.is_watched(),
            _ => true,
        };
        let kinds = Watch::KINDS.into_iter().filter(is_watched);
        kinds.map(|kind| (kind.short_name(), self.index.count(kind)))
    }

    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    pub fn rules(&self) -> &Map<Arc<str>, CachedRule> {
        &self.rules
    }

    pub fn next_dirty(&mut self) -> Option<Arc<str>> {
        self.dirty.next()
    }

    pub fn has_dirty(&self) -> bool {
        self.dirty.len() > 0
    }

    /// Starts to queue nodes for evaluation, with all nodes.
    pub fn begin_evaluations(&mut self) {
        self.dirty.begin();
        self.mark_all();
    }

    /// Queues a node for evaluation.
    pub fn mark(&mut self, name: &Arc<str>) {
        self.dirty.mark(name);
    }

    /// Queues every node for evaluation.
    pub fn mark_all(&mut self) {
        let names: Vec<_> = self.node_names().cloned().collect();
        for name in names {
            self.mark(&name);
        }
    }

    /// Whether the rules, or the `DaemonSet`s that they shut out, may have changed since the last call.
    pub fn take_rules_changed(&mut self) -> bool {
        std::mem::take(&mut self.rule_news.are_untold)
    }

    /// Takes the rules whose status has been shown again since the last call.
    pub fn take_shown_statuses(&mut self) -> Set<Arc<str>> {
        std::mem::take(&mut self.shown_statuses)
    }

    fn entry(&mut self, name: &Arc<str>) -> &mut Entry {
        entry(&mut self.entries, name)
    }

    fn drop_if_empty(&mut self, name: &Arc<str>) {
        let is_empty = |entry: &Entry| {
            entry.node.is_none()
                && entry.csi_node.is_none()
                && entry.pods.values().all(Vec::is_empty)
                && entry.slices.values().all(Vec::is_empty)
        };
        if self.entries.get(name).is_some_and(|it| is_empty(it)) {
            self.entries.remove(name);
        }
    }
}

/// The entry of this node name, created if missing.
fn entry<'a>(entries: &'a mut Map<Arc<str>, Box<Entry>>, name: &Arc<str>) -> &'a mut Entry {
    entries.entry(name.clone()).or_default()
}
