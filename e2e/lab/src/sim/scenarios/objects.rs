//! The objects of scenarios.

use serde_json::{Value, json};

use crate::sim::actors::kubelet::READY_AFTER;
use crate::sim::cluster::{Cluster, Who};
use crate::sim::time::Time;
use crate::{Key, Kind, Request};

/// The taint key of rules that do not name another.
pub const GATE: &str = "readiness.k8s.io/gate";
/// The condition that rules wait for that do not name another.
pub const READY: &str = "example.com/NetworkReady";
/// Gardener's condition for all of its critical components.
pub const COMPONENTS_READY: &str = "node.gardener.cloud/CriticalComponentsReady";
/// A CSI driver.
pub const DRIVER: &str = "csi.example.com";

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    name: &'static str,
    spec: Value,
}

/// A `bootstrap-only` rule for all nodes with Linux, which closes by [`GATE`] until [`READY`] is `True`.
#[must_use]
pub fn rule(name: &'static str) -> Rule {
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
    /// It holds at any time.
    #[must_use]
    pub fn continuous(self) -> Self {
        self.with("enforcementMode", json!("continuous"))
    }

    /// It never puts its taint on.
    #[must_use]
    pub fn remove_only(self) -> Self {
        self.with("taintPolicy", json!("remove-only"))
    }

    /// It waits for just this.
    #[must_use]
    pub fn waits_for(self, condition: &str, status: &str) -> Self {
        let condition = json!({"type": condition, "requiredStatus": status});
        self.with("conditions", json!([condition]))
    }

    /// It closes by this taint.
    #[must_use]
    pub fn taint(self, key: &str, effect: &str) -> Self {
        self.with("taint", json!({"key": key, "effect": effect}))
    }

    /// It is for nodes with this label.
    #[must_use]
    pub fn on(self, label: &str, value: &str) -> Self {
        self.with("nodeSelector", json!({"matchLabels": {label: value}}))
    }

    /// With this field of its spec.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    /// Its key and itself.
    #[must_use]
    pub fn object(self) -> (Key, Value) {
        (rule_key(self.name), json!({"spec": self.spec}))
    }
}

/// The key of a rule.
#[must_use]
pub fn rule_key(name: &str) -> Key {
    Key::cluster(Kind::NodeReadinessRule, name)
}

/// A `DaemonSet` in kube-system.
#[derive(Debug, Clone)]
pub struct DaemonSet {
    name: &'static str,
    object: Value,
}

/// A `DaemonSet` whose pods tolerate everything.
#[must_use]
pub fn daemon_set(name: &'static str) -> DaemonSet {
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
    /// It is one of Gardener's critical components.
    #[must_use]
    pub fn critical(mut self) -> Self {
        const CRITICAL: &str = "node.gardener.cloud/critical-component";
        self.object["metadata"]["labels"][CRITICAL] = json!("true");
        self.template()["metadata"]["labels"][CRITICAL] = json!("true");
        self
    }

    /// Its pods are Ready this long after they have come.
    #[must_use]
    pub fn ready_after(self, after: Time) -> Self {
        self.annotation(READY_AFTER, &after.as_millis().to_string())
    }

    /// Its pods wait for this CSI driver.
    #[must_use]
    pub fn waits_for_driver(self, driver: &str) -> Self {
        self.annotation("node.gardener.cloud/wait-for-csi-node-a", driver)
    }

    /// It selects its pods by this label `app`, which its own have.
    #[must_use]
    pub fn selects(mut self, app: &str) -> Self {
        self.object["spec"]["selector"]["matchLabels"]["app"] = json!(app);
        self.template()["metadata"]["labels"]["app"] = json!(app);
        self
    }

    /// It is for nodes with this label.
    #[must_use]
    pub fn only_on(mut self, label: &str, value: &str) -> Self {
        self.template()["spec"]["nodeSelector"] = json!({label: value});
        self
    }

    /// A new pod is there before the old one goes.
    #[must_use]
    pub fn surges(mut self) -> Self {
        self.object["spec"]["updateStrategy"] =
            json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
        self
    }

    /// A rolling update takes so many pods at a time.
    #[must_use]
    pub fn updates_at_once(mut self, pods: usize) -> Self {
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

    /// Its key and itself.
    #[must_use]
    pub fn object(self) -> (Key, Value) {
        (daemon_set_key(self.name), self.object)
    }
}

/// The key of a `DaemonSet` in kube-system.
#[must_use]
pub fn daemon_set_key(name: &str) -> Key {
    Key::namespaced(Kind::DaemonSet, "kube-system", name)
}

/// What begins a rolling update: a template of this version.
#[must_use]
pub fn version(version: &str) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"version": version}}}}})
}

/// Has an object be there from the beginning.
pub fn place(cluster: &mut Cluster, (key, object): (Key, Value)) {
    let answer = cluster.request(Who::Actor("setup"), &Request::Create { key, object });
    answer.expect("nothing is there before a scenario begins");
}
