//! The rules' manifest, the nodes, and the names that the story uses.

use nodegate_testbed::fixtures::{NodeBuilder, node};

pub(super) const RULES: &str = include_str!("rules.yaml");

/// The rule with a limit.
pub(super) const LIMITED: &str = "limited";

/// The rule without a limit.
pub(super) const UNLIMITED: &str = "unlimited";

/// The prefix of the rules' taint keys; the rule's name follows.
pub(super) const TAINT_PREFIX: &str = "readiness.k8s.io/";

/// How many nodes per second and zone the rule with the limit may close.
pub(super) const RATE: f64 = 0.5;

/// The condition of both rules.
pub(super) const CONDITION: &str = "example.com/NetworkHealthy";

/// The label of a node's zone.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// The zones.
pub(super) const ZONES: [&str; 3] = ["a", "b", "c"];

#[must_use]
pub(super) fn name(zone: &str, number: usize) -> String {
    format!("node-{zone}-{number:02}")
}

/// A healthy node of a zone.
pub(super) fn healthy_node(zone: &str, number: usize) -> NodeBuilder {
    node(&name(zone, number))
        .label(ZONE, zone)
        .condition(CONDITION, "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_differ_in_name_taint_and_limit_alone() {
        let rules: Vec<&str> = RULES.split("---\n").collect();
        let [limited, unlimited] = rules[..] else {
            panic!("{} rules", rules.len())
        };
        let limit = limited
            .lines()
            .find(|line| line.contains("disruption: "))
            .map(|line| format!("{line}\n"));
        let limit = limit.unwrap_or_default();
        assert!(
            limit.contains(&format!("{{evictionRate: {RATE}}}")),
            "{limit}"
        );
        let alike = limited.replace(&limit, "").replace(LIMITED, UNLIMITED);
        assert_eq!(alike, unlimited);
        let taint = format!("{TAINT_PREFIX}{LIMITED},");
        assert!(limited.contains(&taint) && limited.contains(CONDITION));
    }
}
