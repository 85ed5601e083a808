//! Takes in what the watches show.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Resource;
use tracing::debug;

use super::unreadable::Identity;
use super::{Cache, CachedRule, Change, Entry, Event, Watch, entry, is_stale};
use crate::condition::CriticalComponentClass;
use crate::object::{
    self, CsiNode, CsiNodeObject, DaemonSetObject, Node, NodeObject, ObjectKey, Pod, PodObject,
    RuleObject,
};
use crate::rule::Rule;

/// While nodes cannot be seen for no longer than this, no heartbeat is missed that would not be seen afterwards.
const BLINK: Duration = Duration::from_secs(5);

impl Cache {
    /// Takes in one event of a watch, at this time.
    pub fn apply(&mut self, change: Change, now: Timestamp) {
        if let Some(watch) = change.shows() {
            self.certainty.saw(watch, Instant::now());
        }
        match change {
            Change::Node(event) => self.apply_node(event, now),
            Change::CsiNode(event) => self.apply_csi_node(event),
            Change::Pod(class, event) => self.apply_pod(class, event),
            Change::DaemonSet(class, event) => self.apply_daemon_set(class, event),
            Change::Rule(event) => self.apply_rule(event, now),
            Change::NodeClaim(event) => {
                let concerned = self.karpenter.apply_claim(event, &mut self.unreadables);
                self.mark_concerned(concerned);
            }
            Change::NoNodeClaims => {
                self.certain(Watch::NodeClaims);
                let concerned = self.karpenter.no_claims();
                self.mark_concerned(concerned);
            }
            Change::NodePool(event) => {
                let concerned = self.karpenter.apply_pool(event, &mut self.unreadables);
                self.mark_concerned(concerned);
            }
            Change::NoNodePools => {
                self.certain(Watch::NodePools);
                let concerned = self.karpenter.no_pools();
                self.mark_concerned(concerned);
            }
            Change::Interrupted(watch) => self.certainty.interrupted(watch),
            Change::Confirmed(watch, confirmation) => self.confirmed(watch, confirmation, now),
        }
    }

    /// Takes in that a watch has shown everything that happened before it was asked to confirm that.
    fn confirmed(&mut self, watch: Watch, confirmation: u64, now: Timestamp) {
        if confirmation < self.confirmation {
            return;
        }
        if self.certain(watch).is_some_and(|blind| blind > BLINK) && watch == Watch::Nodes {
            self.restart_heartbeats(now);
        }
    }

    /// Takes in that all of a kind is known now; answers how long it was not, where it was in doubt.
    fn certain(&mut self, watch: Watch) -> Option<Duration> {
        let now = Instant::now();
        let blind = self.certainty.confirmed(watch, now)?;
        debug!(watch = %watch.name(), ?blind, "what was seen is certain again");
        self.settling.sees_again(blind, now);
        for name in &std::mem::take(&mut self.withheld) {
            self.mark(name);
        }
        Some(blind)
    }

    fn apply_node(&mut self, event: Event<NodeObject>, now: Timestamp) {
        match event {
            Event::Init => {
                self.relists.nodes.begin();
                self.unreadables.begin_list(Watch::Nodes);
            }
            Event::InitApply(object) => {
                self.relists.nodes.saw(object::name(object.meta()));
                let came = self.came(now);
                self.see_node(object, came, now);
            }
            Event::Apply(object) => {
                let known = self
                    .entries
                    .get(&object::name(object.meta()))
                    .and_then(|entry| entry.node.as_ref());
                let shown = object::resource_version(object.meta());
                if !known.is_some_and(|known| is_stale(known.version, shown)) {
                    let came = self.came(now);
                    self.see_node(object, came, now);
                }
            }
            Event::Delete(object) => {
                self.gone(&Identity::of(Watch::Nodes, object.meta()));
                self.remove_node(&object::name(object.meta()));
            }
            Event::InitDone => {
                self.listed(Watch::Nodes);
                let is_gone = self.relists.nodes.end();
                let gone: Vec<_> = self
                    .node_names()
                    .filter(|name| is_gone(name))
                    .cloned()
                    .collect();
                for name in gone {
                    self.remove_node(&name);
                }
                self.synced(Watch::Nodes);
            }
        }
    }

