//! Takes in what the watches show.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Resource;
use tracing::debug;

use super::{Cache, CachedRule, Change, Entry, Event, Watch, entry, is_stale};
use crate::condition::CriticalComponentClass;
use crate::object::{
    self, CsiNode, CsiNodeObject, DaemonSet, DaemonSetObject, Node, NodeObject, ObjectKey, Pod,
    PodObject, RuleObject,
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
                let concerned = self.karpenter.apply_claim(event);
                self.mark_concerned(concerned);
            }
            Change::NoNodeClaims => {
                self.certain(Watch::NodeClaims);
                let concerned = self.karpenter.no_claims();
                self.mark_concerned(concerned);
            }
            Change::NodePool(event) => {
                let concerned = self.karpenter.apply_pool(event);
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
            Event::Init => self.relists.nodes.begin(),
            Event::InitApply(object) => {
                let came = self.came(now);
                let name = self.see_node(object, came, now);
                self.relists.nodes.saw(name);
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
            Event::Delete(object) => self.remove_node(&Node::from(object).name),
            Event::InitDone => {
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

    /// Keeps a node as it is shown, and what that says over time; answers its name. `came` is when it came, if it was not
    /// there before.
    pub(super) fn see_node(
        &mut self,
        object: NodeObject,
        came: Option<Timestamp>,
        now: Timestamp,
    ) -> Arc<str> {
        let written = object.written(self.rule_set.followed());
        let node = Node::from(object);
        let name = node.name.clone();
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
        name
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
            Event::Init => self.relists.csi_nodes.begin(),
            Event::InitApply(object) | Event::Apply(object) => {
                let csi_node = CsiNode::from(object);
                let name = csi_node.name.clone();
                self.relists.csi_nodes.saw(name.clone());
                self.put_csi_node(&name, Some(csi_node));
            }
            Event::Delete(object) => self.remove_csi_node(&CsiNode::from(object).name),
            Event::InitDone => {
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

    pub(super) fn put_csi_node(&mut self, name: &Arc<str>, csi_node: Option<CsiNode>) {
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
        let decode = |object: PodObject, classes: &[CriticalComponentClass]| {
            object.into_pod(&classes[class].csi_annotation_prefix)
        };
        match event {
            Event::Init => self.relists.pods[class].begin(),
            Event::InitApply(object) | Event::Apply(object) => {
                let pod = decode(object, &self.classes);
                self.relists.pods[class].saw(pod.key.clone());
                self.put_pod(class, pod);
            }
            Event::Delete(object) => {
                let key = decode(object, &self.classes).key;
                self.remove_pod(class, &key);
            }
            Event::InitDone => {
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

    pub(super) fn put_pod(&mut self, class: usize, pod: Pod) {
        if !pod.is_live()
            || pod.node.is_empty()
            || !self.classes[class].namespaces.contains(&pod.key.namespace)
        {
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
        let changed = match event {
            Event::Init => {
                self.relists.daemon_sets[class].begin();
                false
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let daemon_set = DaemonSet::from(object);
                self.relists.daemon_sets[class].saw(daemon_set.key.clone());
                self.put_daemon_set(class, daemon_set)
            }
            Event::Delete(object) => {
                self.daemon_sets[class].remove(&DaemonSet::from(object).key);
                true
            }
            Event::InitDone => {
                let is_gone = self.relists.daemon_sets[class].end();
                let before = self.daemon_sets[class].len();
                self.daemon_sets[class].retain(|key, _| !is_gone(key));
                self.synced(Watch::DaemonSets(class));
                self.daemon_sets[class].len() != before
            }
        };
        if changed {
            self.daemon_sets_changed(class);
        }
    }

    /// Keeps a `DaemonSet`; answers whether it differs in anything that decisions depend on.
    pub(super) fn put_daemon_set(&mut self, class: usize, daemon_set: DaemonSet) -> bool {
        if let Some(known) = self.daemon_sets[class].get_mut(&daemon_set.key) {
            if is_stale(known.version, daemon_set.version) {
                return false;
            }
            // The status is not decoded, so only what decisions depend on can differ beside the version.
            known.version = daemon_set.version;
            if *known == daemon_set {
                return false;
            }
        }
        self.daemon_sets[class].insert(daemon_set.key.clone(), daemon_set);
        true
    }

    pub(super) fn daemon_sets_changed(&mut self, class: usize) {
        if self.rule_set.waits_for_class(class) {
            self.rules_changed = true;
            self.mark_all();
        }
    }

    pub(super) fn apply_rule(&mut self, event: Event<RuleObject>, now: Timestamp) {
        let changed = match event {
            Event::Init => {
                self.relists.rules.begin();
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
                let gone = self.rules.remove(&object::name(&object.metadata));
                gone.map(|gone| self.retire(gone.rule)).is_some()
            }
            Event::InitDone => {
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
            finalizers: object.metadata.finalizers.unwrap_or_default(),
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
