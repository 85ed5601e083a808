//! What is known of each node, kept together: an evaluation reads what belongs to one node.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use super::rulebook::Rulebook;
use crate::io::Now;
use crate::map::Map;
use nodegate_core::condition::{ByGroup, ComponentGroup, Observations, Watch};
use nodegate_core::object::{CsiNode, DaemonSet, Kept, Node, ObjectKey, Pod, ResourceSlice};
use nodegate_core::rule::RuleSet;

/// A node that joined longer ago than this may be in use, unless every change of it has been seen.
const JOINED_LONG_AGO: SignedDuration = SignedDuration::from_secs(30);

/// What is known under one node name.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) node: Option<Kept<Node>>,
    /// When the node joined, if this process saw that; for one that a relist shows, when the nodes were last current.
    pub(super) joined: Option<Timestamp>,
    /// When the node's latest state came.
    pub(super) seen: Option<Instant>,
    pub(super) observations: Observations,
    pub(super) csi_node: Option<Kept<CsiNode>>,
    pub(super) pods: ByGroup<Vec<Kept<Pod>>>,
    pub(super) slices: ByGroup<Vec<Kept<ResourceSlice>>>,
    /// Indices into the rule set of the rules that select the node, as of `selected_at`.
    pub(super) selecting: Vec<usize>,
    /// The rule generation at which `selecting` was computed; 0 for never, and while it depends on the time.
    selected_at: u64,
    /// The rule generation at which the node with these labels was compared with every rule; 0 for never.
    compared_at: u64,
    /// UIDs of the active rules that selected it then.
    matching: Vec<Arc<str>>,
}

impl Entry {
    /// Keeps a node, updates its observations; returns whether a decision may depend on what has changed. `joined`: the earliest
    /// time at which a node that is seen for the first time can have joined. `is_late`: changes may have been missed.
    pub(super) fn put_node(
        &mut self,
        node: &Kept<Node>,
        joined: Option<Timestamp>,
        is_late: bool,
        rules: &RuleSet,
        now: Now,
    ) -> bool {
        let known = self.node.replace(node.clone());
        let known = known.as_deref();
        if known.is_none_or(|known| known.uid != node.uid) {
            self.joined = joined;
        }
        if known.is_none_or(|it| it.labels != node.labels) {
            (self.selected_at, self.compared_at) = (0, 0);
        }
        self.seen = Some(now.monotonic);
        let observations = &mut self.observations;
        let is_alive = observations.see(known, node, &rules.followed, now.wall);
        observations.see_deadlines(node, &rules.repairing);
        if is_late {
            observations.saw_late(now.wall);
            self.missed_changes(now.wall);
        }
        is_alive || known.is_none_or(|it| is_news(it, node, &rules.counted))
    }

    /// Keeps a node of which a patch has changed metadata alone.
    pub(super) fn patch(&mut self, node: Kept<Node>, rules: &RuleSet, now: Timestamp) {
        let known = self.node.as_deref().unwrap_or(&node);
        if known.labels != node.labels {
            self.compared_at = 0;
        }
        self.observations.see_labels(known, &node, now);
        self.selected_at = 0;
        self.observations.see_deadlines(&node, &rules.repairing);
        self.node = Some(node);
    }

    pub(super) fn select_rules(&mut self, rules: &Rulebook, now: Timestamp) {
        if self.selected_at != rules.generation
            && let Some(node) = &self.node
        {
            let set = &rules.set;
            // Which rules select it changes with its labels and with those rules alone.
            let is_known = |index: usize| rules.since[index] <= self.compared_at;
            let selects = |index: usize| {
                let uid = &set.rules()[index].uid;
                is_known(index).then(|| self.matching.contains(uid))
            };
            let matching = set.matching(node, selects);
            self.matching = set.at(&matching).map(|rule| rule.uid.clone()).collect();
            self.compared_at = rules.generation;
            self.selecting = set.recalled(matching, node, &self.observations, now);
            self.observations.follow(&set.followed, node, now);
            self.observations.see_deadlines(node, &set.repairing);
            let is_settled = !self.observations.recall_anything(now);
            self.selected_at = if is_settled { rules.generation } else { 0 };
        }
    }

    /// Keeps a `CSINode`, or that there is none; returns whether that is new. `is_first_sight`: not all have been listed yet.
    pub(super) fn set_csi_node(
        &mut self,
        csi_node: Option<Kept<CsiNode>>,
        is_first_sight: bool,
    ) -> bool {
        let known = std::mem::replace(&mut self.csi_node, csi_node);
        let (before, after) = (known.as_deref(), self.csi_node.as_deref());
        let is_news = before != after;
        if is_news && !is_first_sight {
            self.observations.see_csi_node(before, after);
        }
        is_news
    }