    /// When a node came that is seen for the first time: at any time since the view was last certain. `None` where it may
    /// always have been there.
    fn came(&self, now: Timestamp) -> Option<Timestamp> {
        let instant = Instant::now();
        let unseen = if self.certainty.doubts(Watch::Nodes, instant) {
            self.certainty.age(Watch::Nodes, instant)
        } else {
            Duration::ZERO
        };
        let came = now.checked_sub(unseen).unwrap_or(Timestamp::MIN);
        Some(came).filter(|_| !self.unsynced.contains(&Watch::Nodes))
    }

    /// Keeps a node as it is shown, and what that says over time. `came` is when it came, if it was not there before.
    pub(super) fn see_node(&mut self, object: NodeObject, came: Option<Timestamp>, now: Timestamp) {
        let identity = Identity::of(Watch::Nodes, object.meta());
        let name = identity.name.clone();
        let written = object.written(self.rule_set.followed());
        let Some(node) = self.understood(identity, Some(name.clone()), object.read()) else {
            return;
        };
        let classes = self.classes.len();
        let entry = entry(&mut self.entries, &name, classes);
        if entry
            .node
            .as_ref()
            .is_none_or(|known| known.uid != node.uid)
        {
            entry.joined = came;
        }
        let is_alive = entry
            .sightings
            .see(&node, &written, self.rule_set.followed(), now);
        self.put_node(node);
        if is_alive {
            self.mark(&name);
        }
    }

    fn put_node(&mut self, node: Node) {
        let name = node.name.clone();
        let entry = self.entry(&name);
        let version = node.version;
        let known = entry.node.replace(node);
        let is_same = |known: Node| entry.node == Some(Node { version, ..known });
        if known.as_ref().map(|known| &known.labels) != entry.node.as_ref().map(|node| &node.labels)
        {
            entry.selected_at = 0;
        }
        if !known.is_some_and(is_same) {
            self.mark(&name);
        }
    }

