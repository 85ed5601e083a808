//! A node and everything that its plan depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource;

use super::builders::{
    CsiNodeBuilder, DaemonSetBuilder, NodeBuilder, PodBuilder, RuleBuilder, at, rule, yaml,
};
use super::kept;
use nodegate_core::api::ConditionStatus;
use nodegate_core::condition::{
    ByGroup, CHECK_LABEL, Component, ComponentGroup, CriticalComponentClass, NamedComponent,
    Observations, Watch,
};
use nodegate_core::config::Config;
use nodegate_core::guard::Zone;
use nodegate_core::object::{
    CsiNode, DaemonSet, Kept, Node, NodeCondition, ObjectKey, Pod, ResourceSlice, Taint, Watched,
};
use nodegate_core::plan::{
    ClusterState, Memory, NodeHistory, NodePlan, NodeState, TaintPlan, plan,
};
use nodegate_core::repair::{Census, Karpenter, NoClaim};
use nodegate_core::rule::{Rule, RuleSet};
/// One node and everything that its plan depends on, at one time.
///
/// It accepts the `DaemonSet`s and pods that the watches and the cache let through: those with the label of a class, and only
/// pods in a namespace of the class that are bound to the node.
#[derive(Debug, Clone)]
pub(crate) struct World {
    classes: Vec<CriticalComponentClass>,
    passing_taints: Vec<String>,
    pub node: Node,
    csi_node: Option<CsiNode>,
    named: Vec<NamedComponent>,
    daemon_sets: ByGroup<BTreeMap<ObjectKey, Kept<DaemonSet>>>,
    pods: ByGroup<Vec<Kept<Pod>>>,
    slices: ByGroup<Vec<Kept<ResourceSlice>>>,
    rules: RuleSet,
    selecting: Vec<usize>,
    publish_conditions: bool,
    observations: Observations,
    joined: Option<Timestamp>,
    is_known: bool,
    stale_watches: BTreeSet<Watch>,
    memories: Vec<Memory>,
    may_gate: Vec<Arc<str>>,
    neighbours: Vec<Node>,
    census: Census,
    is_stale: bool,
    repair_after: Option<Timestamp>,
    now: Timestamp,
}

/// The status of a condition, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionAnswer {
    pub status: ConditionStatus,
    pub reason: String,
    pub message: String,
    pub recheck: Option<Timestamp>,
}

/// A world of only this node, an hour after [`at`]`(0)`, with the default configuration.
pub(crate) fn world(node: &NodeBuilder) -> World {
    configured_world(node, "{}")
}

/// A world of only this node, with a configuration given in YAML.
pub(crate) fn configured_world(node: &NodeBuilder, config: &str) -> World {
    let config: Config = yaml(config);
    let classes = config.classes().unwrap();
    World {
        passing_taints: config.passing_taints(),
        node: node.build(),
        csi_node: None,
        named: Vec::new(),
        daemon_sets: ByGroup::default(),
        pods: ByGroup::default(),
        slices: ByGroup::default(),
        classes,
        rules: RuleSet::default(),
        selecting: Vec::new(),
        publish_conditions: true,
        observations: Observations::default(),
        joined: None,
        is_known: false,
        stale_watches: BTreeSet::new(),
        memories: Vec::new(),
        may_gate: Vec::new(),
        neighbours: Vec::new(),
        census: Census::default(),
        is_stale: false,
        repair_after: None,
        now: at(3600),
    }
    .with_rules(&[])
    .sees(node, at(0))
}

impl World {
    pub(crate) fn daemon_set(mut self, daemon_set: &DaemonSetBuilder) -> Self {
        let object: Watched<DaemonSet> = daemon_set.object();
        let labels = object.meta().labels.clone().unwrap_or_default();
        let daemon_set = object.read().unwrap();
        let daemon_set = kept(daemon_set);
        let of_classes = self.classes.iter().enumerate();
        let of_classes = of_classes.filter(|(_, class)| class.selector.matches(&labels));
        let named = self.named.iter().filter(|named| match &named.component {
            Component::DaemonSet(key) => *key == daemon_set.key,
            Component::AllDaemonSets => true,
            Component::Check(_) | Component::Devices(_) => false,
        });
        let groups = of_classes.map(|(index, _)| ComponentGroup::Class(index));
        for group in groups.chain(named.map(|named| named.group)) {
            let known = self.daemon_sets.entry(group).or_default();
            known.insert(daemon_set.key.clone(), daemon_set.clone());
        }
        self
    }

