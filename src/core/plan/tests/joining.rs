//! Which nodes a continuous rule may gate at once, and which are protected by grace period and guard because they may run
//! workload.

use serde_json::json;

use super::{NETWORK, gate, gated_by, met, unmet, writes};
use crate::plan::{Decision, Standing, WaitReason};
use crate::testing::{Builder, GATE, NodeBuilder, RuleBuilder, World, at, rule, world};

fn careful() -> RuleBuilder {
    gate("r").nodegate("{gracePeriod: 10m, disruption: {}}")
}

fn is_joining(world: &World) -> bool {
    world.plan().outcomes[0].joining()
}

fn waits_until(world: &World, seconds: i64) -> bool {
    let plan = world.plan();
    let Standing::Governs(decision) = plan.outcomes[0].standing else {
        panic!("there is one rule");
    };
    decision == Decision::Wait(WaitReason::Grace { until: at(seconds) })
}

#[test]
fn a_node_joins_under_a_rule_that_was_in_force_and_saw_it_promptly() {
    let new = || world(&unmet()).joined(at(100));
    for (name, world, expected) in vec![
        ("came under the rule", new().rule(&careful()), true),
        (
            "was there before this process",
            world(&unmet()).rule(&careful()),
            false,
        ),
        (
            "came just before the rule",
            new()
                .rule_in_force_since(&careful().created(at(1)), at(102))
                .now(at(102)),
            false,
        ),
        (
            "came after the rule and was seen first",
            new().rule_in_force_since(&careful(), at(102)).now(at(102)),
            true,
        ),
        (
            "came long before the rule went live",
            new().rule_in_force_since(&careful(), at(200)).now(at(200)),
            false,
        ),
        (
            "evaluated too late: something may run by then",
            new().rule(&careful()).now(at(106)),
            false,
        ),
        ("met", world(&met()).joined(at(100)).rule(&careful()), false),
        (
            "a rule that only removes is not in force",
            new().rule(&careful().remove_only()),
            false,
        ),
        (
            "a dry run is not in force",
            new().rule(&careful().dry_run()),
            false,
        ),
        (
            "registered with the taint, before any rule was there",
            world(&unmet().taint(GATE, "NoSchedule"))
                .joined(at(100))
                .rule_in_force_since(&careful().created(at(101)), at(101))
                .now(at(101)),
            true,
        ),
        (
            "created with the taint in the rule's name",
            world(&joining_by_annotation()).rule(&careful()),
            true,
        ),
        (
            "gated by another controller, who knows when",
            world(&unmet().taint(GATE, "NoSchedule")).rule(&careful()),
            false,
        ),
        (
            "gated when it had been released",
            world(&gated_by(unmet(), "r")).rule(&careful()),
            false,
        ),
    ] {
        assert_eq!(is_joining(&world), expected, "{name}");
    }
}

#[test]
fn a_node_is_in_use_unless_it_has_just_joined_under_the_rule() {
    let starting = || gate("r").bootstrap_only();
    let in_use = |world: &World| world.plan().outcomes[0].in_use;
    let late = world(&unmet()).joined(at(100)).rule(&careful());
    assert!(!in_use(&late.clone().now(at(120))), "evaluated late");
    assert!(in_use(&late.now(at(121))));
    let joined = || world(&unmet()).joined(at(100));
    for (name, world, expected) in [
        ("just joined", joined().rule(&starting()), false),
        ("long there", joined().rule(&starting()).now(at(121)), true),
        ("not seen to join", world(&unmet()).rule(&starting()), true),
        (
            "older than the rule",
            joined()
                .rule_in_force_since(&starting().created(at(110)), at(110))
                .now(at(110)),
            true,
        ),
    ] {
        assert_eq!(in_use(&world), expected, "{name}");
    }
}

#[test]
fn a_node_that_has_joined_goes_on_joining_until_it_is_released() {
    let came = world(&unmet()).rule(&careful()).joined(at(100));
    let write_fails = came.clone().evaluated(at(100)).now(at(300));
    assert!(is_joining(&write_fails), "however long it takes to write");
    let was_met = came
        .clone()
        .evaluated(at(100))
        .sees(&met(), at(110))
        .evaluated(at(110))
        .sees(&unmet(), at(120))
        .now(at(120));
    assert!(!is_joining(&was_met), "it was released in between");
    let came_late = came.clone().now(at(106)).evaluated(at(106)).now(at(107));
    assert!(!is_joining(&came_late), "it was evaluated too late");
    let gated = came.carried_out().evaluated(at(101));
    assert!(is_joining(&gated));
    let restarted = gated.clone().restarted(&joining_by_annotation(), at(200));
    assert!(is_joining(&restarted), "it is on record");
    let removed_by_hand = gated.sees(&unmet(), at(210)).now(at(210));
    assert!(!is_joining(&removed_by_hand), "somebody has released it");
    let later = removed_by_hand.evaluated(at(210)).now(at(211));
    assert!(!is_joining(&later), "and it stays released");
}

#[test]
fn a_node_that_another_rule_left_released_is_not_joining_when_that_rule_goes() {
    for (is_left_released, name) in [(true, "left released"), (false, "held")] {
        let waits_for = if is_left_released { "Ready" } else { NETWORK };
        let earlier = rule("earlier").waits_for(waits_for).created(at(0));
        let node = unmet().condition("Ready", "True");
        let came = world(&node).joined(at(100)).rule(&earlier);
        let both = came.rule(&careful().created(at(50)));
        let both = both.carried_out().evaluated(at(101));
        let alone = both.with_rules(&[careful().created(at(50))]).now(at(160));
        assert_eq!(is_joining(&alone), !is_left_released, "{name}");
        assert_eq!(waits_until(&alone, 701), is_left_released, "{name}");
    }
}

fn joining_by_annotation() -> NodeBuilder {
    let value = format!(
        r#"{{"rule-name":"r","taint-key":"{GATE}","taint-effect":"NoSchedule","joining":true}}"#
    );
    unmet()
        .taint(GATE, "NoSchedule")
        .annotation("nodegate.dev/taint-added-by-r-uid", &value)
}

#[test]
fn nodes_that_are_older_than_the_rule_get_the_whole_grace_period() {
    let old = || {
        let reported = json!({ "type": NETWORK, "status": "False", "lastTransitionTime": at(0) });
        unmet().condition_with(reported)
    };
    let created_now = world(&old())
        .evaluated(at(3600))
        .rule_in_force_since(&careful().created(at(3600)), at(3600))
        .now(at(3600));
    assert!(waits_until(&created_now, 4200));
    let dry_run = world(&old()).rule(&careful().dry_run()).evaluated(at(1000));
    let live = dry_run
        .with_rules(&[])
        .rule_in_force_since(&careful(), at(3600))
        .now(at(3601));
    assert!(waits_until(&live, 4200), "a dry run that goes live");
    let relabelled = world(&old())
        .evaluated(at(3600))
        .rule(&careful())
        .now(at(3600));
    assert!(
        waits_until(&relabelled, 4200),
        "a node that is relabelled into the rule"
    );
    let restarted = world(&old()).rule(&careful()).now(at(300));
    assert!(
        waits_until(&restarted, 600),
        "a restart neither adds nor takes time"
    );
    let young_rule = world(&old()).rule(&careful().created(at(200))).now(at(300));
    assert!(
        waits_until(&young_rule, 800),
        "nor after a restart does anything from before the rule count"
    );
    assert_eq!(writes(&young_rule), [""; 0]);
}
