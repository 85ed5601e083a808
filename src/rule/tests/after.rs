//! Which rules come after each other in a circle, and in which order the others are decided.

use super::gate;
use crate::rule::AfterUnknown;
use crate::testing::{Builder, RuleBuilder, World, node, world};

/// Rules of these names, each after those named beside it.
fn rules(rules: &[(&str, &str)]) -> Vec<RuleBuilder> {
    let of = |(name, after): &(&str, &str)| gate(name).spec(&format!("after: [{after}]"));
    rules.iter().map(of).collect()
}

fn of(rules: &[RuleBuilder]) -> World {
    world(&node("n")).with_rules(rules)
}

/// The rejected rules, each with those of its circle.
fn circles(rules: &[RuleBuilder]) -> Vec<String> {
    let world = of(rules);
    let rejected = world.rules().iter().filter_map(|rule| {
        let why = rule.spec.as_ref().err()?.to_string();
        let (_, circle) = why.rsplit_once(": ")?;
        Some(format!("{}: {circle}", rule.name))
    });
    rejected.collect()
}

#[test]
fn the_rules_of_a_circle_are_rejected_and_no_others() {
    for (what, graph, expected) in [
        ("none", &[("a", ""), ("b", "a"), ("c", "a, b")][..], &[][..]),
        (
            "a diamond",
            &[("a", ""), ("b", "a"), ("c", "a"), ("d", "b, c")],
            &[],
        ),
        ("itself", &[("a", "a"), ("b", "a")], &["a: 'a'"]),
        (
            "two",
            &[("a", "b"), ("b", "a")],
            &["a: 'a', 'b'", "b: 'b', 'a'"],
        ),
        (
            "three, with one before and one after",
            &[("a", "c, z"), ("b", "a"), ("c", "b"), ("d", "c"), ("z", "")],
            &["a: 'a', 'c', 'b'", "b: 'b', 'a', 'c'", "c: 'c', 'b', 'a'"],
        ),
        (
            "one between two circles",
            &[("a", "a"), ("b", "a"), ("c", "b, c")],
            &["a: 'a'", "c: 'c'"],
        ),
        ("one that is not there", &[("a", "x"), ("b", "a")], &[]),
    ] {
        assert_eq!(circles(&rules(graph)), expected, "{what}");
    }
}

#[test]
fn a_rule_that_is_going_or_cannot_be_used_closes_no_circle() {
    let with = |b: RuleBuilder| [gate("a").spec("after: [b]"), b.spec("after: [a]")];
    assert_eq!(circles(&with(gate("b"))).len(), 2);
    assert_eq!(circles(&with(gate("b").dry_run().suspended())).len(), 2);
    assert_eq!(circles(&with(gate("b").deleting())), [""; 0]);
    let unusable = of(&with(gate("b").spec("conditions: []")));
    assert!(unusable.rules()[0].spec.is_ok());
}

#[test]
fn a_rule_is_ranked_after_those_that_it_comes_after() {
    let world = of(&rules(&[
        ("a", "c"),
        ("b", "a, d"),
        ("c", ""),
        ("d", "gone"),
        ("e", "e"),
        ("f", "e"),
    ]));
    let set = world.cluster().rules;
    let ranks: Vec<_> = (0..6).map(|index| set.rank(index)).collect();
    assert_eq!(ranks, [1, 2, 0, 0, 0, 0]);
    assert_eq!(set.predecessors(1), [0, 3]);
    assert_eq!(
        set.predecessors(5),
        [0; 0],
        "it comes after one that is not accepted"
    );
}

#[test]
fn names_that_hold_nothing_up_are_told() {
    for (after, expected) in [
        ("a", None),
        ("x", Some("there is no rule 'x'")),
        ("a, x, z", Some("there is no rule 'x', 'z'")),
        ("e", Some("not accepted is rule 'e'")),
        (
            "e, x",
            Some("there is no rule 'x', and not accepted is rule 'e'"),
        ),
    ] {
        let world = of(&rules(&[("a", ""), ("e", "e"), ("f", after)]));
        let spec = world.rules()[2].spec.as_ref().unwrap();
        let told = AfterUnknown::of(spec, world.rules()).map(|unknown| unknown.to_string());
        let expected =
            expected.map(|it| format!("spec.after names rules that no node waits for: {it}"));
        assert_eq!(told, expected, "{after}");
    }
}
