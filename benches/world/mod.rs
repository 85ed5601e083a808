//! One node and all that is known about it, as the controller holds it: what the benchmark and the guard on allocations
//! decide over. Objects are decoded from JSON, as they come from the API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use nodegate::condition::{ByCohort, CriticalComponentClass, NamedDaemonSet, Sightings};
use nodegate::config::Config;
use nodegate::object::{
    DaemonSet, DaemonSetObject, Node, NodeObject, ObjectKey, Pod, PodObject, RuleObject,
};
use nodegate::plan::{ClusterState, Doubts, NodeHistory, NodePlan, NodeState, plan};
use nodegate::repair::{Census, Karpenter, Situation};
use nodegate::rule::{Rule, RuleSet};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The condition that rules about a reported condition wait for.
const REPORTED: &str = "example.com/AgentReady";

/// The condition that rules about critical components wait for.
const CRITICAL: &str = "node.gardener.cloud/CriticalComponentsReady";

/// The condition that rules about a `DaemonSet` wait for.
const NAMED: &str = "daemonset.nodegate.dev/kube-system.component-0";

/// The label of critical components.
const CLASS: &str = "node.gardener.cloud/critical-component";

/// What the rules wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A condition that somebody reports.
    Reported,
    /// Three critical `DaemonSet`s.
    Critical,
    /// A `DaemonSet` by name.
    Named,
}

/// A node, its surroundings, and so many rules about it.
#[derive(Debug)]
pub struct World {
    classes: Vec<CriticalComponentClass>,
    named: Vec<NamedDaemonSet>,
    daemon_sets: ByCohort<BTreeMap<ObjectKey, DaemonSet>>,
    rules: RuleSet,
    node: Node,
    pods: ByCohort<Vec<Pod>>,
    selecting: Vec<usize>,
    sightings: Sightings,
    census: Census,
    now: Timestamp,
}

impl World {
    /// A node that is, or is not, as the rules want it, and that has, or has not, their taints.
    #[must_use]
    pub fn new(rules: usize, source: Source, ready: bool, tainted: bool) -> Self {
        let config = Config::default();
        let classes = config
            .classes()
            .expect("the default configuration is sound");
        let compile = |index| {
            let object: RuleObject = decode(rule(index, source));
            Arc::new(Rule::compile(&object.metadata, object.spec, &classes))
        };
        let rules = RuleSet::new((0..rules).map(compile), config.passing_taints);
        let node: NodeObject = decode(node(rules.rules().len(), ready, tainted));
        let node: Node = node.read().expect("a node");
        let critical = match source {
            Source::Reported => 0,
            Source::Critical => 3,
            Source::Named => 1,
        };
        // Its cohort comes after that of the class.
        let cohort = usize::from(source == Source::Named);
        let daemon_sets = (0..critical).map(|index| {
            let object: DaemonSetObject = decode(daemon_set(index));
            let daemon_set: DaemonSet = object.read().expect("a DaemonSet");
            (daemon_set.key.clone(), daemon_set)
        });
        let pods = (0..critical).map(|index| {
            let object: PodObject = decode(pod(index, ready));
            object
                .read(Some(&classes[0].csi_annotation_prefix))
                .expect("a pod")
        });
        let mut world = Self {
            census: Census::default(),
            selecting: rules.selecting(&node.labels),
            named: (source == Source::Named)
                .then(|| NamedDaemonSet {
                    key: ObjectKey::new("kube-system", "component-0"),
                    cohort,
                    is_seen: true,
                })
                .into_iter()
                .collect(),
            daemon_sets: std::iter::once((cohort, daemon_sets.collect())).collect(),
            pods: std::iter::once((cohort, pods.collect())).collect(),
            sightings: Sightings::default(),
            classes,
            rules,
            node,
            now: "2026-01-01T01:00:00Z".parse().expect("a timestamp"),
        };
        world.publish();
        world
    }

