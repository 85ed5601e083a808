//! What the watches have shown so far, kept so that everything about one node is at hand, and which nodes have to
//! be evaluated again because of it. Events that cannot change a decision are dropped here.

mod apply;
mod certain;
mod change;
mod dirty;
mod karpenter;
mod looked;
#[cfg(test)]
mod tests;
mod unreadable;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use jiff::Timestamp;
use kube::Resource;

use crate::api::NodeReadinessRuleStatus;
use crate::condition::{CriticalComponentClass, Sightings};
use crate::engine::Certainty;
use crate::object::{
    self, CsiNode, DaemonSet, Node, NodeMetadata, NodeObject, ObjectKey, Pod, RuleObject, Taint,
    Version,
};
use crate::plan::{ClusterState, Doubts, NodeState};
use crate::repair::{Census, Settling, Situation};
use crate::rule::{Rule, RuleSet};
pub use change::{Change, Event, Watch};
use dirty::Dirty;
use karpenter::{Concerned, KarpenterCache, Mention};
pub use looked::{ClusterEvidence, List, NodeEvidence};
pub use unreadable::{Broken, Identity, Unreadables};

/// How many rules are remembered that are gone.
const FORMER_RULES: usize = 256;

/// What one rule's object says beyond its compiled form.
#[derive(Debug)]
pub struct CachedRule {
    /// The rule, compiled.
    pub rule: Arc<Rule>,
    /// The version of this state.
    pub version: Version,
    /// All finalizers on the object, ours or not.
    pub finalizers: Vec<String>,
    /// The status as the API server holds it.
    pub status: NodeReadinessRuleStatus,
}

/// Everything that is known about one node name.
#[derive(Debug, Default)]
struct Entry {
    node: Option<Node>,
    /// When the node came, where this process saw it come; what a relist shows came when the view was last certain, or
    /// since.
    joined: Option<Timestamp>,
    sightings: Sightings,
    csi_node: Option<CsiNode>,
    /// Pods bound to the node, for each class.
    pods: Vec<Vec<Pod>>,
    /// Indices into the rule set of the rules that select the node, as of `selected_at`.
    selecting: Vec<usize>,
    /// The cache's rule generation for which `selecting` was worked out; 0 for never.
    selected_at: u64,
}

/// The names seen since a relist began, while one is under way.
#[derive(Debug)]
pub(super) struct Relist<K>(Option<HashSet<K>>);

impl<K: Hash + Eq> Relist<K> {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    pub(super) fn begin(&mut self) {
        self.0 = Some(HashSet::new());
    }

    pub(super) fn saw(&mut self, key: K) {
        if let Some(seen) = &mut self.0 {
            seen.insert(key);
        }
    }

    /// Ends the relist; what answers `true` was not in it and is gone.
    pub(super) fn end(&mut self) -> impl Fn(&K) -> bool + use<K> {
        let seen = self.0.take().unwrap_or_default();
        move |key| !seen.contains(key)
    }
}

/// The state of the cluster, as far as the watches have shown it.
#[derive(Debug)]
pub struct Cache {
    classes: Vec<CriticalComponentClass>,
    passing_taints: Vec<String>,
    publish_conditions: bool,
    entries: HashMap<Arc<str>, Entry>,
    /// Where each pod is bound to, for each class.
    pod_nodes: Vec<HashMap<ObjectKey, Arc<str>>>,
    daemon_sets: Vec<BTreeMap<ObjectKey, DaemonSet>>,
    rules: HashMap<Arc<str>, CachedRule>,
    /// Rules that have been there and are gone, the last ones of them.
    former_rules: VecDeque<Arc<Rule>>,
    rule_set: RuleSet,
    /// Grows whenever `rule_set` changes.
    rule_generation: u64,
    unsynced: HashSet<Watch>,
    relists: Relists,
    dirty: Dirty,
    rules_changed: bool,
    /// The rules whose status a watch has shown to be another than was known.
    shown_statuses: HashSet<Arc<str>>,
    karpenter: KarpenterCache,
    certainty: Certainty<Watch>,
    /// When the last look at the cluster was asked for that was taken in.
    looked_at: Option<Instant>,
    /// What was in doubt when it was last asked.
    doubts: Doubts,
    /// Whether anything at all was in doubt then.
    is_certain: bool,
    /// Until when overdue nodes are left alone, as of then.
    settles_at: Option<Timestamp>,
    /// When that was.
    weighed_at: Timestamp,
    /// How the nodes were doing then, once somebody has asked.
    census: OnceLock<Census>,
    /// The confirmation of the watches that counts; what they confirmed before it was asked for does not.
    confirmation: u64,
    /// The nodes for which something was not done because of a doubt.
    withheld: HashSet<Arc<str>>,
    settling: Settling,
    unreadables: Unreadables,
}

