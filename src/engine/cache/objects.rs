//! What a new state of an object changes: the node that it belongs to, and the nodes that are to be evaluated.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Cache, entry};
use crate::condition::{
    ByGroup, Component, ComponentGroup, CriticalComponentClass, Watch, selects,
};
use crate::engine::freshness::Phase;
use crate::engine::io::Now;
use crate::object::{
    CsiNode, DaemonSet, Node, NodeClaim, NodePool, ObjectKey, Pod, PodPhase, ResourceSlice, Taint,
    Version,
};
use crate::repair::{Karpenter, NoClaim, pool_name};

impl Cache {
    /// Keeps a node and updates its observations, whatever showed it: the watch may never show a state that an answer shows.
    pub(super) fn put_node(&mut self, name: &Arc<str>, mut node: Node, now: Now) {
        node.name = name.clone();
        let joined = self.earliest_join(now);
        let is_late = self.views.is_stale(Watch::Nodes, now.monotonic);
        let entry = entry(&mut self.entries, name);
        let known = entry.node.take();
        if known.as_ref().is_none_or(|known| known.uid != node.uid) {
            entry.joined = joined;
        }
        if known.as_ref().is_none_or(|it| it.labels != node.labels) {
            entry.selected_at = 0;
        }
        entry.seen = Some(now.monotonic);
        let rules = &self.rule_set;
        let observations = &mut entry.observations;
        let is_alive = observations.see(known.as_ref(), &node, &rules.followed, now.wall);
        observations.see_deadlines(&node, &rules.repairing);
        if is_late {
            observations.saw_late(now.wall);
            entry.missed_changes(now.wall);
        }
        let is_news = is_alive || known.is_none_or(|it| is_news(it, &node, &rules.counted));
        entry.node = Some(node);
        if is_news {
            self.mark(name);
        }
    }

    /// Takes in the metadata in the response to a patch, unless the cache has a newer state. The caller evaluates the node again.
    pub fn patched_node(&mut self, version: Version, patched: Node, taints: Option<Vec<Taint>>) {
        let key = ObjectKey::unscoped(patched.name.clone());
        if let Some(entry) = self.entries.get_mut(&patched.name)
            && let Some(node) = &mut entry.node
            && let Some(kept) = self.index.get_mut(Watch::Nodes, &key)
            && node.uid == patched.uid
            && kept.version < version
        {
            kept.version = version;
            if node.take_in(patched, taints) {
                entry.selected_at = 0;
            }
            let repairing = &self.rule_set.repairing;
            entry.observations.see_deadlines(node, repairing);
        }
    }

