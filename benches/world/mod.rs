//! One node and its state as the controller holds it, for the benchmarks and the allocation test. Objects are decoded from
//! JSON, as the API server sends them.

mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodegate_core::condition::{
    ByGroup, Component, ComponentGroup, CriticalComponentClass, NamedComponent, Observations, Watch,
};
use nodegate_core::config::Config;
use nodegate_core::object::{
    DaemonSet, Kept, Node, ObjectKey, Pod, ResourceSlice, RuleObject, State, Watched,
};
use nodegate_core::plan::{ClusterState, NodeHistory, NodePlan, NodeState, plan};
use nodegate_core::repair::{Census, Karpenter, NoClaim};
use nodegate_core::rule::{Rule, RuleSet};
use serde_json::{Value, json};

use objects::{CRITICAL, REPORTED, daemon_set, decode, pod, rule, rule_name, rule_uid, taint_key};

/// Nothing is stale.
static NOTHING: BTreeSet<Watch> = BTreeSet::new();

/// The condition of rules that name a `DaemonSet`.
const NAMED: &str = "daemonset.nodegate.dev/kube-system.component-0";

/// The condition of rules that wait for devices.
const DEVICES: &str = "resourceslice.nodegate.dev/gpu.example.com";

const NODE: &str = "worker-1";

/// A value as the caches keep it; decisions do not go by the key.
pub(crate) fn kept<T>(value: T) -> Kept<T> {
    let key = ObjectKey::new("", "");
    let version = 1;
    Kept::from(State {
        key,
        version,
        value,
    })
}

/// The kind of condition that the rules wait for.
#[allow(dead_code, reason = "each program uses its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A condition that an agent reports.
    Reported,
    /// Three critical `DaemonSet`s.
    Critical,
    /// A `DaemonSet` by name.
    Named,
    /// The devices of a DRA driver.
    Devices,
}

/// A node, its cluster state, and its rules.
#[derive(Debug)]
pub(crate) struct World {
    classes: Vec<CriticalComponentClass>,
    pub(crate) named: Vec<NamedComponent>,
    pub(crate) daemon_sets: ByGroup<BTreeMap<ObjectKey, Kept<DaemonSet>>>,
    rules: RuleSet,
    pub(crate) node: Node,
    pub(crate) pods: ByGroup<Vec<Kept<Pod>>>,
    pub(crate) slices: ByGroup<Vec<Kept<ResourceSlice>>>,
    selecting: Vec<usize>,
    observations: Observations,
    census: Census,
    now: Timestamp,
}

impl World {
    /// A node with `rules` rules; `ready`: their conditions are met; `tainted`: the node has their taints.
    pub(crate) fn new(rules: usize, source: Source, ready: bool, tainted: bool) -> Self {
        let config = Config::default();
        let classes = config
            .classes()
            .expect("the default configuration is sound");
        let condition = match source {
            Source::Reported => REPORTED,
            Source::Critical => CRITICAL,
            Source::Named => NAMED,
            Source::Devices => DEVICES,
        };
        let compile = |index| {
            let object: RuleObject = decode(&rule(index, condition));
            Arc::new(Rule::compile(&object.metadata, object.spec, &classes))
        };
        let rules = RuleSet::new((0..rules).map(compile), config.passing_taints());
        let node: Watched<Node> = decode(&node(rules.rules().len(), ready, tainted));
        let node: Node = node.read().expect("a node");
        let critical = match source {
            Source::Reported | Source::Devices => 0,
            Source::Critical => 3,
            Source::Named => 1,
        };
        let group = match source {
            Source::Named => ComponentGroup::Named(0),
            Source::Reported | Source::Critical | Source::Devices => ComponentGroup::Class(0),
        };
        let daemon_sets = (0..critical).map(|index| {
            let object: Watched<DaemonSet> = decode(&daemon_set(index));
            let daemon_set: DaemonSet = object.read().expect("a DaemonSet");
            (daemon_set.key.clone(), kept(daemon_set))
        });
        let pods = (0..critical).map(|index| {
            let object: Watched<Pod> = decode(&pod(index, "x7k2p", NODE, ready));
            kept(object.read().expect("a pod"))
        });
        let mut world = Self {
            census: Census::default(),
            selecting: rules.matching(&node, |_| None),
            named: (source == Source::Named)
                .then(|| NamedComponent {
                    component: Component::DaemonSet(ObjectKey::new("kube-system", "component-0")),
                    group,
                    is_seen: true,
                    is_served: true,
                })
                .into_iter()
                .collect(),
            daemon_sets: std::iter::once((group, daemon_sets.collect())).collect(),
            pods: std::iter::once((group, pods.collect())).collect(),
            slices: ByGroup::default(),
            observations: Observations::default(),
            classes,
            rules,
            node,
            now: "2026-01-01T01:00:00Z".parse().expect("a timestamp"),
        };
        world.publish();
        world
    }

    /// The plan for the node.
    pub(crate) fn plan(&self) -> NodePlan<'_> {
        let cluster = ClusterState {
            classes: &self.classes,
            named: &self.named,
            daemon_sets: &self.daemon_sets,
            rules: &self.rules,
            publish_conditions: true,
            stale: &NOTHING,
            unseen: &NOTHING,
            nodes_as_of: self.now,
            census: Some(&self.census),
            repair_after: None,
        };
        let state = NodeState {
            node: &self.node,
            csi_node: None,
            pods: &self.pods,
            slices: &self.slices,
            selecting: &self.selecting,
            observations: &self.observations,
            joined: None,
            knows_rules: true,
            karpenter: Karpenter::without(NoClaim::Disabled),
        };
        let history = NodeHistory {
            is_known: true,
            memories: &[],
            may_gate: &[],
            held_back: &[],
            setbacks: &[],
            watching_since: self.now,
        };
        plan(cluster, state, history, self.now)
    }

    /// Puts the synthesized conditions on the node, where they already are when nothing changes.
    fn publish(&mut self) {
        let set = self.plan().conditions.set;
        let published = set
            .into_iter()
            .map(|condition| nodegate_core::object::NodeCondition {
                kind: condition.kind.into(),
                status: condition.status,
                reason: condition.reason.into(),
                message: condition.message,
                transition: Some(self.now),
                heartbeat: None,
            });
        let published: Vec<_> = published.collect();
        self.node.conditions.extend(published);
        self.node.conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
    }
}

/// The node, with the taints of `rules` rules if it is tainted.
fn node(rules: usize, ready: bool, tainted: bool) -> Value {
    let taints = (0..rules).filter(|_| tainted);
    let taints: Vec<Value> = taints
        .map(|rule| json!({"key": taint_key(rule), "effect": "NoSchedule"}))
        .collect();
    let owned = (0..rules).filter(|_| tainted).map(|index| {
        let key = format!("nodegate.dev/taint-added-by-{}", rule_uid(index));
        let value = json!({
            "rule-name": rule_name(index),
            "taint-key": taint_key(index),
            "taint-effect": "NoSchedule",
        });
        (key, value.to_string())
    });
    let owned: BTreeMap<String, String> = owned.collect();
    let mut node = objects::node(NODE, "0c1b5d9e-7c0e-4b0a-8f0e-9a1f5c7d2e31", ready);
    node["metadata"]["annotations"] = json!(owned);
    node["spec"]["taints"] = json!(taints);
    node
}
