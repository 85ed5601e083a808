//! Which rules precede another one, whether or not a node exists yet.

use super::gate;
use crate::testing::{Builder, GATE, RuleBuilder, at, node, world};

#[test]
fn a_rule_says_who_comes_before_it_even_where_no_node_is() {
    let first = || gate("a-first").selects("pool", "a");
    let all = || gate("rule");
    #[rustfmt::skip]
    let cases = [
        ("overlapping selectors", first(), all(), &["a-first"][..]),
        ("the same pool", first(), all().selects("pool", "a"), &["a-first"]),
        ("another pool", first(), all().selects("pool", "b"), &[]),
        ("another label", first(), all().selects("zone", "a"), &["a-first"]),
        ("another effect", first(), all().taint(GATE, "NoExecute"), &[]),
        ("another key", first(), all().taint("readiness.k8s.io/other", "NoSchedule"), &[]),
        ("a later rule", first().created(at(60)), all(), &[]),
        ("a dry run before it", first().dry_run(), all(), &[]),
        ("itself a dry run", first(), all().dry_run(), &[]),
        ("one that is going", first().deleting(), all(), &[]),
        ("one that cannot be used", gate("a-first").spec("conditions: []"), all(), &[]),
    ];
    for (what, other, rule, expected) in cases {
        assert_eq!(governors(&[other, rule]), expected, "{what}");
    }
}

/// The governors of the rule of this name.
fn governors(rules: &[RuleBuilder]) -> Vec<String> {
    let world = world(&node("elsewhere")).with_rules(rules);
    let rules = world.cluster().rules;
    let rule = rules.rules().iter().find(|rule| &*rule.name == "rule");
    let governors = rules.governors_of(rule.expect("the rule is there"));
    governors.iter().map(ToString::to_string).collect()
}