    pub(super) fn remove_node(&mut self, name: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.node = None;
            self.mark(name);
            self.drop_if_empty(name);
        }
    }

    pub(super) fn put_csi_node(&mut self, name: &Arc<str>, mut csi_node: Option<CsiNode>) {
        if let Some(csi_node) = &mut csi_node {
            csi_node.name = name.clone();
        }
        let is_first_sight = !self.views.has_listed(Watch::CsiNodes);
        let entry = entry(&mut self.entries, name);
        if entry.csi_node != csi_node {
            if !is_first_sight {
                let before = entry.csi_node.as_ref();
                entry.observations.see_csi_node(before, csi_node.as_ref());
            }
            entry.csi_node = csi_node;
            self.mark(name);
        }
        self.drop_if_empty(name);
    }

    /// The class of a group, if it is one.
    fn class(&self, group: ComponentGroup) -> Option<&CriticalComponentClass> {
        self.classes.get(group.class()?)
    }

    /// Whether objects in this namespace count for the group.
    pub(super) fn covers(&self, group: ComponentGroup, namespace: &str) -> bool {
        let class = self.class(group);
        class.is_none_or(|class| class.namespaces.contains(namespace))
    }

    pub(super) fn put_pod(&mut self, group: ComponentGroup, key: ObjectKey, mut pod: Pod) {
        let class = self.class(group);
        pod.keep_annotations(class.map(|class| &*class.csi_annotation_prefix));
        let counts = match self.component(group) {
            None => pod.is_live(),
            Some(Component::Check(_)) => true,
            // Only the pods of `DaemonSet`s count. A selector may match others. One that is being deleted tells that its
            // revision goes.
            Some(_) => pod.phase == PodPhase::Unfinished && pod.daemon_set.is_some(),
        };
        let watch = Watch::Pods(group);
        if !counts || pod.node.is_empty() {
            self.remove(watch, &key);
            return;
        }
        // The node's name is in memory once.
        if let Some((name, _)) = self.entries.get_key_value(&pod.node) {
            pod.node = name.clone();
        }
        let name = pod.node.clone();
        // A pod is bound once. Another node means a new pod of the same name.
        let before = self.index.place(watch, &key, &name);
        self.take_off(watch, &key, before);
        pod.key = key;
        let pods = entry(&mut self.entries, &name)
            .pods
            .entry(group)
            .or_default();
        if put(pods, pod, |a, b| a.key.cmp(&b.key)) {
            self.mark(&name);
        }
    }

    pub(super) fn put_slice(
        &mut self,
        group: ComponentGroup,
        key: &ObjectKey,
        mut slice: ResourceSlice,
    ) {
        let watch = Watch::ResourceSlices(group);
        if slice.node.is_empty() {
            self.remove(watch, key);
            return;
        }
        slice.name = key.name.clone();
        let name = slice.node.clone();
        let before = self.index.place(watch, key, &name);
        self.take_off(watch, key, before);
        let slices = entry(&mut self.entries, &name)
            .slices
            .entry(group)
            .or_default();
        if put(slices, slice, |a, b| a.name.cmp(&b.name)) {
            self.mark(&name);
        }
    }

    /// Removes a pod or a slice from this node.
    pub(super) fn take_off(&mut self, watch: Watch, key: &ObjectKey, node: Option<Arc<str>>) {
        let Some(name) = node else { return };
        if let Some(entry) = self.entries.get_mut(&name) {
            match watch {
                Watch::Pods(group) => take(&mut entry.pods, group, |it| it.key.cmp(key)),
                Watch::ResourceSlices(group) => {
                    take(&mut entry.slices, group, |it| it.name.cmp(&key.name));
                }
                _ => {}
            }
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    pub(super) fn put_daemon_set(&mut self, group: ComponentGroup, daemon_set: DaemonSet) {
        let all = self.daemon_sets.entry(group).or_default();
        if all.get(&daemon_set.key) == Some(&daemon_set) {
            return;
        }
        let known = all.insert(daemon_set.key.clone(), daemon_set.clone());
        self.daemon_set_changed(group, &[known.as_ref(), Some(&daemon_set)]);
        self.select_pods(group, daemon_set.selector);
    }

    pub(super) fn remove_daemon_set(&mut self, group: ComponentGroup, key: &ObjectKey) {
        let all = self.daemon_sets.get_mut(&group);
        if let Some(gone) = all.and_then(|all| all.remove(key)) {
            self.daemon_set_changed(group, &[Some(&gone)]);
        }
    }

    /// Marks for evaluation what depends on a `DaemonSet`, given its states before and after a change. Those who may change some
    /// must not be able to keep the controller busy: one outside its class's namespaces is only reported, and one that no rule
    /// names concerns only the nodes that it selects, or that have a pod of it.
    fn daemon_set_changed(&mut self, group: ComponentGroup, states: &[Option<&DaemonSet>]) {
        self.has_rule_news = true;
        let mut covered = states.iter().flatten();
        if !covered.all(|it| self.covers(group, &it.key.namespace)) {
            return;
        }
        let is_named = matches!(self.component(group), Some(Component::DaemonSet(_)));
        let concerned = self.entries.values().filter_map(|entry| {
            let (node, pods) = (entry.node.as_ref()?, entry.pods.get(&group));
            let concerns = |it: &&DaemonSet| {
                selects(it, node) || pods.is_some_and(|pods| pods.iter().any(|pod| it.owns(pod)))
            };
            (is_named || states.iter().flatten().any(concerns)).then(|| node.name.clone())
        });
        let names: Vec<_> = concerned.collect();
        self.mark_each(&names);
    }

    /// What Karpenter's objects say about a node. Without them there is nothing to delete, and the rules' own readiness TTLs apply.
    pub(super) fn karpenter(&self, node: &Node) -> Karpenter<'_> {
        let phases = [Watch::NodeClaims, Watch::NodePools].map(|watch| self.views.phase(watch));
        match phases {
            [None, _] | [_, None] => Karpenter::Disabled,
            [Some(Phase::Unlisted), _] | [_, Some(Phase::Unlisted)] => Karpenter::Unseen,
            [Some(Phase::Absent), _] => Karpenter::NotInstalled,
            [Some(Phase::Listed), _] => {
                let claim = self.claims.find(node);
                let pool = pool_name(node, claim.ok()).and_then(|name| self.pools.get(name));
                Karpenter::Known { claim, pool }
            }
        }
    }

    /// Whether the controller can delete `NodeClaim`s at all in this cluster.
    ///
    /// # Errors
    /// The reason why not.
    pub fn can_delete_claims(&self) -> Result<(), NoClaim<'static>> {
        match self.views.phase(Watch::NodeClaims) {
            None => Err(NoClaim::Disabled),
            Some(Phase::Absent) => Err(NoClaim::NotInstalled),
            Some(Phase::Unlisted | Phase::Listed) => Ok(()),
        }
    }

    pub fn claim(&self, name: &str) -> Option<&NodeClaim> {
        self.claims.get(name)
    }

    pub fn pool_name<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        pool_name(node, self.claims.find(node).ok())
    }

    pub(super) fn put_claim(&mut self, claim: &NodeClaim) {
        let known = self.claims.put(claim.clone());
        let is_same = known.as_ref().is_some_and(|known| {
            let version = claim.version;
            *claim
                == NodeClaim {
                    version,
                    ..known.clone()
                }
        });
        if !is_same {
            self.mark_where(|node, _| {
                claim.names(node) || known.as_ref().is_some_and(|known| known.names(node))
            });
        }
    }

    pub(super) fn remove_claim(&mut self, name: &str) {
        if let Some(gone) = self.claims.remove(name) {
            self.mark_where(|node, _| gone.names(node));
        }
    }

    pub(super) fn put_pool(&mut self, name: &Arc<str>, pool: NodePool) {
        let known = self.pools.insert(name.clone(), pool);
        if known.as_ref() != self.pools.get(name) {
            self.mark_where(|_, pool| pool == Some(&**name));
        }
    }

    pub(super) fn remove_pool(&mut self, name: &Arc<str>) {
        self.pools.remove(name);
        self.mark_where(|_, pool| pool == Some(&**name));
    }

    /// Marks the nodes that a predicate holds for, given each with the name of its pool, if any rule repairs nodes.
    fn mark_where(&mut self, is_meant: impl Fn(&Node, Option<&str>) -> bool) {
        if self.rule_set.repairing.is_empty() {
            return;
        }
        let meant = self
            .nodes()
            .filter(|node| is_meant(node, self.pool_name(node)));
        let names: Vec<_> = meant.map(|node| node.name.clone()).collect();
        self.mark_each(&names);
    }
}

