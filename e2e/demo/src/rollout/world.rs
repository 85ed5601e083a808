//! The observed state of the cluster. Objects come in from the watches, and notable changes come out. Pure: the time is a
//! parameter, counted from the start of the story.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::cast::{APP, CNI, CSI, WORKLOAD};
use super::record::{News, NodeRecord};
use super::table::table;
use crate::stage::{self, Colours, Moment, Revision};
use nodegate_testbed::sights;

#[derive(Debug, Clone, Default)]
pub struct WorkloadPod {
    pub node: Option<String>,
    pub ready: bool,
}

/// A workload pod's binding, even if the pod is gone by now.
#[derive(Debug, Clone)]
pub struct Binding {
    pub pod: String,
    pub node: String,
    pub revision: Revision,
}

/// The observed state.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The nodes, by name.
    pub nodes: BTreeMap<String, NodeRecord>,
    /// The workload's current pods, by name.
    pub workload: BTreeMap<String, WorkloadPod>,
    /// Every binding of the workload's pods.
    pub bindings: Vec<Binding>,
}

/// A notable change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub node: String,
    pub news: News,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.node, self.news)
    }
}

impl stage::World for World {
    fn picture(&self, now: Duration, width: usize, colours: Colours) -> Vec<String> {
        if self.nodes.is_empty() && self.workload.is_empty() {
            return Vec::new();
        }
        table(self, now, width, colours)
    }
}

impl World {
    /// Records a node's current state.
    pub fn see_node(&mut self, node: &Node, at: Duration) -> Vec<Change> {
        let name = node.name_any();
        let moment = Moment {
            revision: Revision::of(node),
            at,
        };
        let joined = (!self.nodes.contains_key(&name)).then_some(News::Joined);
        let record = self.nodes.entry(name.clone()).or_default();
        let news = record.see(node, moment);
        joined
            .into_iter()
            .chain(news)
            .map(|news| Change {
                node: name.clone(),
                news,
            })
            .collect()
    }

