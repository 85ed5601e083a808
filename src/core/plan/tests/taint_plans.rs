//! A plan split by taint: nothing is lost or written twice, and related writes stay together.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::laws::any_world;
use crate::object::{Node, Taint};

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
            let is_it = |it: &&Taint| it.to_string() == *id;
            node.taints.iter().find(is_it).cloned()
        };
        prop_assert_eq!(taint(&now.node), taint(before));
        for key in refused.annotations.keys() {
            prop_assert_eq!(now.node.annotation(key), before.annotation(key));
        }
    }
}
