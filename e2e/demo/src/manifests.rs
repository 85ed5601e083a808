//! The manifests of the demo, and what is in them.

/// How many nodes join.
pub(crate) const NODES: usize = 6;

pub(crate) const RULES: &str = include_str!("manifests/rules.yaml");

/// The rules' taints: nodes register with the first, and the other gates them again.
pub(crate) const TAINTS: [&str; 2] = [
    "node.gardener.cloud/critical-components-not-ready",
    "readiness.k8s.io/critical-pods",
];

pub(crate) const DAEMON_SETS: &str = include_str!("manifests/daemon_sets.yaml");

/// The apps of the `DaemonSet`s' pods.
pub(crate) const CNI: &str = "cni";
pub(crate) const CSI: &str = "csi-driver";

/// A workload, with `NAME` for its app.
pub(crate) const WORKLOAD: &str = include_str!("manifests/workload.yaml");

/// The apps of the workload that waits for the first nodes, and of the one that comes while a node is held.
pub(crate) const WORKLOADS: [&str; 2] = ["shop", "search"];

/// How many pods each workload has on each node.
pub(crate) const PODS_PER_NODE: usize = 2;

/// How many pods each workload has.
pub(crate) const PODS: usize = NODES * PODS_PER_NODE;