#[derive(Debug)]
struct Relists {
    nodes: Relist<Arc<str>>,
    csi_nodes: Relist<Arc<str>>,
    pods: Vec<Relist<ObjectKey>>,
    daemon_sets: Vec<Relist<ObjectKey>>,
    rules: Relist<Arc<str>>,
}

impl Cache {
    /// An empty cache, which has not synced. Karpenter's objects are only waited for where they are watched.
    pub fn new(
        classes: Vec<CriticalComponentClass>,
        passing_taints: Vec<String>,
        publish_conditions: bool,
        karpenter_is_watched: bool,
    ) -> Self {
        let count = classes.len();
        let unsynced: HashSet<_> = [Watch::Nodes, Watch::CsiNodes, Watch::Rules]
            .into_iter()
            .chain((0..count).flat_map(|class| [Watch::Pods(class), Watch::DaemonSets(class)]))
            .collect();
        let karpenter = [Watch::NodeClaims, Watch::NodePools];
        let watched = karpenter.into_iter().filter(|_| karpenter_is_watched);
        let certainty = Certainty::new(unsynced.iter().copied().chain(watched), Instant::now());
        Self {
            rule_set: RuleSet::new([], passing_taints.clone()),
            classes,
            passing_taints,
            publish_conditions,
            entries: HashMap::new(),
            pod_nodes: (0..count).map(|_| HashMap::new()).collect(),
            daemon_sets: vec![BTreeMap::new(); count],
            rules: HashMap::new(),
            former_rules: VecDeque::new(),
            rule_generation: 1,
            unsynced,
            relists: Relists {
                nodes: Relist::none(),
                csi_nodes: Relist::none(),
                pods: (0..count).map(|_| Relist::none()).collect(),
                daemon_sets: (0..count).map(|_| Relist::none()).collect(),
                rules: Relist::none(),
            },
            dirty: Dirty::default(),
            rules_changed: false,
            shown_statuses: HashSet::new(),
            karpenter: KarpenterCache::new(karpenter_is_watched),
            certainty,
            looked_at: None,
            doubts: Doubts::ALL,
            is_certain: false,
            settles_at: None,
            weighed_at: Timestamp::MIN,
            census: OnceLock::new(),
            confirmation: 0,
            withheld: HashSet::new(),
            settling: Settling::default(),
            unreadables: Unreadables::default(),
        }
    }