    /// The `DaemonSet` with this key was deleted at this time.
    pub(crate) fn deleted(mut self, key: &str, at: Timestamp) -> Self {
        let known = self.daemon_sets.values_mut();
        for known in known.flat_map(BTreeMap::values_mut) {
            if known.key.to_string() == key {
                let deleted = Some(at);
                *known = kept(DaemonSet {
                    deleted,
                    ..DaemonSet::clone(known)
                });
            }
        }
        self
    }

    pub(crate) fn pod(mut self, pod: &PodBuilder) -> Self {
        let object: Watched<Pod> = pod.object();
        let labels = object.meta().labels.clone().unwrap_or_default();
        for (index, class) in self.classes.iter().enumerate() {
            let mut pod = object.clone().read().unwrap();
            pod.keep_annotations(Some(&class.csi_annotation_prefix));
            let is_covered = class.namespaces.contains(&pod.key.namespace);
            if is_covered && pod.node == self.node.name && class.selector.matches(&labels) {
                self.pods
                    .entry(ComponentGroup::Class(index))
                    .or_default()
                    .push(kept(pod));
            }
        }
        let pod = object.read().unwrap();
        let pod = kept(pod);
        for named in &self.named {
            let there = self.daemon_sets.get(&named.group).into_iter();
            let mut selectors = there.flat_map(BTreeMap::values).flat_map(|it| &it.selector);
            let is_of_it = match &named.component {
                Component::DaemonSet(key) => {
                    pod.key.namespace == key.namespace
                        && selectors.any(|selector| selector.matches(&labels))
                }
                Component::AllDaemonSets => pod.may_be_a_daemon_sets(),
                Component::Check(check) => {
                    pod.key.namespace == check.namespace
                        && labels
                            .get(CHECK_LABEL)
                            .is_some_and(|name| **name == *check.name)
                }
                Component::Devices(_) => false,
            };
            if is_of_it && pod.node == self.node.name {
                self.pods.entry(named.group).or_default().push(pod.clone());
            }
        }
        self
    }

    /// Makes rules wait for this `DaemonSet` by namespace and name. Add the `DaemonSet` and its pods afterwards.
    pub(crate) fn naming(self, key: &str) -> Self {
        let (namespace, name) = key.split_once('/').unwrap();
        self.waited_for(Component::DaemonSet(ObjectKey::new(namespace, name)))
    }

    /// Makes rules wait for this component. Add its objects afterwards.
    pub(crate) fn waited_for(mut self, component: Component) -> Self {
        let group = ComponentGroup::Named(self.named.len());
        self.named.push(NamedComponent {
            component,
            group,
            is_seen: true,
            is_served: true,
        });
        self
    }

    /// No watch has shown anything yet of the `DaemonSet`s that rules name.
    pub(crate) fn before_it_is_seen(mut self) -> Self {
        for named in &mut self.named {
            named.is_seen = false;
        }
        self
    }

    /// Adds this many slices of the component that is waited for.
    pub(crate) fn slices(mut self, count: usize) -> Self {
        let slices = (0..count).map(|index| ResourceSlice {
            of: 1,
            devices: 8,
            pool: index.to_string().into(),
            ..ResourceSlice::default()
        });
        let group = self.named.last().expect("a component").group;
        self.slices.insert(group, slices.map(kept).collect());
        self
    }

    pub(crate) fn csi_node(mut self, csi_node: &CsiNodeBuilder) -> Self {
        let csi_node = csi_node.build();
        self.observations
            .see_csi_node(self.csi_node.as_ref(), Some(&csi_node));
        self.csi_node = Some(csi_node);
        self
    }

    pub(crate) fn rule(self, rule: &RuleBuilder) -> Self {
        let rule = Arc::new(rule.build(&self.classes));
        let mut rules = self.rules.rules().to_vec();
        rules.push(rule);
        self.with_compiled_rules(rules)
    }

    /// Adds a rule whose start this process observed.
    pub(crate) fn rule_in_force_since(self, rule: &RuleBuilder, since: Timestamp) -> Self {
        let rule = Arc::new(rule.build(&self.classes).seen(None, since));
        let rules = [self.rules.rules(), &[rule]].concat();
        self.with_compiled_rules(rules)
    }

