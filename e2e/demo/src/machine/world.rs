//! The observed state of the node and its pods. Pure: the time is a parameter, counted from the start of the story.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::ResourceExt;
use nodegate_testbed::sights::is_ready;

use super::cast::{CNI, DRIVER, GATE, WORKLOAD};
use super::picture::picture;
use crate::stage::{self, Colours, Moment, Period, Revision, seconds};

/// A period in which the node had a rule's taint.
#[derive(Debug, Clone)]
pub struct Gating {
    pub rule: String,
    pub period: Period,
}

/// The last observed state of a pod.
#[derive(Debug, Clone, Default)]
pub struct PodRecord {
    pub ready: bool,
    /// How often its containers were restarted.
    pub restarts: i32,
    /// Why it does not run, in the kubelet's words.
    pub waits: Option<String>,
    /// When it was bound to the node.
    pub bound: Option<Revision>,
}

/// The observed state.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Whether the kubelet reports Ready, and its message.
    pub ready: (bool, String),
    /// What the node waits for, in Nodegate's words.
    pub waits_for: Option<String>,
    /// Every period in which it had a rule's taint.
    pub gatings: Vec<Gating>,
    /// Whether the node exists.
    pub registered: bool,
    /// Whether its first observed state had a rule's taint.
    pub registered_closed: bool,
    /// Its current pods, by name.
    pub pods: BTreeMap<String, PodRecord>,
    /// When its network was first Ready.
    pub network_ready: Option<Revision>,
    /// When the kubelet first registered the driver.
    pub driver: Option<Revision>,
    /// Whether the kubelet has reported a reboot.
    pub rebooted: bool,
}

impl stage::World for World {
    fn picture(&self, now: Duration, width: usize, colours: Colours) -> Vec<String> {
        picture(self, now, width, colours)
    }
}

impl World {
    /// Whether the node has a rule's taint.
    #[must_use]
    pub fn is_closed_by(&self, rule: &str) -> bool {
        self.closed_by().any(|gating| gating.rule == rule)
    }

    /// The rules' taints on the node now.
    pub fn closed_by(&self) -> impl Iterator<Item = &Gating> {
        let gatings = self.gatings.iter();
        gatings.filter(|gating| gating.period.opened.is_none())
    }