/// Puts an object into a list, which is sorted since a kubelet may make any number; returns whether that changes it.
fn put<T: PartialEq>(all: &mut Vec<T>, it: T, order: impl Fn(&T, &T) -> Ordering) -> bool {
    match all.binary_search_by(|known| order(known, &it)) {
        Ok(at) if all[at] == it => return false,
        Ok(at) => all[at] = it,
        Err(at) => {
            // Most lists stay short, and there are many.
            if all.len() < 8 {
                all.reserve_exact(1);
            }
            all.insert(at, it);
        }
    }
    true
}

/// Takes the object with this place in the order off a group's sorted list.
fn take<T>(all: &mut ByGroup<Vec<T>>, group: ComponentGroup, order: impl FnMut(&T) -> Ordering) {
    if let Some(of_group) = all.get_mut(&group) {
        let at = of_group.binary_search_by(order);
        at.map(|at| of_group.remove(at)).ok();
        if of_group.is_empty() {
            all.remove(&group);
        }
    }
}

/// Whether a decision may depend on what has changed: not on amounts of resources that no rule counts.
fn is_news(mut known: Node, node: &Node, counted: &BTreeSet<Arc<str>>) -> bool {
    let amounts_differ = known.resources != node.resources;
    if amounts_differ && known.resources.count_alike(&node.resources, counted) {
        known.resources.clone_from(&node.resources);
    }
    known != *node
}
