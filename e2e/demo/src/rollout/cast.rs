//! The manifests of the demo, and the names in them that it uses.

/// The names of a rule.
#[derive(Debug)]
pub(super) struct Gate {
    pub rule: &'static str,
    pub taint: &'static str,
    pub condition: &'static str,
}

/// The rule that releases a node once, after it has joined.
pub(super) const BOOTSTRAP: Gate = Gate {
    rule: "critical-components",
    taint: "node.gardener.cloud/critical-components-not-ready",
    condition: "node.gardener.cloud/CriticalComponentsReady",
};

/// The rule that gates a released node again.
pub(super) const CONTINUOUS: Gate = Gate {
    rule: "critical-pods",
    taint: "readiness.k8s.io/critical-pods",
    condition: "node.gardener.cloud/CriticalPodsReady",
};

/// The rules, the one with the most conditions first.
pub(super) const GATES: [Gate; 2] = [BOOTSTRAP, CONTINUOUS];

pub(super) const RULES: &str = include_str!("rules.yaml");

pub(super) const DAEMON_SETS: &str = include_str!("daemon_sets.yaml");

/// The namespace of the critical `DaemonSet`s.
pub(super) const NAMESPACE: &str = "kube-system";

/// The label that names a pod's app.
pub(super) const APP: &str = "app";

/// The app of the CNI's pods.
pub(super) const CNI: &str = "cni";

/// The app of the CSI driver's pods.
pub(super) const CSI: &str = "csi-driver";

/// The driver that the CSI driver's pods wait for.
pub(super) const DRIVER: &str = "csi.example.com";

/// The label of the workloads' pods, and its value.
pub(super) const WORKLOAD: (&str, &str) = ("role", "workload");

/// The workload that waits for the first nodes, and the one that arrives while a node is held.
pub(super) const WORKLOADS: [&str; 2] = ["shop", "search"];

/// The number of pods of each workload per node.
pub(super) const PODS_PER_NODE: usize = 2;

/// The manifest of a workload for this many nodes.
pub(super) fn workload(name: &str, nodes: usize) -> String {
    include_str!("workload.yaml")
        .replace("NAME", name)
        .replace("REPLICAS", &(nodes * PODS_PER_NODE).to_string())
        .replace("DOMAINS", &(nodes + 1).to_string())
}
