//! Several rules with one taint, and what happens when one of them goes.

use super::{assert_writes, gate, gated_by, met, unmet};
use crate::plan::Memory;
use crate::rule::Rule;
use crate::testing::{Builder, at, rule, world};

const OTHER: &str = "readiness.k8s.io/other";

#[test]
fn an_older_rule_that_comes_to_govern_takes_the_taint_over() {
    let first = gate("first");
    let second = gate("second").created(at(1));
    assert_writes(
        "unmet",
        &gated_by(unmet(), "second"),
        &[first, second],
        &["+taint-added-by-first-uid", "-taint-added-by-second-uid"],
    );
}

#[test]
fn a_change_is_the_rules_that_makes_it() {
    let others = rule("other").waits_for("Other").taint(OTHER, "NoSchedule");
    let world = world(&gated_by(met(), "r")).with_rules(&[gate("r"), others]);
    let plan = world.plan();
    // Ordered by name.
    let of_rules = |holds: &dyn Fn(&Rule) -> bool| {
        let rules = world.rules().iter();
        rules.map(|rule| holds(rule)).collect::<Vec<_>>()
    };
    assert_eq!(of_rules(&|rule| plan.releases_for(rule)), [false, true]);
    let writes = |rule: &Rule| plan.writes_for(rule).next().is_some();
    assert_eq!(of_rules(&writes), [true, true]);
    let [removed, added] = &world.write().changes[..] else {
        panic!("{:?}", plan.taints);
    };
    for (change, of_it, of_other) in [(removed, true, false), (added, false, true)] {
        assert_eq!(removed.taint.to_string() == change.taint.to_string(), of_it);
        assert_eq!(
            added.taint.to_string() == change.taint.to_string(),
            of_other
        );
    }
}

#[test]
fn what_is_remembered_of_a_rule_is_its_own() {
    let others = rule("other").waits_for("Other").taint(OTHER, "NoSchedule");
    let met_once = world(&met()).with_rules(&[gate("r"), others]);
    let unmet = met_once.evaluated(at(5)).sees(&unmet(), at(10));
    let then = Memory::after(&unmet.plan().outcomes, &[]).unwrap();
    let was_met: Vec<_> = then
        .iter()
        .map(|memory| (&*memory.rule, memory.was_met))
        .collect();
    assert_eq!(was_met, [("r-uid", true), ("other-uid", false)]);
}