    /// Whether a `DaemonSet` of this group has a pod on the node.
    pub(super) fn runs(&self, group: ComponentGroup, daemon_set: &DaemonSet) -> bool {
        let mut pods = self.pods.get(&group).into_iter().flatten();
        pods.any(|pod| daemon_set.owns(pod))
    }

    /// Changes may have been missed: one that joined long ago may be released and in use by now, so gating it may do harm.
    pub(super) fn missed_changes(&mut self, now: Timestamp) {
        let is_long_ago = |joined: &mut Timestamp| now.duration_since(*joined) > JOINED_LONG_AGO;
        self.joined.take_if(is_long_ago);
    }

    fn is_empty(&self) -> bool {
        self.node.is_none()
            && self.csi_node.is_none()
            && self.pods.is_empty()
            && self.slices.is_empty()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// By node name. Boxed, because a large part of a map's places is empty.
    pub(super) all: Map<Arc<str>, Box<Entry>>,
}

impl Entries {
    pub(super) fn entry(&mut self, name: &Arc<str>) -> &mut Entry {
        self.all.entry(name.clone()).or_default()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.nodes().map(|node| &node.name)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        self.with_nodes().map(|(node, _)| node)
    }

    pub(super) fn with_nodes(&self) -> impl Iterator<Item = (&Node, &Entry)> + Clone {
        let entries = self.all.values();
        entries.filter_map(|entry| Some((entry.node.as_deref()?, &**entry)))
    }

    pub(crate) fn csi_drivers(&self) -> impl Iterator<Item = &str> + Clone {
        let csi_nodes = self.all.values().filter_map(|it| it.csi_node.as_ref());
        let drivers = csi_nodes.flat_map(|csi_node| &csi_node.drivers);
        drivers.map(|driver| driver.name.as_str())
    }

    pub(super) fn take_off(&mut self, watch: Watch, key: &ObjectKey, node: &str) {
        if let Some(entry) = self.all.get_mut(node) {
            match watch {
                Watch::Pods(group) => take(&mut entry.pods, group, key),
                Watch::ResourceSlices(group) => take(&mut entry.slices, group, key),
                _ => {}
            }
            self.drop_if_empty(node);
        }
    }

    pub(super) fn drop_if_empty(&mut self, name: &str) {
        if self.all.get(name).is_some_and(|it| it.is_empty()) {
            self.all.remove(name);
        }
    }

    /// The same text as this name, so that it is in memory once.
    pub(super) fn shared(&self, name: &Arc<str>) -> Arc<str> {
        let known = self.all.get_key_value(name);
        known.map_or(name, |(name, _)| name).clone()
    }
}

/// Puts an object into a group's list, sorted since a kubelet may make any number; returns whether it is new or has changed.
pub(super) fn put<T: PartialEq>(
    all: &mut ByGroup<Vec<Kept<T>>>,
    group: ComponentGroup,
    it: Kept<T>,
) -> bool {
    let all = all.entry(group).or_default();
    match all.binary_search_by(|known| known.key().cmp(it.key())) {
        Ok(at) => {
            let known = std::mem::replace(&mut all[at], it);
            *known != *all[at]
        }
        Err(at) => {
            // Most lists stay short, and there are many.
            if all.len() < 8 {
                all.reserve_exact(1);
            }
            all.insert(at, it);
            true
        }
    }
}

fn take<T>(all: &mut ByGroup<Vec<Kept<T>>>, group: ComponentGroup, key: &ObjectKey) {
    if let Some(of_group) = all.get_mut(&group) {
        let at = of_group.binary_search_by(|known| known.key().cmp(key));
        at.map(|at| of_group.remove(at)).ok();
        if of_group.is_empty() {
            all.remove(&group);
        }
    }
}

/// Whether a decision may depend on what has changed: not on amounts of resources that no rule counts.
fn is_news(known: &Node, node: &Node, counted: &BTreeSet<Arc<str>>) -> bool {
    let amounts_differ = known.resources != node.resources;
    if amounts_differ && known.resources.count_alike(&node.resources, counted) {
        let resources = node.resources.clone();
        let known = known.clone();
        return Node { resources, ..known } != *node;
    }
    known != node
}
