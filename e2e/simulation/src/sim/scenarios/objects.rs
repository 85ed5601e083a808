//! The objects of scenarios.

use serde_json::{Value, json};

use crate::sim::actors::Operator;
use crate::sim::actors::kubelet::READY_AFTER;
use crate::sim::time::{Time, s};
use crate::{Key, Kind};

/// The default taint key of rules.
pub(super) const GATE: &str = "readiness.k8s.io/gate";
/// The taint key of a second rule.
pub(super) const OTHER_GATE: &str = "readiness.k8s.io/storage";
/// The default condition of rules.
pub(super) const READY: &str = "example.com/NetworkReady";
/// The condition of a second reporter.
pub(super) const SECOND: &str = "example.com/StorageReady";
/// The condition of a reporter of problems.
pub(super) const PROBLEM: &str = "example.com/ClockUnsynchronized";
/// A condition that is `True` while a node is in maintenance.
pub(super) const MAINTENANCE: &str = "MaintenanceInProgress";
/// Another one.
pub(super) const DRAIN: &str = "DrainInProgress";
/// Gardener's condition for all of its critical components.
pub(super) const COMPONENTS_READY: &str = "node.gardener.cloud/CriticalComponentsReady";
pub(super) const DRIVER: &str = "csi.example.com";
/// The condition that the driver is registered.
pub(super) const DRIVER_REGISTERED: &str = "csidriver.nodegate.dev/csi.example.com";
pub(super) const GPU: &str = "nvidia.com/gpu";
/// The condition that a node has GPUs.
pub(super) const HAS_GPU: &str = "resource.nodegate.dev/nvidia.com/gpu";
/// The condition that the `DaemonSet` `kube-system/agent` is ready.
pub(super) const AGENT: &str = "daemonset.nodegate.dev/kube-system.agent";
/// The condition that every `DaemonSet` is ready.
pub(super) const ALL_DAEMON_SETS: &str = "daemonsets.nodegate.dev/all";
/// The condition that every `DaemonSet` has a pod.
pub(super) const ALL_BOUND: &str = "daemonsets.nodegate.dev/scheduled";
pub(super) const CILIUM: &str = "node.cilium.io/agent-not-ready";

#[derive(Debug, Clone)]
pub(super) struct Rule {
    name: &'static str,
    spec: Value,
}

/// A `bootstrap-only` rule for all Linux nodes, which gates them with [`GATE`] until [`READY`] is `True`.
pub(super) fn rule(name: &'static str) -> Rule {
    Rule {
        name,
        spec: json!({
            "conditions": [{"type": READY, "requiredStatus": "True"}],
            "enforcementMode": "bootstrap-only",
            "taint": {"key": GATE, "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}},
        }),
    }
}

impl Rule {
    pub(super) fn continuous(self) -> Self {
        self.with("enforcementMode", json!("continuous"))
    }

    pub(super) fn remove_only(self) -> Self {
        self.nodegate("taintPolicy", json!("remove-only"))
    }

    /// A completed bootstrap counts only for its boot.
    pub(super) fn regates(self) -> Self {
        self.nodegate("regateOn", json!(["Reboot"]))
    }

    /// Waits for this condition alone to be `True`.
    pub(super) fn waits_for(self, condition: &str) -> Self {
        self.waits_for_all(&[condition])
    }

    /// Waits for these conditions to be `True`.
    pub(super) fn waits_for_all(self, conditions: &[&str]) -> Self {
        let conditions = conditions.iter();
        let conditions = conditions.map(|it| json!({"type": it, "requiredStatus": "True"}));
        self.with("conditions", conditions.collect())
    }

    pub(super) fn taint(self, key: &str, effect: &str) -> Self {
        self.with("taint", json!({"key": key, "effect": effect}))
    }

    pub(super) fn on(self, label: &str, value: &str) -> Self {
        self.with("nodeSelector", json!({"matchLabels": {label: value}}))
    }

    pub(super) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(super) fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    /// Sets a field under `spec.nodegate`.
    pub(super) fn nodegate(mut self, field: &str, value: Value) -> Self {
        self.spec["nodegate"][field] = value;
        self
    }
}

impl From<Rule> for (Key, Value) {
    fn from(rule: Rule) -> Self {
        (rule_key(rule.name), json!({"spec": rule.spec}))
    }
}

pub(super) fn rule_key(name: &str) -> Key {
    Key::cluster(Kind::NodeReadinessRule, name)
}

pub(super) fn csi_node(node: &str) -> Key {
    Key::cluster(Kind::CsiNode, node)
}

/// A patch of a `CSINode`: all that the driver reports to be wrong with its storage.
pub(super) fn storage(driver: &str, wrong: &[&str]) -> Value {
    let condition = |status: &&str| json!({"status": status, "reason": "Why", "message": "so"});
    let conditions: Vec<Value> = wrong.iter().map(condition).collect();
    json!({"status": {"storageHealth": [{"name": driver, "healthConditions": conditions}]}})
}

#[derive(Debug, Clone)]
pub(super) struct DaemonSet {
    name: &'static str,
    object: Value,
}

/// A `DaemonSet` in kube-system whose pods tolerate everything, unless [`DaemonSet::tolerates`] says otherwise.
pub(super) fn daemon_set(name: &'static str) -> DaemonSet {
    let labels = json!({"app": name});
    let object = json!({
        "metadata": {"labels": {}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {}},
                "spec": {"tolerations": [{"operator": "Exists"}]},
            },
        },
    });
    DaemonSet { name, object }
}

