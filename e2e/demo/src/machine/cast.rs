//! The rules' manifest, and the names in it that the demo uses.

pub const RULES: &str = include_str!("rules.yaml");

/// The prefix of their taint keys; the rule's name follows.
pub const GATE: &str = "readiness.k8s.io/";

/// The rule that closes the node until it has joined, and until it has recovered from a reboot.
pub const JOINING: &str = "joining";

/// The rule that closes it while its network is down.
pub const NETWORK: &str = "network";

/// The prefixes of the critical `DaemonSet`s' pods.
pub const CNI: &str = "cni";
pub const CSI: &str = "csi";

/// The driver that the CSI pod waits for.
pub const DRIVER: &str = "csi.example.com";

/// The workload, and its number of pods.
pub const WORKLOAD: (&str, u32) = ("shop", 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_say_what_the_demo_looks_for() {
        for rule in [JOINING, NETWORK] {
            assert!(RULES.contains(&format!("name: {rule}\n")), "{rule}");
            assert!(RULES.contains(&format!("key: {GATE}{rule},")), "{rule}");
        }
        assert!(RULES.contains(&format!("kube-system.{CNI},")));
    }
}
