//! The rules' manifest, and the names in it that the demo uses.

pub(super) const RULES: &str = include_str!("rules.yaml");

/// The prefix of their taint keys; the rule's name follows.
pub(super) const GATE: &str = "readiness.k8s.io/";

/// The rule that closes the node until it has joined, and until it has recovered from a reboot.
pub(super) const JOINING: &str = "joining";

/// The rule that closes it while its network is down.
pub(super) const NETWORK: &str = "network";

/// The prefixes of the critical `DaemonSet`s' pods.
pub(super) const CNI: &str = "cni";
pub(super) const CSI: &str = "csi";

/// The driver that the CSI pod waits for.
pub(super) const DRIVER: &str = "csi.example.com";

/// The workload, and its number of pods.
pub(super) const WORKLOAD: (&str, u32) = ("shop", 2);

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