    /// Replaces all rules.
    pub(crate) fn with_rules(self, rules: &[RuleBuilder]) -> Self {
        let rules = rules
            .iter()
            .map(|rule| Arc::new(rule.build(&self.classes)))
            .collect();
        self.with_compiled_rules(rules)
    }

    /// No reporter has ever renewed any condition.
    pub(crate) fn never_renewed(mut self) -> Self {
        self.rules.beating.clear();
        self
    }

    /// Adds rules that existed before this process started.
    pub(crate) fn remembering(mut self, rules: &[RuleBuilder]) -> Self {
        let former = rules.iter().map(|rule| Arc::new(rule.build(&self.classes)));
        self.rules.former = former.collect();
        self
    }

    fn with_compiled_rules(mut self, rules: Vec<Arc<Rule>>) -> Self {
        self.rules = RuleSet::new(rules, self.passing_taints.clone());
        let specs = self.rules.rules().iter();
        let specs = specs.filter_map(|rule| Some((rule.uid.clone(), rule.spec.as_ref().ok()?)));
        let beating = specs.map(|(uid, spec)| (uid, spec.reported().cloned().collect()));
        self.rules.beating = beating.collect();
        self.observations
            .follow(&self.rules.followed, &self.node, at(0));
        self.observations
            .see_deadlines(&self.node, &self.rules.repairing);
        self.counted()
    }

    pub(crate) fn now(mut self, now: Timestamp) -> Self {
        self.now = now;
        self.counted()
    }

    /// The watch shows this state of the node. The first one is shown [`at`]`(0)`.
    pub(crate) fn sees(mut self, node: &NodeBuilder, now: Timestamp) -> Self {
        let object: Watched<Node> = node.object();
        let node = object.read().unwrap();
        let known = std::mem::replace(&mut self.node, node);
        let followed = &self.rules.followed;
        self.observations
            .see(Some(&known), &self.node, followed, now);
        self.observations
            .see_deadlines(&self.node, &self.rules.repairing);
        self.counted()
    }

    /// This process saw the node join at this time, and decides at once.
    pub(crate) fn joined(mut self, now: Timestamp) -> Self {
        self.joined = Some(now);
        self.now(now)
    }

    pub(crate) fn with_stale(mut self, watches: &[Watch]) -> Self {
        self.stale_watches = watches.iter().copied().collect();
        self
    }

    /// The disruption guard of this rule allows tainting the node.
    pub(crate) fn may_gate(mut self, rule: &str) -> Self {
        self.may_gate.push(format!("{rule}-uid").into());
        self
    }

    /// Adds another node to the cluster.
    pub(crate) fn neighbour(mut self, node: &NodeBuilder) -> Self {
        self.neighbours.push(node.build());
        self.counted()
    }

    /// Something is stale, so repair is postponed.
    pub(crate) fn stale(mut self) -> Self {
        self.is_stale = true;
        self
    }

    /// Repair is postponed until this time, because of a gap in the watches.
    pub(crate) fn settling_until(mut self, time: Timestamp) -> Self {
        self.repair_after = Some(time);
        self
    }

    /// Selects the rules of this time, and recounts all nodes.
    fn counted(mut self) -> Self {
        let (node, observations) = (&self.node, &self.observations);
        let matching = self.rules.matching(node, |_| None);
        self.selecting = self.rules.recalled(matching, node, observations, self.now);
        let nodes = self.neighbours.iter().chain([&self.node]);
        let unclaimed = Karpenter::without(NoClaim::NotFound);
        let nodes = nodes.map(|node| (node, unclaimed, Zone::of(None, &node.labels)));
        self.census = Census::take(nodes, self.rules.rules(), |_| false, self.now);
        self
    }

    /// Evaluates the node at this time, and keeps the memories.
    pub(crate) fn evaluated(mut self, now: Timestamp) -> Self {
        self.now = now;
        let remembered = Memory::after(&self.plan().outcomes, &self.memories);
        self.memories = remembered.unwrap_or(self.memories);
        self.is_known = true;
        self
    }

    /// Another process takes over: it has no memories, and sees the node for the first time.
    pub(crate) fn restarted(mut self, node: &NodeBuilder, now: Timestamp) -> Self {
        self.observations = Observations::default();
        self.node = Node::default();
        self.memories = Vec::new();
        self.joined = None;
        self.is_known = false;
        self.sees(node, now)
    }