    /// Whether every watch has shown all there is. Nothing may be decided before.
    pub fn has_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// What is the same for every node.
    pub fn cluster(&self) -> ClusterState<'_> {
        ClusterState {
            classes: &self.classes,
            daemon_sets: &self.daemon_sets,
            rules: &self.rule_set,
            publish_conditions: self.publish_conditions,
            doubts: self.doubts,
            repair: Situation {
                in_doubt: !self.is_certain,
                settles_at: self.settles_at,
                headcount: self,
            },
        }
    }

    /// Works out which rules select the node of this name, if its labels or the rules have changed, and follows the
    /// heartbeats that the rules want to know of from now on.
    pub fn select_rules(&mut self, name: &str, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(name)
            && entry.selected_at != self.rule_generation
            && let Some(node) = &entry.node
        {
            entry.selecting = self.rule_set.selecting(&node.labels);
            entry.sightings.follow(self.rule_set.followed(), now);
            entry.selected_at = self.rule_generation;
        }
    }

    /// What has been seen of the node of this name, if there is one. [`Cache::select_rules`] comes first.
    pub fn node(&self, name: &str) -> Option<NodeState<'_>> {
        let entry = self.entries.get(name)?;
        let node = entry.node.as_ref()?;
        Some(NodeState {
            node,
            csi_node: entry.csi_node.as_ref(),
            pods: &entry.pods,
            selecting: &entry.selecting,
            sightings: &entry.sightings,
            joined: entry.joined,
            karpenter: self.karpenter.of(node),
        })
    }

    /// Names of all nodes.
    pub fn node_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries
            .iter()
            .filter_map(|(name, entry)| entry.node.is_some().then_some(name))
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.entries
            .values()
            .filter_map(|entry| entry.node.as_ref())
    }

    /// What is known of Karpenter's objects.
    pub fn karpenter(&self) -> &KarpenterCache {
        &self.karpenter
    }

    /// How many objects of each kind there are.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let with_csi_node = self
            .entries
            .values()
            .filter(|entry| entry.csi_node.is_some());
        [
            ("nodes", self.node_names().count()),
            ("csinodes", with_csi_node.count()),
            ("pods", self.pod_nodes.iter().map(HashMap::len).sum()),
            (
                "daemonsets",
                self.daemon_sets.iter().map(BTreeMap::len).sum(),
            ),
            ("rules", self.rules.len()),
        ]
        .into_iter()
        .chain(self.karpenter.sizes())
    }

    /// How many nodes wait to be evaluated.
    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// All rules by name.
    pub fn rules(&self) -> &HashMap<Arc<str>, CachedRule> {
        &self.rules
    }

    /// The next node that has to be evaluated.
    pub fn next_dirty(&mut self) -> Option<Arc<str>> {
        self.dirty.next()
    }

    /// Whether any node has to be evaluated.
    pub fn has_dirty(&self) -> bool {
        self.dirty.len() > 0
    }

    /// Notes from now on which nodes have to be evaluated: to begin with, all.
    pub fn begin_evaluations(&mut self) {
        self.dirty.begin();
        self.mark_all();
    }

    /// Has this node evaluated.
    pub fn mark(&mut self, name: &Arc<str>) {
        self.dirty.mark(name);
    }

    /// Has every node evaluated.
    pub fn mark_all(&mut self) {
        let names: Vec<_> = self.node_names().cloned().collect();
        for name in names {
            self.mark(&name);
        }
    }

    /// Whether the rules, or what `DaemonSet`s they shut out, may have changed since this was asked last.
    pub fn take_rules_changed(&mut self) -> bool {
        std::mem::take(&mut self.rules_changed)
    }

    /// The rules whose status a watch has shown to be another than was known, since this was asked last.
    pub fn take_shown_statuses(&mut self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.shown_statuses)
    }

    /// Has the nodes evaluated that something of Karpenter's concerns, if there is a rule to which that matters.
    fn mark_concerned(&mut self, concerned: Concerned) {
        let repairs = |rule: &Arc<Rule>| rule.active().is_some_and(|spec| spec.repair.is_some());
        if !self.rule_set.rules().iter().any(repairs) {
            return;
        }
        match concerned {
            Concerned::Nobody => {}
            Concerned::Everybody => {
                self.rules_changed = true;
                self.mark_all();
            }
            Concerned::Nodes(mentions) => {
                let is_meant = |node: &&Node| {
                    let pool = self.karpenter.pool_name(node);
                    let mut mentions = mentions.iter();
                    mentions.any(|mention: &Mention| mention.is_of(node, pool))
                };
                let names: Vec<_> = self
                    .nodes()
                    .filter(is_meant)
                    .map(|node| node.name.clone())
                    .collect();
                for name in names {
                    self.mark(&name);
                }
            }
        }
    }

    /// Takes in a node as an answer to a write or a read showed it, unless the cache has a newer state already. What
    /// that says over time is noted as when a watch shows it: the watch may never show just this state.
    pub fn update_node(&mut self, object: NodeObject, now: Timestamp) {
        let meta = object.meta();
        let known = self
            .entries
            .get(&object::name(meta))
            .and_then(|entry| entry.node.as_ref());
        let is_as_new = |known: &Node| {
            // Of the same version there may be more to see: a patch answers with metadata alone.
            meta.uid.as_deref() == Some(&*known.uid)
                && known.version <= object::resource_version(meta)
        };
        if known.is_some_and(is_as_new) {
            self.see_node(object, None, now);
        }
    }

    /// Takes in what a patch has made of a node, unless the cache has a newer state already. Whoever made it has the node
    /// evaluated again.
    pub fn patched_node(&mut self, patched: NodeMetadata, taints: Option<Vec<Taint>>) {
        let Some(entry) = self.entries.get_mut(&patched.name) else {
            return;
        };
        if let Some(node) = &mut entry.node
            && node.uid == patched.uid
            && node.version < patched.version
        {
            if node.take_in(patched, taints) {
                entry.selected_at = 0;
            }
            entry.sightings.see_deadlines(node);
        }
    }

    fn synced(&mut self, watch: Watch) {
        if self.unsynced.remove(&watch) && self.unsynced.is_empty() {
            self.rebuild_rules();
        }
    }

    /// Takes in a rule as an answer to a write showed it, unless the cache has a newer state already.
    pub fn update_rule(&mut self, object: RuleObject, now: Timestamp) {
        let known = self.rules.get(&object::name(&object.metadata));
        if known.is_some_and(|known| Some(&*known.rule.uid) == object.metadata.uid.as_deref()) {
            self.apply_rule(Event::Apply(object), now);
        }
    }

    /// Takes in that a rule's status has been written, unless the cache has a newer state already.
    pub fn wrote_status(
        &mut self,
        uid: &str,
        name: &str,
        status: NodeReadinessRuleStatus,
        version: Version,
    ) {
        if let Some(known) = self.rules.get_mut(name)
            && *known.rule.uid == *uid
            && known.version < version
        {
            known.status = status;
            known.version = version;
        }
    }

    /// Remembers a rule that is gone: taints may be left of it.
    fn retire(&mut self, rule: Arc<Rule>) {
        if self.former_rules.len() == FORMER_RULES {
            self.former_rules.pop_front();
        }
        self.former_rules.push_back(rule);
    }

    /// Puts the rules in order again and has every node evaluated.
    fn rebuild_rules(&mut self) {
        let rules = self.rules.values().map(|cached| cached.rule.clone());
        self.rule_set = RuleSet::new(rules, self.passing_taints.clone())
            .after(self.former_rules.iter().cloned());
        self.rule_generation += 1;
        self.rules_changed = true;
        self.mark_all();
    }

    fn entry(&mut self, name: &Arc<str>) -> &mut Entry {
        entry(&mut self.entries, name, self.classes.len())
    }

    fn drop_if_empty(&mut self, name: &Arc<str>) {
        let is_empty = |entry: &Entry| {
            entry.node.is_none() && entry.csi_node.is_none() && entry.pods.iter().all(Vec::is_empty)
        };
        if self.entries.get(name).is_some_and(is_empty) {
            self.entries.remove(name);
        }
    }
}

/// What is known under this node name, from now on if nothing was.
fn entry<'a>(
    entries: &'a mut HashMap<Arc<str>, Entry>,
    name: &Arc<str>,
    classes: usize,
) -> &'a mut Entry {
    entries.entry(name.clone()).or_insert_with(|| Entry {
        pods: vec![Vec::new(); classes],
        ..Entry::default()
    })
}

/// Whether a state that a watch shows is older than the one that is known from the answer to a write.
pub(super) fn is_stale(known: Version, shown: Version) -> bool {
    shown != 0 && shown < known
}
