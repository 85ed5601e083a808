//! What has been seen of the cluster so far. Objects come in as the watches show them, and changes worth telling come
//! out. Pure: the time is a parameter, counted from the start of the story.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::runtime::watcher;

use super::cast::{APP, CNI, CSI, GATES, Gate, WORKLOAD};
use super::layout::seconds;
use crate::sights;

/// The revision of the store at which something was written. Nodes, pods and `CSINode`s are in one etcd here, so their
/// resource versions tell which of two writes came first, whatever the order in which the watches show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of an object.
    pub fn of(object: &impl ResourceExt) -> Self {
        let version = object.resource_version();
        Self(
            version
                .and_then(|version| version.parse().ok())
                .unwrap_or_default(),
        )
    }
}

/// When something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// In the store.
    pub revision: Revision,
    /// As it was seen, since the start of the story.
    pub at: Duration,
}

/// A time for which a node had the taint of a rule.
#[derive(Debug, Clone)]
pub struct Gating {
    /// When it began.
    pub closed: Moment,
    /// When it ended.
    pub opened: Option<Moment>,
    /// What the node waited for last, in Nodegate's words.
    pub waited_for: Option<String>,
}

impl Gating {
    /// How long it has lasted at a time.
    #[must_use]
    pub fn lasted(&self, now: Duration) -> Duration {
        let end = self.opened.map_or(now, |opened| opened.at);
        end.saturating_sub(self.closed.at)
    }
}

/// What has been seen of one node.
#[derive(Debug, Clone)]
pub struct NodeRecord {
    /// Its Ready condition.
    pub ready: bool,
    /// The rules whose taint it has.
    pub gated_by: Vec<&'static str>,
    /// What it waits for, in Nodegate's words: the message of the condition that the first of those rules waits for.
    pub waits_for: Option<String>,
    /// The times for which it was gated, the last one maybe still going on.
    pub gatings: Vec<Gating>,
    /// The name of its CNI pod.
    pub cni_pod: Option<String>,
    /// When that was Ready first.
    pub cni_ready: Option<Revision>,
    /// Whether the pod of its CSI driver has been Ready.
    pub csi_ready: bool,
    /// When its CSI driver was registered: in the store, and when the request was sent.
    pub registered: Option<Moment>,
}

impl NodeRecord {
    /// Whether it has the taint of a rule.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        !self.gated_by.is_empty()
    }

    /// Whether it had the taint of a rule when something was written.
    #[must_use]
    pub fn was_gated_at(&self, revision: Revision) -> bool {
        self.gatings.iter().any(|gating| {
            gating.closed.revision <= revision
                && gating
                    .opened
                    .is_none_or(|opened| opened.revision > revision)
        })
    }
}

/// A pod of the workload.
#[derive(Debug, Clone, Default)]
pub struct WorkloadPod {
    /// The node that it is bound to.
    pub node: Option<String>,
    /// Whether it is Ready.
    pub ready: bool,
}

/// A pod of the workload that was bound to a node, whatever became of it.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The pod.
    pub pod: String,
    /// The node.
    pub node: String,
    /// When the binding was written.
    pub revision: Revision,
}

/// What has been seen so far.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The nodes, by name.
    pub nodes: BTreeMap<String, NodeRecord>,
    /// The workload's pods that there are, by name.
    pub workload: BTreeMap<String, WorkloadPod>,
    /// Every binding of a pod of the workload.
    pub bindings: Vec<Binding>,
    /// What went wrong last while watching.
    pub trouble: Option<String>,
}

/// A change worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The node.
    pub node: String,
    /// What happened there.
    pub news: News,
}

/// What happened to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// It registered.
    Joined,
    /// Its Ready condition changed.
    Ready(bool),
    /// It got the taint of a rule.
    Gated(&'static str),
    /// It lost the taint of a rule, and has that of another one still.
    Lifted(&'static str),
    /// It lost the last taint of a rule after this time.
    Opened(Duration),
    /// It waits for something else.
    WaitsFor(String),
    /// Its CSI driver was registered.
    Registered,
    /// A pod of the workload was bound to it.
    Bound(String),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined => f.write_str("joins"),
            Self::Ready(true) => f.write_str("is Ready"),
            Self::Ready(false) => f.write_str("is not Ready"),
            Self::Gated(rule) => write!(f, "gated by rule {rule}"),
            Self::Lifted(rule) => write!(f, "taint of rule {rule} lifted"),
            Self::Opened(after) => write!(f, "OPEN after {}", seconds(*after)),
            Self::WaitsFor(what) => write!(f, "waits: {what}"),
            Self::Registered => f.write_str("kubelet registers the CSI driver"),
            Self::Bound(pod) => write!(f, "workload pod {pod} lands here"),
        }
    }
}