    pub(crate) fn without_publishing(mut self) -> Self {
        self.publish_conditions = false;
        self
    }

    /// All rules, by precedence.
    pub(crate) fn rules(&self) -> &[Arc<Rule>] {
        self.rules.rules()
    }

    /// The usable rules that match the node, by precedence.
    pub(crate) fn selecting_rules(&self) -> impl Iterator<Item = &Rule> {
        self.selecting.iter().map(|index| &*self.rules()[*index])
    }

    /// The state that all nodes share.
    pub(crate) fn cluster(&self) -> ClusterState<'_> {
        static UNSEEN: BTreeSet<Watch> = BTreeSet::new();
        ClusterState {
            classes: &self.classes,
            named: &self.named,
            daemon_sets: &self.daemon_sets,
            rules: &self.rules,
            publish_conditions: self.publish_conditions,
            stale: &self.stale_watches,
            unseen: &UNSEEN,
            nodes_as_of: self.now,
            census: Some(&self.census).filter(|_| !self.is_stale),
            repair_after: self.repair_after,
        }
    }

    pub(crate) fn plan(&self) -> NodePlan<'_> {
        plan(self.cluster(), self.state(), self.history(), self.now)
    }

    pub(crate) fn state(&self) -> NodeState<'_> {
        NodeState {
            node: &self.node,
            csi_node: self.csi_node.as_ref(),
            pods: &self.pods,
            slices: &self.slices,
            selecting: &self.selecting,
            observations: &self.observations,
            joined: self.joined,
            knows_rules: true,
            karpenter: Karpenter::without(NoClaim::Disabled),
        }
    }

    pub(crate) fn history(&self) -> NodeHistory<'_> {
        NodeHistory {
            is_known: self.is_known,
            memories: &self.memories,
            may_gate: &self.may_gate,
            held_back: &[],
            setbacks: &[],
            watching_since: at(0),
        }
    }

    /// The world after the node's plan is carried out.
    pub(crate) fn carried_out(&self) -> Self {
        let mut plan = self.plan();
        let write = TaintPlan::merged(std::mem::take(&mut plan.taints));
        let mut node = self.with_written(write).node;
        for condition in plan.conditions.set {
            node.conditions.retain(|old| old.kind != condition.kind);
            node.conditions.push(NodeCondition {
                kind: condition.kind.into(),
                status: condition.status,
                reason: condition.reason.into(),
                message: condition.message,
                transition: Some(self.now),
                heartbeat: None,
            });
        }
        node.conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
        let withdrawn = plan.conditions.withdraw;
        node.conditions
            .retain(|old| !withdrawn.contains(&old.kind.as_str()));
        let carried_out = Self {
            node,
            ..self.clone()
        };
        carried_out.counted()
    }

    /// The merged write of the node.
    pub(crate) fn write(&self) -> TaintPlan {
        TaintPlan::merged(self.plan().taints)
    }

    /// The node's taints after its plan is carried out, if they change.
    pub(crate) fn new_taints(&self) -> Option<Vec<Taint>> {
        self.write().taints(&self.node)
    }

    /// The world after this write of the node.
    pub(crate) fn with_written(&self, write: TaintPlan) -> Self {
        let mut node = self.node.clone();
        if let Some(taints) = write.taints(&node) {
            node.taints = taints;
        }
        for (key, value) in write.annotations {
            let annotations = node.annotations.get_or_insert_default();
            match value {
                Some(value) => annotations.insert(key, value),
                None => annotations.remove(&key),
            };
        }
        let written = Self {
            node,
            ..self.clone()
        };
        written.counted()
    }

    /// The node's condition of this type, as a dry-run rule sees it; `None` if the node has none.
    pub(crate) fn condition(&self, kind: &str) -> Option<ConditionAnswer> {
        let asks = rule("asks")
            .taint("readiness.k8s.io/asks", "NoSchedule")
            .waits_for(kind)
            .dry_run();
        let world = self.clone().rule(&asks);
        let plan = world.plan();
        let outcome = plan
            .outcomes
            .iter()
            .find(|outcome| &*outcome.rule.name == "asks")
            .expect("the rule selects every node of these tests");
        let condition = outcome.findings[0].condition.as_ref()?;
        Some(ConditionAnswer {
            status: condition.status,
            reason: condition.detail.reason().into(),
            message: condition.detail.to_string(),
            recheck: condition.recheck,
        })
    }
}
