//! Machines, as their kubelets register them.

use serde_json::{Value, json};

use crate::sim::time::Time;

pub const ZONE: &str = "topology.kubernetes.io/zone";

#[derive(Debug, Clone)]
pub struct Machine {
    /// The name of the machine and its node.
    pub name: String,
    /// The labels that the node registers with.
    pub labels: Value,
    /// The taints that the node registers with.
    pub taints: Vec<Value>,
    pub boots: Time,
    /// The time from boot until the kubelet updates the pods that are bound to its node.
    pub pods_after: Time,
}

impl Machine {
    /// A Linux machine that boots at once.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            labels: json!({"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}),
            taints: Vec::new(),
            boots: Time::ZERO,
            pods_after: Time::ZERO,
        }
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels[key] = json!(value);
        self
    }

    pub fn zone(self, zone: &str) -> Self {
        self.label(ZONE, zone)
    }

    /// Adds a taint that the node registers with (`--register-with-taints`).
    pub fn taint(mut self, key: &str, effect: &str) -> Self {
        self.taints.push(json!({"key": key, "effect": effect}));
        self
    }

    pub fn boots(mut self, boots: Time) -> Self {
        self.boots = boots;
        self
    }

    /// Sets the time from boot until its kubelet updates its pods: until then they keep their old status.
    pub fn pods_after(mut self, pods_after: Time) -> Self {
        self.pods_after = pods_after;
        self
    }

    /// The Node that its kubelet creates on this boot.
    pub fn node(&self, boot: u32, not_ready: &Value) -> Value {
        json!({
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {"taints": self.taints},
            "status": {
                "conditions": [not_ready],
                "nodeInfo": {"bootID": self.boot_id(boot)},
                "allocatable": {"pods": "110"},
            },
        })
    }

    pub fn boot_id(&self, boot: u32) -> String {
        format!("{}-boot-{boot}", self.name)
    }
}

/// This many machines, `n-0` and on, spread over the zones `a`, `b` and `c`.
pub fn machines(count: usize) -> Vec<Machine> {
    (0..count)
        .map(|number| {
            let zone = ["a", "b", "c"][number % 3];
            Machine::new(&format!("n-{number}")).zone(zone)
        })
        .collect()
}