impl World {
    /// Takes in a node as it is now.
    pub fn see_node(&mut self, node: &Node, at: Duration) -> Vec<Change> {
        let name = node.name_any();
        let moment = Moment {
            revision: Revision::of(node),
            at,
        };
        let mut news = Vec::new();
        let record = self.nodes.entry(name.clone()).or_insert_with(|| {
            news.push(News::Joined);
            NodeRecord {
                ready: false,
                gated_by: Vec::new(),
                waits_for: None,
                gatings: Vec::new(),
                cni_pod: None,
                cni_ready: None,
                csi_ready: false,
                registered: None,
            }
        });
        let ready = condition(node, "Ready").is_some_and(|(status, _)| status == "True");
        if record.ready != ready {
            record.ready = ready;
            news.push(News::Ready(ready));
        }
        record.see_gates(node, moment, &mut news);
        record.see_wait(node, &mut news);
        news.into_iter()
            .map(|news| Change {
                node: name.clone(),
                news,
            })
            .collect()
    }

    /// Takes in a pod as it is now.
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

    /// Takes in that a pod is gone.
    pub fn see_pod_go(&mut self, pod: &Pod) {
        self.workload.remove(&pod.name_any());
    }

    /// Takes in that a node's CSI driver was registered, by a request sent at `registered.at`.
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

    /// Takes in that watching went wrong; it is tried again.
    pub fn see_trouble<T>(&mut self, event: Result<T, watcher::Error>) -> Vec<Change> {
        if let Err(error) = event {
            self.trouble = Some(error.to_string());
        }
        Vec::new()
    }

    /// How many nodes have no taint of a rule.
    #[must_use]
    pub fn open_nodes(&self) -> usize {
        self.nodes.values().filter(|node| !node.is_gated()).count()
    }

    /// How many pods of the workload are Ready.
    #[must_use]
    pub fn running(&self) -> usize {
        self.workload.values().filter(|pod| pod.ready).count()
    }

    /// How many pods of the workload are Ready on a node.
    #[must_use]
    pub fn running_on(&self, node: &str) -> usize {
        let here = |pod: &&WorkloadPod| pod.ready && pod.node.as_deref() == Some(node);
        self.workload.values().filter(here).count()
    }

    /// How many pods of the workload are bound to no node.
    #[must_use]
    pub fn unbound(&self) -> usize {
        self.workload
            .values()
            .filter(|pod| pod.node.is_none())
            .count()
    }
}

impl NodeRecord {
    fn see_gates(&mut self, node: &Node, moment: Moment, news: &mut Vec<News>) {
        let was: Vec<&str> = std::mem::take(&mut self.gated_by);
        let is_there = |gate: &&Gate| {
            let spec = node.spec.as_ref();
            let mut taints = spec
                .into_iter()
                .flat_map(|spec| spec.taints.iter().flatten());
            taints.any(|taint| taint.key == gate.taint)
        };
        self.gated_by = GATES
            .iter()
            .filter(is_there)
            .map(|gate| gate.rule)
            .collect();
        let added = self.gated_by.iter().filter(|rule| !was.contains(rule));
        news.extend(added.map(|rule| News::Gated(rule)));
        match (was.is_empty(), self.gated_by.is_empty()) {
            (true, false) => self.gatings.push(Gating {
                closed: moment,
                opened: None,
                waited_for: None,
            }),
            (false, true) => {
                if let Some(gating) = self.gatings.last_mut() {
                    gating.opened = Some(moment);
                    news.push(News::Opened(gating.lasted(moment.at)));
                }
            }
            (true, true) | (false, false) => {
                let lifted = GATES.iter().map(|gate| gate.rule);
                let lifted =
                    lifted.filter(|rule| was.contains(rule) && !self.gated_by.contains(rule));
                news.extend(lifted.map(News::Lifted));
            }
        }
    }

    fn see_wait(&mut self, node: &Node, news: &mut Vec<News>) {
        let gate = GATES.iter().find(|gate| self.gated_by.contains(&gate.rule));
        let waits_for = gate
            .and_then(|gate| condition(node, gate.condition))
            .filter(|(status, _)| *status != "True")
            .map(|(_, message)| message.to_owned());
        if waits_for == self.waits_for {
            return;
        }
        self.waits_for.clone_from(&waits_for);
        let Some(what) = waits_for else { return };
        if let Some(gating) = self.gatings.last_mut() {
            gating.waited_for = Some(what.clone());
        }
        news.push(News::WaitsFor(what));
    }
}

/// Status and message of a condition.
fn condition<'a>(node: &'a Node, condition_type: &str) -> Option<(&'a str, &'a str)> {
    let status = node.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|condition| condition.type_ == condition_type)?;
    let message = condition.message.as_deref().unwrap_or_default();
    Some((&condition.status, message))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::demo::cast::{BOOTSTRAP, CONTINUOUS};
    use crate::fixtures;

    /// A node with these taints and, unless it is empty, this message of the bootstrap rule's condition.
    pub fn node(name: &str, revision: u64, gates: &[Gate], message: &str) -> Node {
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

    /// A Ready pod with this label on a node.
    pub fn pod(label: (&str, &str), name: &str, node: &str, revision: u64) -> Pod {
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
                News::Gated("critical-components")
            ]
        );
        assert_eq!(
            see(2, &GATES, "no pod", 2),
            [
                News::Gated("critical-pods"),
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
    fn whether_a_node_was_gated_is_known_by_revision() {
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
            let gated = world.nodes["n"].was_gated_at(Revision(revision));
            assert_eq!(gated, expected, "at {revision}");
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