impl DaemonSet {
    /// Marks it as one of Gardener's critical components.
    pub(super) fn critical(mut self) -> Self {
        const CRITICAL: &str = "node.gardener.cloud/critical-component";
        self.template()["metadata"]["labels"][CRITICAL] = json!("true");
        self.label(CRITICAL)
    }

    /// Sets this label of the `DaemonSet` itself to `true`.
    pub(super) fn label(mut self, key: &str) -> Self {
        self.object["metadata"]["labels"][key] = json!("true");
        self
    }

    /// Its pods become Ready this long after their creation.
    pub(super) fn ready_after(self, after: Time) -> Self {
        self.annotation(READY_AFTER, &after.as_millis().to_string())
    }

    /// Its pods count once they have been Ready for so many seconds.
    pub(super) fn available_after(mut self, seconds: u64) -> Self {
        self.object["spec"]["minReadySeconds"] = json!(seconds);
        self
    }

    /// Its pods wait for this CSI driver.
    pub(super) fn waits_for_driver(self, driver: &str) -> Self {
        self.annotation("node.gardener.cloud/wait-for-csi-node-a", driver)
    }

    /// Selects its pods by this label `app`, and sets it on them.
    pub(super) fn selects(mut self, app: &str) -> Self {
        self.object["spec"]["selector"]["matchLabels"]["app"] = json!(app);
        self.template()["metadata"]["labels"]["app"] = json!(app);
        self
    }

    pub(super) fn only_on(mut self, label: &str, value: &str) -> Self {
        self.template()["spec"]["nodeSelector"] = json!({label: value});
        self
    }

    /// Its pods tolerate taints of these keys alone.
    pub(super) fn tolerates(mut self, keys: &[&str]) -> Self {
        let tolerations = keys
            .iter()
            .map(|key| json!({"key": key, "operator": "Exists"}));
        self.template()["spec"]["tolerations"] = tolerations.collect();
        self
    }

    /// Creates a new pod before it deletes the old one.
    pub(super) fn surges(self) -> Self {
        self.rolls(json!({"maxSurge": 1, "maxUnavailable": 0}))
    }

    /// Sets how many pods a rolling update takes at a time.
    pub(super) fn updates_at_once(self, pods: usize) -> Self {
        self.rolls(json!({"maxUnavailable": pods}))
    }

    fn rolls(mut self, update: Value) -> Self {
        self.object["spec"]["updateStrategy"] = json!({"rollingUpdate": update});
        self
    }

    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.template()["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn template(&mut self) -> &mut Value {
        &mut self.object["spec"]["template"]
    }
}

impl From<DaemonSet> for (Key, Value) {
    fn from(set: DaemonSet) -> Self {
        (daemon_set_key(set.name), set.object)
    }
}

/// The key of a `DaemonSet` in kube-system.
pub(super) fn daemon_set_key(name: &str) -> Key {
    Key::namespaced(Kind::DaemonSet, "kube-system", name)
}

/// A patch that starts a rolling update to this version.
pub(super) fn version(version: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"version": version}}}}})
}

/// Rolls out another version of the agent.
pub(super) fn rolls_out() -> Operator {
    Operator::default().edits(s(30), daemon_set_key("agent"), version("2"))
}

/// A run of the check `nccl`, bound to a node.
pub(super) fn check_run(name: &str, node: &str) -> (Key, Value) {
    let metadata = json!({
        "name": name, "namespace": "kube-system", "labels": {"nodegate.dev/check": "nccl"},
    });
    let run = json!({"metadata": metadata, "spec": {"nodeName": node}});
    (Key::namespaced(Kind::Pod, "kube-system", name), run)
}

/// A slice of a node's pool with one device, of this generation, which has this many slices.
pub(super) fn slice(name: &str, node: &str, generation: u64, of: u64) -> (Key, Value) {
    let pool = json!({"name": node, "generation": generation, "resourceSliceCount": of});
    let spec = json!({
        "driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}],
    });
    let slice = json!({"metadata": {"name": name}, "spec": spec});
    (Key::cluster(Kind::ResourceSlice, name), slice)
}