    fn remove_node(&mut self, name: &Arc<str>) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.node = None;
            self.mark(name);
            self.drop_if_empty(name);
        }
    }

    fn apply_csi_node(&mut self, event: Event<CsiNodeObject>) {
        match event {
            Event::Init => {
                self.relists.csi_nodes.begin();
                self.unreadables.begin_list(Watch::CsiNodes);
            }
            Event::InitApply(object) | Event::Apply(object) => {
                self.relists.csi_nodes.saw(object::name(object.meta()));
                self.see_csi_node(object);
            }
            Event::Delete(object) => {
                self.gone(&Identity::of(Watch::CsiNodes, object.meta()));
                self.remove_csi_node(&object::name(object.meta()));
            }
            Event::InitDone => {
                self.listed(Watch::CsiNodes);
                let is_gone = self.relists.csi_nodes.end();
                let has_one = |entry: &Entry| entry.csi_node.is_some();
                let gone: Vec<_> = self
                    .entries
                    .iter()
                    .filter(|(name, entry)| has_one(entry) && is_gone(name))
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in gone {
                    self.remove_csi_node(&name);
                }
                self.synced(Watch::CsiNodes);
            }
        }
    }

    pub(super) fn remove_csi_node(&mut self, name: &Arc<str>) {
        if self.entries.contains_key(name) {
            self.put_csi_node(name, None);
            self.drop_if_empty(name);
        }
    }

    pub(super) fn see_csi_node(&mut self, object: CsiNodeObject) {
        let identity = Identity::of(Watch::CsiNodes, object.meta());
        let name = identity.name.clone();
        if let Some(csi_node) = self.understood(identity, Some(name.clone()), object.read()) {
            self.put_csi_node(&name, Some(csi_node));
        }
    }

    fn put_csi_node(&mut self, name: &Arc<str>, csi_node: Option<CsiNode>) {
        let is_first_sight = self.unsynced.contains(&Watch::CsiNodes);
        let entry = self.entry(name);
        if let (Some(known), Some(shown)) = (&mut entry.csi_node, &csi_node) {
            if is_stale(known.version, shown.version) {
                return;
            }
            known.version = shown.version;
        }
        if entry.csi_node == csi_node {
            return;
        }
        if !is_first_sight {
            let before = entry.csi_node.as_ref();
            entry.sightings.see_csi_node(before, csi_node.as_ref());
        }
        entry.csi_node = csi_node;
        self.mark(name);
    }

    fn apply_pod(&mut self, class: usize, event: Event<PodObject>) {
        match event {
            Event::Init => {
                self.relists.pods[class].begin();
                self.unreadables.begin_list(Watch::Pods(class));
            }
            Event::InitApply(object) | Event::Apply(object) => {
                self.relists.pods[class].saw(ObjectKey::of(object.meta()));
                self.see_pod(class, object);
            }
            Event::Delete(object) => {
                self.gone(&Identity::of(Watch::Pods(class), object.meta()));
                self.remove_pod(class, &ObjectKey::of(object.meta()));
            }
            Event::InitDone => {
                self.listed(Watch::Pods(class));
                let is_gone = self.relists.pods[class].end();
                let gone: Vec<_> = self.pod_nodes[class]
                    .keys()
                    .filter(|key| is_gone(key))
                    .cloned()
                    .collect();
                for key in gone {
                    self.remove_pod(class, &key);
                }
                self.synced(Watch::Pods(class));
            }
        }
    }

    pub(super) fn see_pod(&mut self, class: usize, object: PodObject) {
        let key = ObjectKey::of(object.meta());
        let CriticalComponentClass {
            namespaces,
            csi_annotation_prefix,
            ..
        } = &self.classes[class];
        // Where a class has several namespaces, the watch is of all.
        if !namespaces.contains(&key.namespace) {
            return;
        }
        let identity = Identity::of(Watch::Pods(class), object.meta());
        let known = self.pod_nodes[class].get(&key).cloned();
        let node = known.or_else(|| object.node_name().map(Arc::from));
        let read = object.read(csi_annotation_prefix);
        if let Some(pod) = self.understood(identity, node, read) {
            self.put_pod(class, pod);
        }
    }

    fn put_pod(&mut self, class: usize, pod: Pod) {
        if !pod.is_live() || pod.node.is_empty() {
            self.remove_pod(class, &pod.key);
            return;
        }
        // A pod is bound once; another node means that it was created again under its name.
        if self.pod_nodes[class]
            .get(&pod.key)
            .is_some_and(|node| *node != pod.node)
        {
            self.remove_pod(class, &pod.key);
        }
        let name = pod.node.clone();
        self.pod_nodes[class].insert(pod.key.clone(), name.clone());
        let pods = &mut self.entry(&name).pods[class];
        match pods.iter_mut().find(|known| known.key == pod.key) {
            Some(known) => {
                if is_stale(known.version, pod.version) {
                    return;
                }
                known.version = pod.version;
                if *known == pod {
                    return;
                }
                *known = pod;
            }
            None => pods.push(pod),
        }
        self.mark(&name);
    }

    pub(super) fn remove_pod(&mut self, class: usize, key: &ObjectKey) {
        if let Some(name) = self.pod_nodes[class].remove(key)
            && let Some(entry) = self.entries.get_mut(&name)
        {
            entry.pods[class].retain(|pod| pod.key != *key);
            self.mark(&name);
            self.drop_if_empty(&name);
        }
    }

    fn apply_daemon_set(&mut self, class: usize, event: Event<DaemonSetObject>) {
        match event {
            Event::Init => {
                self.relists.daemon_sets[class].begin();
                self.unreadables.begin_list(Watch::DaemonSets(class));
            }
            Event::InitApply(object) | Event::Apply(object) => {
                self.relists.daemon_sets[class].saw(ObjectKey::of(object.meta()));
                self.see_daemon_set(class, object);
            }
            Event::Delete(object) => {
                self.gone(&Identity::of(Watch::DaemonSets(class), object.meta()));
                self.remove_daemon_set(class, &ObjectKey::of(object.meta()));
            }
            Event::InitDone => {
                self.listed(Watch::DaemonSets(class));
                let is_gone = self.relists.daemon_sets[class].end();
                let known = self.daemon_sets[class].keys();
                let gone: Vec<_> = known.filter(|key| is_gone(key)).cloned().collect();
                for key in gone {
                    self.remove_daemon_set(class, &key);
                }
                self.synced(Watch::DaemonSets(class));
            }
        }
    }

    /// Keeps a `DaemonSet`. One that cannot be understood is taken as it was last: it may be meant for any node.
    pub(super) fn see_daemon_set(&mut self, class: usize, object: DaemonSetObject) {
        let identity = Identity::of(Watch::DaemonSets(class), object.meta());
        let Some(daemon_set) = self.understood(identity, None, object.read()) else {
            return;
        };
        if let Some(known) = self.daemon_sets[class].get_mut(&daemon_set.key) {
            if is_stale(known.version, daemon_set.version) {
                return;
            }
            // The status is not decoded, so only what decisions depend on can differ beside the version.
            known.version = daemon_set.version;
            if *known == daemon_set {
                return;
            }
        }
        let key = daemon_set.key.clone();
        self.daemon_sets[class].insert(key.clone(), daemon_set);
        self.daemon_set_changed(class, &key);
    }

    pub(super) fn remove_daemon_set(&mut self, class: usize, key: &ObjectKey) {
        if self.daemon_sets[class].remove(key).is_some() {
            self.daemon_set_changed(class, key);
        }
    }

    /// Has evaluated what depends on a `DaemonSet`. One in a namespace that does not count is only told of: whoever may
    /// change it there must not keep the controller busy.
    fn daemon_set_changed(&mut self, class: usize, key: &ObjectKey) {
        if !self.rule_set.waits_for_class(class) {
            return;
        }
        self.rules_changed = true;
        if self.classes[class].namespaces.contains(&key.namespace) {
            self.mark_all();
        }
    }

    pub(super) fn apply_rule(&mut self, event: Event<RuleObject>, now: Timestamp) {
        let changed = match event {
            Event::Init => {
                self.relists.rules.begin();
                self.unreadables.begin_list(Watch::Rules);
                false
            }
            Event::InitApply(object) => {
                self.relists.rules.saw(object::name(&object.metadata));
                self.put_rule(object, now)
            }
            Event::Apply(object) => {
                let known = self.rules.get(&object::name(&object.metadata));
                let shown = object::resource_version(&object.metadata);
                !known.is_some_and(|known| is_stale(known.version, shown))
                    && self.put_rule(object, now)
            }
            Event::Delete(object) => {
                self.gone(&Identity::of(Watch::Rules, &object.metadata));
                let gone = self.rules.remove(&object::name(&object.metadata));
                gone.map(|gone| self.retire(gone.rule)).is_some()
            }
            Event::InitDone => {
                self.listed(Watch::Rules);
                let is_gone = self.relists.rules.end();
                let gone: Vec<_> = self.rules.extract_if(|name, _| is_gone(name)).collect();
                let any_gone = !gone.is_empty();
                for (_, gone) in gone {
                    self.retire(gone.rule);
                }
                self.synced(Watch::Rules);
                any_gone
            }
        };
        if changed && self.has_synced() {
            self.rebuild_rules();
        }
    }

    /// Keeps a rule; answers whether it differs in more than its status.
    pub(super) fn put_rule(&mut self, object: RuleObject, now: Timestamp) -> bool {
        let identity = Identity::of(Watch::Rules, &object.metadata);
        let Some(object) = self.understood(identity, None, object.read()) else {
            return false;
        };
        let rule = Rule::compile(&object.metadata, object.spec, &self.classes);
        let known = self.rules.get(&rule.name);
        // What was there before this process is as old as the cluster.
        let since = if self.has_synced() {
            now
        } else {
            Timestamp::MIN
        };
        let rule = rule.seen(known.map(|known| &*known.rule), since);
        let changed = known.is_none_or(|known| *known.rule != rule);
        let shows_status = known.is_some_and(|known| known.status != object.status);
        if shows_status && self.dirty.is_wanted() {
            self.shown_statuses.insert(rule.name.clone());
        }
        let cached = CachedRule {
            version: object::resource_version(&object.metadata),
            rule: match known {
                Some(known) if !changed => known.rule.clone(),
                _ => Arc::new(rule),
            },
            finalizers: object.metadata.finalizers.clone().unwrap_or_default(),
            status: object.status,
        };
        let uid = cached.rule.uid.clone();
        let known = self.rules.insert(cached.rule.name.clone(), cached);
        if let Some(known) = known.filter(|known| known.rule.uid != uid) {
            self.retire(known.rule);
        }
        changed
    }
}
