//! The observed state of the cluster. Objects come in from the watches, and notable changes come out. Pure: the time is a
//! parameter, counted from the start of the story.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::cast::{APP, CNI, CSI, WORKLOAD};
use super::record::NodeRecord;
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

impl stage::World for World {
    fn picture(&self, now: Duration, width: usize, colours: Colours) -> Vec<String> {
        if self.nodes.is_empty() && self.workload.is_empty() {
            return Vec::new();
        }
        table(self, now, width, colours)
    }
}

impl World {
    /// Records a node's current state; returns notable changes.
    pub fn see_node(&mut self, node: &Node, at: Duration) -> Vec<String> {
        let name = node.name_any();
        let joins = (!self.nodes.contains_key(&name)).then(|| "joins".to_owned());
        let record = self.nodes.entry(name.clone()).or_default();
        let news = record.see(node, Moment::of(node, at));
        let news = joins.into_iter().chain(news);
        news.map(|news| format!("{name}  {news}")).collect()
    }

    /// Records a pod's current state.
    pub fn see_pod(&mut self, pod: &Pod) -> Vec<String> {
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

    fn see_workload_pod(&mut self, pod: &Pod, node: Option<String>, ready: bool) -> Vec<String> {
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
        vec![format!("{node}  workload pod {name} lands here")]
    }

    /// Records that a pod is gone.
    pub fn see_pod_go(&mut self, pod: &Pod) {
        self.workload.remove(&pod.name_any());
    }

    /// Records the registration of a node's CSI driver, by a request sent at `registered.at`.
    pub fn see_registration(&mut self, node: &str, registered: Moment) -> Vec<String> {
        let Some(record) = self.nodes.get_mut(node) else {
            return Vec::new();
        };
        record.registered = Some(registered);
        vec![format!("{node}  kubelet registers the CSI driver")]
    }

    /// How many nodes have no rule's taint.
    pub fn released_nodes(&self) -> usize {
        self.nodes.values().filter(|node| !node.is_held()).count()
    }

    /// How many of the workload's pods are Ready.
    pub fn running(&self) -> usize {
        self.workload.values().filter(|pod| pod.ready).count()
    }

    /// How many of the workload's pods are Ready on a node.
    pub fn running_on(&self, node: &str) -> usize {
        let here = |pod: &&WorkloadPod| pod.ready && pod.node.as_deref() == Some(node);
        self.workload.values().filter(here).count()
    }

    /// How many of the workload's pods are unbound.
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

    #[test]
    fn a_node_is_released_when_the_last_taint_of_a_rule_goes() {
        let mut world = World::default();
        let second = Duration::from_secs;
        #[rustfmt::skip]
        let steps = [
            (1, &[BOOTSTRAP][..], "", 1, &["joins", "is Ready", "gated by rule critical-components"][..]),
            (2, &GATES, "no pod", 2, &["gated by rule critical-pods", "waits: no pod"]),
            (3, &GATES, "no pod", 3, &[]),
            (4, &[BOOTSTRAP], "no driver", 4, &["taint of rule critical-pods removed", "waits: no driver"]),
            (5, &[], "no driver", 6, &["RELEASED after 5.0 s"]),
        ];
        for (revision, gates, message, at, expected) in steps {
            let news = world.see_node(&node("n", revision, gates, message), second(at));
            let expected: Vec<String> = expected.iter().map(|it| format!("n  {it}")).collect();
            assert_eq!(news, expected);
        }
        let gating = &world.nodes["n"].gatings[0];
        assert_eq!(gating.waited_for.as_deref(), Some("no driver"));
        assert_eq!(gating.period.lasted(second(60)), second(5));
    }

    #[test]
    fn whether_a_node_was_held_is_known_by_revision() {
        let mut world = World::default();
        for (revision, gates) in [(10, &[BOOTSTRAP][..]), (20, &[]), (30, &[CONTINUOUS])] {
            world.see_node(&node("n", revision, gates, ""), Duration::ZERO);
        }
        let gated = |revision: &u64| world.nodes["n"].was_held_at(Revision(*revision));
        let revisions = [9, 10, 19, 20, 29, 30, 99].into_iter();
        assert_eq!(
            revisions.filter(gated).collect::<Vec<_>>(),
            [10, 19, 30, 99]
        );
    }

    #[test]
    fn a_binding_is_told_once() {
        let mut world = World::default();
        let landed = ["n  workload pod a lands here"];
        assert_eq!(world.see_pod(&pod(WORKLOAD, "a", "n", 7)), landed);
        assert_eq!(world.see_pod(&pod(WORKLOAD, "a", "n", 8)), [""; 0]);
        assert_eq!(world.bindings[0].revision, Revision(7));
        let counts = (world.running(), world.running_on("n"), world.unbound());
        assert_eq!(counts, (1, 1, 0));
    }
}