    /// Whether it exists without a rule's taint.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.registered && self.closed_by().next().is_none()
    }

    /// How many pods of the workload run.
    #[must_use]
    pub fn running(&self) -> usize {
        let pods = self.pods.iter();
        pods.filter(|(name, pod)| name.starts_with(WORKLOAD.0) && pod.ready)
            .count()
    }

    /// The pods with this name prefix.
    pub fn of<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a PodRecord> {
        let pods = self.pods.iter();
        pods.filter(move |(name, _)| name.starts_with(start))
            .map(|(_, pod)| pod)
    }

    /// Records the node's current state.
    pub fn see_node(&mut self, node: &Node, at: Duration) -> Vec<String> {
        let moment = Moment::of(node, at);
        let mut news = self.see_gates(node, moment);
        if !self.registered {
            self.registered = true;
            self.registered_closed = !self.gatings.is_empty();
            news.insert(0, "the kubelet registers the node".to_owned());
        }
        let status = node.status.as_ref();
        let conditions = status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        let mut waits_for = None;
        for condition in conditions {
            let message = condition.message.clone().unwrap_or_default();
            let holds = condition.status == "True";
            if condition.type_ == "Ready" && self.ready != (holds, message.clone()) {
                let word = if holds { "Ready" } else { "not Ready" };
                news.push(format!("the kubelet says: {word}: {message}"));
                self.ready = (holds, message);
            } else if condition.type_.starts_with("node.gardener.cloud/") && !holds {
                waits_for = Some(message);
            }
        }
        if waits_for != self.waits_for {
            news.extend(
                waits_for
                    .iter()
                    .map(|what| format!("Nodegate waits: {what}")),
            );
            self.waits_for = waits_for;
        }
        news
    }

    fn see_gates(&mut self, node: &Node, moment: Moment) -> Vec<String> {
        let mut news = Vec::new();
        let taints = node
            .spec
            .iter()
            .flat_map(|spec| spec.taints.iter().flatten());
        let rules: Vec<&str> = taints
            .filter_map(|taint| taint.key.strip_prefix(GATE))
            .collect();
        for gating in &mut self.gatings {
            let period = &mut gating.period;
            if period.opened.is_none() && !rules.contains(&gating.rule.as_str()) {
                period.opened = Some(moment);
                let lasted = seconds(period.lasted(moment.at));
                news.push(format!("OPEN for rule {} after {lasted}", gating.rule));
            }
        }
        for rule in rules {
            if !self.is_closed_by(rule) {
                news.push(format!("closed by rule {rule}"));
                self.gatings.push(Gating {
                    rule: rule.to_owned(),
                    period: Period {
                        closed: moment,
                        opened: None,
                    },
                });
            }
        }
        news
    }

    /// Records a pod's current state.
    pub fn see_pod(&mut self, pod: &Pod) -> Vec<String> {
        if pod
            .spec
            .as_ref()
            .is_none_or(|spec| spec.node_name.is_none())
        {
            return Vec::new();
        }
        let name = pod.name_any();
        let status = pod.status.iter();
        let containers: Vec<_> = status
            .flat_map(|status| status.container_statuses.iter().flatten())
            .collect();
        let ready = is_ready(pod);
        if ready && name.starts_with(CNI) {
            self.network_ready.get_or_insert(Revision::of(pod));
        }
        let is_new = !self.pods.contains_key(&name);
        let record = self.pods.entry(name.clone()).or_default();
        let mut news = Vec::new();
        if is_new {
            record.bound = Some(Revision::of(pod));
            news.push(format!("pod {name} lands on the node"));
        }
        if record.ready != ready {
            let word = if ready { "Ready" } else { "not Ready" };
            news.push(format!("pod {name} is {word}"));
        }
        record.ready = ready;
        record.restarts = containers
            .iter()
            .map(|container| container.restart_count)
            .sum();
        record.waits = containers.iter().find_map(|container| {
            let waiting = container.state.as_ref()?.waiting.as_ref()?;
            waiting.reason.clone()
        });
        news
    }

    /// Records that a pod is gone.
    pub fn see_pod_go(&mut self, pod: &Pod) {
        self.pods.remove(&pod.name_any());
    }

    /// Records the drivers that the kubelet has registered.
    pub fn see_drivers(&mut self, node: &CSINode) -> Vec<String> {
        let is_there = node.spec.drivers.iter().any(|driver| driver.name == DRIVER);
        if !is_there || self.driver.is_some() {
            return Vec::new();
        }
        self.driver = Some(Revision::of(node));
        vec![format!("the kubelet registers CSI driver {DRIVER}")]
    }

    /// Records an event.
    pub fn see_event(&mut self, event: &Event) -> Vec<String> {
        let source = event.source.as_ref();
        let is_kubelets =
            source.is_some_and(|source| source.component.as_deref() == Some("kubelet"));
        if !is_kubelets || event.reason.as_deref() != Some("Rebooted") || self.rebooted {
            return Vec::new();
        }
        self.rebooted = true;
        let message = event.message.clone().unwrap_or_default();
        vec![format!("the kubelet says: {message}")]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn node(revision: u64, rules: &[&str], ready: &str) -> Node {
        let taints: Vec<Value> = rules
            .iter()
            .map(|rule| json!({"key": format!("{GATE}{rule}"), "effect": "NoSchedule"}))
            .collect();
        let node = json!({
            "metadata": {"name": "node-1", "resourceVersion": revision.to_string()},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready, "message": "no network"}]},
        });
        serde_json::from_value(node).unwrap_or_default()
    }

    #[test]
    fn what_the_kubelet_says_is_told_beside_what_the_rules_do() {
        let mut world = World::default();
        let second = Duration::from_secs(1);
        assert_eq!(
            world.see_node(&node(1, &["joining"], "False"), second),
            [
                "the kubelet registers the node",
                "closed by rule joining",
                "the kubelet says: not Ready: no network"
            ]
        );
        assert!(world.registered_closed && !world.is_open());
        assert_eq!(
            world.see_node(&node(2, &[], "True"), 3 * second),
            [
                "OPEN for rule joining after 2.0 s",
                "the kubelet says: Ready: no network"
            ]
        );
        assert!(world.is_open());
    }
}
