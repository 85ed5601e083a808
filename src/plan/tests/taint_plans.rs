//! A plan split by taint: nothing is lost or written twice, and related writes stay together.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::laws::any_world;
use super::{gate, met, unmet};
use crate::object::{Node, Taint};
use crate::testing::{Builder, World, world};

const OTHER: &str = "readiness.k8s.io/other";

/// Each part's taint, its number of changes, and its annotations.
fn summary(world: &World) -> Vec<(String, usize, Vec<String>)> {
    let parts = world.plan().taints.into_iter();
    parts
        .map(|part| {
            let taint = part.taint.map_or("-".to_owned(), |taint| taint.to_string());
            let annotations = part.annotations.into_keys();
            let short =
                annotations.map(|key| key.rsplit('/').next().unwrap_or_default().to_owned());
            (taint, part.changes.len(), short.collect())
        })
        .collect()
}

#[test]
fn annotations_stay_with_their_taint() {
    let gated = met()
        .taint("readiness.k8s.io/gate", "NoSchedule")
        .taint(OTHER, "NoExecute")
        .owned_by("r", "readiness.k8s.io/gate", "NoSchedule")
        .owned_by("other", OTHER, "NoExecute");
    let other = gate("other").taint(OTHER, "NoExecute").bootstrap_only();
    let world = world(&gated).with_rules(&[gate("r"), other]);
    #[rustfmt::skip]
    let expected = [
        ("readiness.k8s.io/gate:NoSchedule", vec!["taint-added-by-r-uid"]),
        ("readiness.k8s.io/other:NoExecute", vec!["taint-added-by-other-uid", "bootstrap-completed-other-uid"]),
    ];
    let expected = expected.map(|(taint, keys)| {
        let keys = keys.into_iter().map(str::to_owned).collect();
        (taint.to_owned(), 1, keys)
    });
    assert_eq!(summary(&world), expected);
}

#[test]
fn a_part_that_gates_relies_on_the_completion_that_it_has_not_seen() {
    let other = gate("other").taint(OTHER, "NoExecute").bootstrap_only();
    let world = world(&unmet()).with_rules(&[gate("r"), other]);
    let relied_on = |taint: &str| {
        let parts = world.plan().taints.into_iter();
        let found = parts.filter(|part| part.taint.as_ref().is_some_and(|it| it.key == taint));
        found.flat_map(|part| part.relied_on).collect::<Vec<_>>()
    };
    assert_eq!(relied_on(OTHER), world.write().relied_on);
    assert_eq!(relied_on(OTHER).len(), 2, "by UID and by name");
    assert_eq!(relied_on("readiness.k8s.io/gate").len(), 0);
}

#[test]
fn what_is_done_for_a_deleted_rule_stays_with_its_taint() {
    let gated = met()
        .taint("readiness.k8s.io/gate", "NoSchedule")
        .owned_by("r", "readiness.k8s.io/gate", "NoSchedule")
        .completed("r-uid")
        .completed("r");
    let world = world(&gated).rule(&gate("r").deleting());
    let owner = "taint-added-by-r-uid".to_owned();
    let completions = ["bootstrap-completed-r", "bootstrap-completed-r-uid"];
    let expected = [
        (
            "readiness.k8s.io/gate:NoSchedule".to_owned(),
            1,
            vec![owner],
        ),
        ("-".to_owned(), 0, completions.map(str::to_owned).to_vec()),
    ];
    assert_eq!(summary(&world), expected);
}

fn outcome(node: &Node) -> (Vec<Taint>, BTreeMap<&str, &str>) {
    let mut taints = node.taints.clone();
    taints.sort_by(|a, b| (&a.key, &a.effect).cmp(&(&b.key, &b.effect)));
    let annotations = node.annotations.iter().flatten();
    let annotations = annotations.map(|(key, value)| (&**key, &**value)).collect();
    (taints, annotations)
}

proptest! {
    #[test]
    fn nothing_is_written_twice((world, rules) in any_world()) {
        let world = world.with_rules(&rules);
        let parts = world.plan().taints;
        prop_assert!(parts.iter().all(|part| !part.is_empty()));
        let annotations = parts.iter().flat_map(|part| part.annotations.keys());
        let distinct: BTreeSet<_> = annotations.clone().collect();
        prop_assert_eq!(annotations.count(), distinct.len());
    }

    #[test]
    fn parts_carried_out_one_by_one_end_as_the_plan_does(
        (world, rules) in any_world(),
        last_first in any::<bool>(),
    ) {
        let world = world.with_rules(&rules);
        let whole = world.carried_out();
        let mut world = world;
        for _ in 0..16 {
            let mut parts = world.plan().taints;
            let part = if last_first { parts.pop() } else { parts.into_iter().next() };
            let Some(part) = part else { break };
            world = world.with_written(part);
        }
        prop_assert_eq!(outcome(&world.node), outcome(&whole.node));
    }

    #[test]
    fn a_part_that_cannot_be_carried_out_keeps_its_taint_and_annotations((world, rules) in any_world()) {
        let world = world.with_rules(&rules);
        let Some(refused) = world.plan().taints.into_iter().next() else { return Ok(()) };
        let before = &world.node;
        let mut now = world.clone();
        for _ in 0..16 {
            let other = now.plan().taints.into_iter().find(|part| part.taint != refused.taint);
            let Some(other) = other else { break };
            now = now.with_written(other);
        }
        let taint = |node: &Node| {
            let id = refused.taint.as_ref()?;
            let is_it = |it: &&Taint| it.key == id.key && it.effect == id.effect;
            node.taints.iter().find(is_it).cloned()
        };
        prop_assert_eq!(taint(&now.node), taint(before));
        for key in refused.annotations.keys() {
            prop_assert_eq!(now.node.annotation(key), before.annotation(key));
        }
    }
}
