//! The manifests of the demo, and the names in them that it uses.

/// The names of a rule.
#[derive(Debug)]
pub struct Gate {
    pub rule: &'static str,
    pub taint: &'static str,
    pub condition: &'static str,
}

/// The rule that opens a node once, after it has joined.
pub const BOOTSTRAP: Gate = Gate {
    rule: "critical-components",
    taint: "node.gardener.cloud/critical-components-not-ready",
    condition: "node.gardener.cloud/CriticalComponentsReady",
};

/// The rule that closes an open node again.
pub const CONTINUOUS: Gate = Gate {
    rule: "critical-pods",
    taint: "readiness.k8s.io/critical-pods",
    condition: "node.gardener.cloud/CriticalPodsReady",
};

/// The rules, the one with the most conditions first.
pub const GATES: [Gate; 2] = [BOOTSTRAP, CONTINUOUS];

pub const RULES: &str = include_str!("rules.yaml");

pub const DAEMON_SETS: &str = include_str!("daemon_sets.yaml");

/// The namespace of the critical `DaemonSet`s.
pub const NAMESPACE: &str = "kube-system";

/// The label that names a pod's app.
pub const APP: &str = "app";

/// The app of the CNI's pods.
pub const CNI: &str = "cni";

/// The app of the CSI driver's pods.
pub const CSI: &str = "csi-driver";

/// The driver that the CSI driver's pods wait for.
pub const DRIVER: &str = "csi.example.com";

/// The label of the workloads' pods, and its value.
pub const WORKLOAD: (&str, &str) = ("role", "workload");

/// The workload that waits for the first nodes, and the one that arrives while a node is closed.
pub const WORKLOADS: [&str; 2] = ["shop", "search"];

/// The number of pods of each workload per node.
pub const PODS_PER_NODE: usize = 2;

/// The manifest of a workload for this many nodes.
#[must_use]
pub fn workload(name: &str, nodes: usize) -> String {
    include_str!("workload.yaml")
        .replace("NAME", name)
        .replace("REPLICAS", &(nodes * PODS_PER_NODE).to_string())
        .replace("DOMAINS", &(nodes + 1).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_say_what_the_demo_looks_for() {
        for gate in GATES {
            for text in [gate.rule, gate.taint, gate.condition] {
                assert!(RULES.contains(text), "{text}");
            }
            assert_eq!(DAEMON_SETS.matches(gate.taint).count(), 2, "{}", gate.taint);
        }
        for app in [CNI, CSI] {
            assert!(DAEMON_SETS.contains(&format!("{APP}: {app}\n")), "{app}");
        }
        assert!(DAEMON_SETS.contains(DRIVER) && DAEMON_SETS.contains(NAMESPACE));
        let workload = workload("shop", 3);
        let (label, value) = WORKLOAD;
        for text in ["replicas: 6", "minDomains: 4", &format!("{label}: {value}")] {
            assert!(workload.contains(text), "{text}");
        }
        assert!(workload.contains(&format!("maxSkew: {PODS_PER_NODE}")));
    }
}
