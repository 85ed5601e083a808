//! Who takes part: the rules as they are applied, and the names in them that the demo looks for.

/// The rules.
pub const RULES: &str = include_str!("rules.yaml");

/// The keys of their taints begin so, and end with their names.
pub const GATE: &str = "readiness.k8s.io/";

/// The rule that closes the node until it has joined, and until it is back from a reboot.
pub const JOINING: &str = "joining";

/// The rule that closes it while its network is away.
pub const NETWORK: &str = "network";

/// The critical `DaemonSet`s, by the beginnings of their pods' names.
pub const CNI: &str = "cni";
/// See there.
pub const CSI: &str = "csi";

/// The driver that the CSI pod says it waits for.
pub const DRIVER: &str = "csi.example.com";

/// The workload, and how many pods it has.
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