    /// What follows for the node.
    #[must_use]
    pub fn plan(&self) -> NodePlan<'_> {
        let cluster = ClusterState {
            classes: &self.classes,
            named: &self.named,
            daemon_sets: &self.daemon_sets,
            rules: &self.rules,
            publish_conditions: true,
            doubts: Doubts::default(),
            repair: Situation {
                in_doubt: false,
                settles_at: None,
                headcount: &self.census,
            },
        };
        let state = NodeState {
            node: &self.node,
            csi_node: None,
            pods: &self.pods,
            selecting: &self.selecting,
            sightings: &self.sightings,
            joined: None,
            karpenter: Karpenter::Disabled,
        };
        let history = NodeHistory {
            is_known: true,
            looked: Doubts::default(),
            memories: &[],
            may_close: &[],
            watching_since: self.now,
        };
        plan(cluster, state, history, self.now)
    }

    /// Puts the synthesized conditions on the node, which is where they are when nothing changes.
    fn publish(&mut self) {
        let set = self.plan().conditions.set;
        let published = set
            .into_iter()
            .map(|condition| nodegate::object::NodeCondition {
                kind: condition.kind.into(),
                status: condition.status,
                reason: condition.reason.into(),
                message: condition.message,
                transition: Some(self.now),
            });
        let published: Vec<_> = published.collect();
        self.node.conditions.extend(published);
    }
}

fn decode<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object as the API server sends it")
}

fn rule(index: usize, source: Source) -> Value {
    let condition = match source {
        Source::Reported => REPORTED,
        Source::Critical => CRITICAL,
        Source::Named => NAMED,
    };
    json!({
        "metadata": {
            "name": rule_name(index),
            "uid": rule_uid(index),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["readiness.node.x-k8s.io/cleanup-taints"],
        },
        "spec": {
            "conditions": [{"type": condition, "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": taint_key(index), "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
        },
    })
}

fn rule_name(rule: usize) -> String {
    format!("rule-{rule}")
}

fn rule_uid(rule: usize) -> String {
    format!("7e0b8a52-96f0-4d4c-a4f5-{rule:012}")
}

fn taint_key(rule: usize) -> String {
    format!("readiness.k8s.io/rule-{rule}")
}

fn node(rules: usize, ready: bool, tainted: bool) -> Value {
    let condition = |kind: &str, is: bool| {
        let status = if is { "True" } else { "False" };
        json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:10:00Z"})
    };
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
    json!({
        "metadata": {
            "name": "worker-1",
            "uid": "0c1b5d9e-7c0e-4b0a-8f0e-9a1f5c7d2e31",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": "worker-1"},
            "annotations": owned,
        },
        "spec": {"taints": taints},
        "status": {"conditions": [
            condition("MemoryPressure", false),
            condition("DiskPressure", false),
            condition("PIDPressure", false),
            condition("Ready", true),
            condition(REPORTED, ready),
        ]},
    })
}

fn daemon_set(index: usize) -> Value {
    let name = format!("component-{index}");
    json!({
        "metadata": {
            "namespace": "kube-system",
            "name": name,
            "uid": format!("{name}-uid"),
            "resourceVersion": "1",
            "labels": {CLASS: "true"},
        },
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, CLASS: "true"}},
                "spec": {"tolerations": [{"operator": "Exists"}]},
            },
        },
    })
}

fn pod(daemon_set: usize, ready: bool) -> Value {
    let owner = format!("component-{daemon_set}");
    json!({
        "metadata": {
            "namespace": "kube-system",
            "name": format!("{owner}-x7k2p"),
            "uid": format!("{owner}-x7k2p-uid"),
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:05:00Z",
            "labels": {"app": owner, CLASS: "true"},
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": owner,
                "uid": format!("{owner}-uid"),
                "controller": true,
            }],
        },
        "spec": {"nodeName": "worker-1"},
        "status": {
            "phase": "Running",
            "conditions": [{
                "type": "Ready",
                "status": if ready { "True" } else { "False" },
                "lastTransitionTime": "2026-01-01T00:10:00Z",
            }],
        },
    })
}
