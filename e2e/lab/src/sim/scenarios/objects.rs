//! The objects of scenarios.

use serde_json::{Value, json};

use crate::sim::actors::kubelet::READY_AFTER;
use crate::sim::cluster::{Cluster, Who};
use crate::sim::time::Time;
use crate::{Key, Kind, Request};

/// The default taint key of rules.
pub(super) const GATE: &str = "readiness.k8s.io/gate";
/// The default condition of rules.
pub(super) const READY: &str = "example.com/NetworkReady";
/// Gardener's condition for all of its critical components.
pub(super) const COMPONENTS_READY: &str = "node.gardener.cloud/CriticalComponentsReady";
pub(super) const DRIVER: &str = "csi.example.com";

#[derive(Debug, Clone)]
pub(super) struct Rule {
    name: &'static str,
    spec: Value,
}

/// A `bootstrap-only` rule for all Linux nodes, which closes them with [`GATE`] until [`READY`] is `True`.
#[must_use]
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
    /// Makes it continuous.
    #[must_use]
    pub(super) fn continuous(self) -> Self {
        self.with("enforcementMode", json!("continuous"))
    }

    /// It never adds its taint.
    #[must_use]
    pub(super) fn remove_only(self) -> Self {
        self.with("taintPolicy", json!("remove-only"))
    }

    /// Waits for this condition alone.
    #[must_use]
    pub(super) fn waits_for(self, condition: &str, status: &str) -> Self {
        let condition = json!({"type": condition, "requiredStatus": status});
        self.with("conditions", json!([condition]))
    }

    #[must_use]
    pub(super) fn taint(self, key: &str, effect: &str) -> Self {
        self.with("taint", json!({"key": key, "effect": effect}))
    }

    /// Selects nodes with this label.
    #[must_use]
    pub(super) fn on(self, label: &str, value: &str) -> Self {
        self.with("nodeSelector", json!({"matchLabels": {label: value}}))
    }

    /// Sets this field of its spec.
    #[must_use]
    pub(super) fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    #[must_use]
    pub(super) fn object(self) -> (Key, Value) {
        (rule_key(self.name), json!({"spec": self.spec}))
    }
}

#[must_use]
pub(super) fn rule_key(name: &str) -> Key {
    Key::cluster(Kind::NodeReadinessRule, name)
}

#[must_use]
pub(super) fn csi_node(node: &str) -> Key {
    Key::cluster(Kind::CsiNode, node)
}

/// A patch of a `CSINode`: all that the driver reports to be wrong with its storage.
#[must_use]
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

/// A `DaemonSet` in kube-system whose pods tolerate everything.
#[must_use]
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
    #[must_use]
    pub(super) fn critical(mut self) -> Self {
        const CRITICAL: &str = "node.gardener.cloud/critical-component";
        self.object["metadata"]["labels"][CRITICAL] = json!("true");
        self.template()["metadata"]["labels"][CRITICAL] = json!("true");
        self
    }

    /// Its pods become Ready this long after their creation.
    #[must_use]
    pub(super) fn ready_after(self, after: Time) -> Self {
        self.annotation(READY_AFTER, &after.as_millis().to_string())
    }

    /// Its pods wait for this CSI driver.
    #[must_use]
    pub(super) fn waits_for_driver(self, driver: &str) -> Self {
        self.annotation("node.gardener.cloud/wait-for-csi-node-a", driver)
    }

    /// Selects its pods by this label `app`, and sets it on them.
    #[must_use]
    pub(super) fn selects(mut self, app: &str) -> Self {
        self.object["spec"]["selector"]["matchLabels"]["app"] = json!(app);
        self.template()["metadata"]["labels"]["app"] = json!(app);
        self
    }

    /// Selects nodes with this label.
    #[must_use]
    pub(super) fn only_on(mut self, label: &str, value: &str) -> Self {
        self.template()["spec"]["nodeSelector"] = json!({label: value});
        self
    }

    /// Creates a new pod before it deletes the old one.
    #[must_use]
    pub(super) fn surges(mut self) -> Self {
        self.object["spec"]["updateStrategy"] =
            json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        self
    }

    /// Sets how many pods a rolling update takes at a time.
    #[must_use]
    pub(super) fn updates_at_once(mut self, pods: usize) -> Self {
        self.object["spec"]["updateStrategy"] = json!({"rollingUpdate": {"maxUnavailable": pods}});
        self
    }

    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.template()["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn template(&mut self) -> &mut Value {
        &mut self.object["spec"]["template"]
    }

    #[must_use]
    pub(super) fn object(self) -> (Key, Value) {
        (daemon_set_key(self.name), self.object)
    }
}

/// The key of a `DaemonSet` in kube-system.
#[must_use]
pub(super) fn daemon_set_key(name: &str) -> Key {
    Key::namespaced(Kind::DaemonSet, "kube-system", name)
}

/// A patch that starts a rolling update to this version.
#[must_use]
pub(super) fn version(version: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"version": version}}}}})
}

/// Creates an object that exists from the beginning.
pub(super) fn place(cluster: &mut Cluster, (key, object): (Key, Value)) {
    let answer = cluster.request(Who::Actor("setup"), &Request::Create { key, object });
    answer.expect("nothing is there before a scenario begins");
}

/// A run of the check `nccl`, bound to a node.
#[must_use]
pub(super) fn check_run(name: &str, node: &str) -> (Key, Value) {
    let key = Key::namespaced(Kind::Pod, "kube-system", name);
    let metadata = json!({
        "name": name, "namespace": "kube-system", "labels": {"nodegate.dev/check": "nccl"},
    });
    (
        key,
        json!({"metadata": metadata, "spec": {"nodeName": node}}),
    )
}

/// A slice of a node's pool with one device, of this generation, which has this many slices.
#[must_use]
pub(super) fn slice(name: &str, node: &str, generation: u64, of: u64) -> (Key, Value) {
    let key = Key::cluster(Kind::ResourceSlice, name);
    let pool = json!({"name": node, "generation": generation, "resourceSliceCount": of});
    let devices = json!([{"name": "gpu-0"}]);
    let spec = json!({
        "driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices,
    });
    (key, json!({"metadata": {"name": name}, "spec": spec}))
}