    /// Records a pod's current state.
    pub fn see_pod(&mut self, pod: &Pod) -> Vec<Change> {
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| spec.node_name.clone());
        let ready = sights::is_ready(pod);
        let label = |key: &str| pod.labels().get(key).map(String::as_str);
        if label(WORKLOAD.0) == Some(WORKLOAD.1) {
            return self.see_workload_pod(pod, node, ready);
        }
        let Some(record) = node.and_then(|node| self.nodes.get_mut(&node)) else {
            return Vec::new();
        };
        match label(APP) {
            Some(CNI) => {
                record.cni_pod = Some(pod.name_any());
                if ready {
                    record.cni_ready.get_or_insert(Revision::of(pod));
                }
            }
            Some(CSI) => record.csi_ready |= ready,
            _ => {}
        }
        Vec::new()
    }

    fn see_workload_pod(&mut self, pod: &Pod, node: Option<String>, ready: bool) -> Vec<Change> {
        let name = pod.name_any();
        let record = self.workload.entry(name.clone()).or_default();
        let newly_bound = record.node.is_none();
        record.ready = ready;
        record.node.clone_from(&node);
        let Some(node) = node.filter(|_| newly_bound) else {
            return Vec::new();
        };
        self.bindings.push(Binding {
            pod: name.clone(),
            node: node.clone(),
            revision: Revision::of(pod),
        });
        vec![Change {
            node,
            news: News::Bound(name),
        }]
    }

    /// Records that a pod is gone.
    pub fn see_pod_go(&mut self, pod: &Pod) {
        self.workload.remove(&pod.name_any());
    }

    /// Records the registration of a node's CSI driver, by a request sent at `registered.at`.
    pub fn see_registration(&mut self, node: &str, registered: Moment) -> Vec<Change> {
        let Some(record) = self.nodes.get_mut(node) else {
            return Vec::new();
        };
        record.registered = Some(registered);
        vec![Change {
            node: node.to_owned(),
            news: News::Registered,
        }]
    }

    /// How many nodes have no rule's taint.
    #[must_use]
    pub fn open_nodes(&self) -> usize {
        self.nodes.values().filter(|node| !node.is_closed()).count()
    }

    /// How many of the workload's pods are Ready.
    #[must_use]
    pub fn running(&self) -> usize {
        self.workload.values().filter(|pod| pod.ready).count()
    }

    /// How many of the workload's pods are Ready on a node.
    #[must_use]
    pub fn running_on(&self, node: &str) -> usize {
        let here = |pod: &&WorkloadPod| pod.ready && pod.node.as_deref() == Some(node);
        self.workload.values().filter(here).count()
    }

    /// How many of the workload's pods are unbound.
    #[must_use]
    pub fn unbound(&self) -> usize {
        self.workload
            .values()
            .filter(|pod| pod.node.is_none())
            .count()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rollout::cast::{BOOTSTRAP, CONTINUOUS, GATES, Gate};
    use nodegate_testbed::fixtures;

    /// A node with these taints and, unless empty, this message in the bootstrap rule's condition.
    pub(crate) fn node(name: &str, revision: u64, gates: &[Gate], message: &str) -> Node {
        let mut node = gates
            .iter()
            .fold(fixtures::node(name), |node, gate| {
                node.taint(gate.taint, "NoSchedule")
            })
            .condition("Ready", "True");
        for gate in GATES.iter().filter(|_| !message.is_empty()) {
            node = node.condition(gate.condition, "False");
        }
        let mut node = node.build();
        node.metadata.resource_version = Some(revision.to_string());
        if let Some(status) = &mut node.status {
            for condition in status.conditions.iter_mut().flatten() {
                condition.message = Some(message.to_owned());
            }
        }
        node
    }

    pub(crate) fn pod(label: (&str, &str), name: &str, node: &str, revision: u64) -> Pod {
        let mut pod = fixtures::pod(name).label(label.0, label.1).on(node).build();
        pod.metadata.resource_version = Some(revision.to_string());
        pod.status = serde_json::from_value(serde_json::json!({
            "conditions": [{"type": "Ready", "status": "True"}]
        }))
        .ok();
        pod
    }

    fn news(changes: Vec<Change>) -> Vec<News> {
        changes.into_iter().map(|change| change.news).collect()
    }

    #[test]
    fn a_node_is_open_when_the_last_taint_of_a_rule_goes() {
        let mut world = World::default();
        let second = Duration::from_secs;
        let mut see = |revision, gates: &[Gate], message: &str, at| {
            news(world.see_node(&node("n", revision, gates, message), second(at)))
        };
        assert_eq!(
            see(1, &[BOOTSTRAP], "", 1),
            [
                News::Joined,
                News::Ready(true),
                News::Closed("critical-components")
            ]
        );
        assert_eq!(
            see(2, &GATES, "no pod", 2),
            [
                News::Closed("critical-pods"),
                News::WaitsFor("no pod".to_owned())
            ]
        );
        assert_eq!(see(3, &GATES, "no pod", 3), []);
        assert_eq!(
            see(4, &[BOOTSTRAP], "no driver", 4),
            [
                News::Lifted("critical-pods"),
                News::WaitsFor("no driver".to_owned())
            ]
        );
        assert_eq!(see(5, &[], "no driver", 6), [News::Opened(second(5))]);
        let gating = &world.nodes["n"].gatings[0];
        assert_eq!(gating.waited_for.as_deref(), Some("no driver"));
        assert_eq!(gating.lasted(second(60)), second(5));
    }

    #[test]
    fn whether_a_node_was_closed_is_known_by_revision() {
        let mut world = World::default();
        for (revision, gates) in [
            (10, &[BOOTSTRAP] as &[Gate]),
            (20, &[]),
            (30, &[CONTINUOUS]),
        ] {
            world.see_node(&node("n", revision, gates, ""), Duration::ZERO);
        }
        for (revision, expected) in [
            (9, false),
            (10, true),
            (19, true),
            (20, false),
            (29, false),
            (30, true),
            (99, true),
        ] {
            let closed = world.nodes["n"].was_closed_at(Revision(revision));
            assert_eq!(closed, expected, "at {revision}");
        }
    }

    #[test]
    fn a_binding_is_told_once() {
        let mut world = World::default();
        let landed = [News::Bound("a".to_owned())];
        assert_eq!(news(world.see_pod(&pod(WORKLOAD, "a", "n", 7))), landed);
        assert_eq!(news(world.see_pod(&pod(WORKLOAD, "a", "n", 8))), []);
        assert_eq!(world.bindings[0].revision, Revision(7));
        assert_eq!(
            (world.running(), world.running_on("n"), world.unbound()),
            (1, 1, 0)
        );
    }
}
