//! A cache of what the watches have shown: it keeps together all that is known of a node, and queues the nodes that a change
//! may affect. Events that cannot change a decision are dropped here.

mod apply;
mod certain;
mod index;
mod named;
mod objects;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use super::freshness::WatchStates;
use super::io::Now;
use super::map::{Map, Set};
use super::unreadable::Broken;
use crate::condition::{
    ByGroup, CriticalComponentClass, NamedComponent, Observations, Scope, Watch,
};
use crate::finding::{Around, Backing};
use crate::object::{CsiNode, DaemonSet, Node, NodePool, ObjectKey, Pod, ResourceSlice};
use crate::plan::{ClusterState, NodeState};
use crate::repair::{Census, NodeClaims, may_be_late};
use crate::rule::{Rule, RuleSet};
use index::Index;
pub(crate) use rules::CachedRule;

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
#[derive(Debug, Default)]
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
    /// Changes of the node may have been missed. If it joined long ago, it may have been released and have met its rules' conditions
    /// meanwhile, so gating it may take something away.
    fn missed_changes(&mut self, now: Timestamp) {
        let is_long_ago = |joined: &mut Timestamp| now.duration_since(*joined) > JOINED_LONG_AGO;
        self.joined.take_if(is_long_ago);
    }
}

/// What the watches have shown of the cluster.
#[derive(Debug, Default)]
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
    named: Vec<NamedComponent>,
    /// The number of the next group of what a rule names.
    next_group: usize,
    daemon_sets: ByGroup<BTreeMap<ObjectKey, DaemonSet>>,
    rules: Map<Arc<str>, CachedRule>,
    suspends_all: bool,
    /// The last rules that were deleted.
    former_rules: VecDeque<Arc<Rule>>,
    rule_set: RuleSet,
    /// Grows whenever `rule_set` changes, and all nodes are evaluated again.
    pub(super) rule_generation: u64,
    /// How far each watch has come, and which ones are to be started.
    pub(super) views: WatchStates,
    /// The watches of classes and of `CSINode`s that have not listed yet, of those that rules depend on.
    unseen: BTreeSet<Watch>,
    /// Whether the clock was set since the nodes were last current: then it is unknown for how long they could not be seen.
    clock_was_set: bool,
    /// Whether nodes are queued. A follower evaluates nothing, and a new leader starts with all nodes.
    evaluates: bool,
    /// The names of the nodes to evaluate, each once, oldest first.
    queue: VecDeque<Arc<str>>,
    queued: Set<Arc<str>>,
    /// Whether the rule set must be rebuilt.
    rules_changed: bool,
    /// Whether the rules, or what they wait for, have changed since the engine asked last.
    has_rule_news: bool,
    /// The rules whose status has been shown again.
    shown_statuses: Set<Arc<str>>,
    claims: NodeClaims,
    pools: Map<Arc<str>, NodePool>,
    /// Whether an outage has ended since the last [`Cache::take_outage`].
    outage_ended: bool,
    /// Freshness at the last evaluation.
    freshness: Freshness,
    /// The nodes on which the controller did not act because something was stale.
    withheld: Set<Arc<str>>,
    repair_after: Option<Instant>,
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
        let karpenter = [Watch::NodeClaims, Watch::NodePools].into_iter();
        let unscoped = [Watch::Nodes, Watch::Rules]
            .into_iter()
            .chain(karpenter.filter(|_| karpenter_is_watched));
        let mut cache = Self {
            rule_set: RuleSet::new([], passing_taints.clone()),
            classes,
            passing_taints,
            publish_conditions,
            rule_generation: 1,
            rules_changed: true,
            ..Self::default()
        };
        let since = Some(now.monotonic);
        for watch in unscoped {
            cache.views.begin(watch, Scope::default(), since);
        }
        cache
    }

    /// Whether every watch has synced that is needed whatever the rules are. Nothing may be decided before.
    pub fn has_synced(&self) -> bool {
        self.views.have_synced()
    }

    /// The state that all nodes share.
    pub fn cluster(&self) -> ClusterState<'_> {
        ClusterState {
            classes: &self.classes,
            named: &self.named,
            daemon_sets: &self.daemon_sets,
            rules: &self.rule_set,
            publish_conditions: self.publish_conditions,
            stale: &self.freshness.stale,
            unseen: &self.unseen,
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
            let nodes = nodes.map(|node| (node, self.pool_name(node)));
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
            karpenter: self.karpenter(node),
        })
    }

    pub fn node_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries
            .iter()
            .filter_map(|(name, entry)| entry.node.is_some().then_some(name))
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        self.entries
            .values()
            .filter_map(|entry| entry.node.as_ref())
    }

    /// The CSI drivers that are registered on any node.
    pub fn csi_drivers(&self) -> impl Iterator<Item = &str> + Clone {
        let csi_nodes = self.entries.values().filter_map(|it| it.csi_node.as_ref());
        let drivers = csi_nodes.flat_map(|csi_node| &csi_node.drivers);
        drivers.map(|driver| driver.name.as_str())
    }

    /// What stands behind the conditions of a rule.
    pub(crate) fn backing(&self, rule: &Rule) -> Backing {
        let Some(spec) = rule.spec.as_ref().ok().filter(|_| !rule.deleting) else {
            return Backing::default();
        };
        let drivers = (!self.unseen.contains(&Watch::CsiNodes)).then(|| self.csi_drivers());
        let around = Around::watched(spec, self.cluster(), Some(self.nodes()), drivers);
        Backing::of(&rule.name, spec, &around)
    }

    /// How many objects of each watched kind are known.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let is_watched = |kind: &Watch| match kind {
            Watch::NodeClaims | Watch::NodePools => self.views.has(*kind),
            _ => true,
        };
        let kinds = Watch::KINDS.into_iter().filter(is_watched);
        kinds.map(|kind| (kind.short_name(), self.index.count(kind)))
    }

    pub fn dirty_count(&self) -> usize {
        self.queue.len()
    }

    pub fn rules(&self) -> &Map<Arc<str>, CachedRule> {
        &self.rules
    }

    pub fn next_dirty(&mut self) -> Option<Arc<str>> {
        let name = self.queue.pop_front()?;
        self.queued.remove(&name);
        Some(name)
    }

    pub fn has_dirty(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Starts to queue nodes for evaluation, with all nodes.
    pub fn begin_evaluations(&mut self) {
        self.evaluates = true;
        self.mark_all();
    }

    /// Queues a node for evaluation.
    pub fn mark(&mut self, name: &Arc<str>) {
        if self.evaluates && self.queued.insert(name.clone()) {
            self.queue.push_back(name.clone());
        }
    }

    fn mark_each(&mut self, names: &[Arc<str>]) {
        for name in names {
            self.mark(name);
        }
    }

    /// Queues every node for evaluation.
    pub fn mark_all(&mut self) {
        let names: Vec<_> = self.node_names().cloned().collect();
        self.mark_each(&names);
    }

    /// Whether the rules, or the `DaemonSet`s that they shut out, may have changed since the last call.
    pub fn take_rules_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_rule_news)
    }

    /// Takes the rules whose status has been shown again since the last call.
    pub fn take_shown_statuses(&mut self) -> Set<Arc<str>> {
        std::mem::take(&mut self.shown_statuses)
    }

    /// The unreadable object because of which this node is left as it is, if any.
    pub fn left_alone(&self, node: &str) -> Option<&Broken> {
        self.index.left_alone(node)
    }

    /// The unreadable objects that have not been reported yet.
    pub fn tell_unreadable(&mut self) -> Vec<Broken> {
        self.index.tell_unreadable()
    }

    pub fn unreadable_counts(&self) -> BTreeMap<&'static str, usize> {
        self.index.unreadable_counts()
    }

    fn drop_if_empty(&mut self, name: &Arc<str>) {
        let is_empty = |entry: &Entry| {
            entry.node.is_none()
                && entry.csi_node.is_none()
                && entry.pods.is_empty()
                && entry.slices.is_empty()
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
