//! A machine, as its kubelet registers it.

use serde_json::{Value, json};

use crate::sim::time::{Time, s};

/// Where nodes say in which zone they are.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// A machine that becomes a node.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its name, and the node's.
    pub name: String,
    /// The labels that the node registers with.
    pub labels: Value,
    /// The taints that the node registers with.
    pub taints: Vec<Value>,
    /// The cloud provider's name for it; empty where there is none.
    pub provider_id: String,
    /// When it boots, and registers.
    pub boots: Time,
    /// How long after it has booted it is Ready.
    pub ready_after: Time,
    /// How long after it has booted its kubelet looks at the pods that are bound to its node.
    pub pods_after: Time,
}

impl Machine {
    /// A Linux machine that boots at once and is Ready after 3 seconds.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            labels: json!({"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}),
            taints: Vec::new(),
            provider_id: String::new(),
            boots: Time::ZERO,
            ready_after: s(3),
            pods_after: Time::ZERO,
        }
    }

    /// With this label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels[key] = json!(value);
        self
    }

    /// In this zone.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        self.label(ZONE, zone)
    }

    /// With this taint from its registration on (`--register-with-taints`).
    #[must_use]
    pub fn taint(mut self, key: &str, effect: &str) -> Self {
        self.taints.push(json!({"key": key, "effect": effect}));
        self
    }

    /// Booting at this time.
    #[must_use]
    pub fn boots(mut self, boots: Time) -> Self {
        self.boots = boots;
        self
    }

    /// Ready this long after it has booted.
    #[must_use]
    pub fn ready_after(mut self, ready_after: Time) -> Self {
        self.ready_after = ready_after;
        self
    }

    /// Its kubelet looks at its pods so long after it has booted: until then they say what they said before.
    #[must_use]
    pub fn pods_after(mut self, pods_after: Time) -> Self {
        self.pods_after = pods_after;
        self
    }

    /// The node that its kubelet creates in this boot of it.
    #[must_use]
    pub fn node(&self, boot: u32, not_ready: &Value) -> Value {
        let mut node = json!({
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {"taints": self.taints},
            "status": {
                "conditions": [not_ready],
                "nodeInfo": {"bootID": self.boot_id(boot)},
                "allocatable": {"pods": "110"},
            },
        });
        if !self.provider_id.is_empty() {
            node["spec"]["providerID"] = json!(self.provider_id);
        }
        node
    }

    /// What tells this boot of it from all others.
    #[must_use]
    pub fn boot_id(&self, boot: u32) -> String {
        format!("{}-boot-{boot}", self.name)
    }
}

/// So many machines, `n-0` and on, in the zones `a`, `b` and `c` by turns.
#[must_use]
pub fn machines(count: usize) -> Vec<Machine> {
    (0..count)
        .map(|number| {
            let zone = ["a", "b", "c"][number % 3];
            Machine::new(&format!("n-{number}")).zone(zone)
        })
        .collect()
}
