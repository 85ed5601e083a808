//! Laws of every plan, over small worlds whose few rules and taints interact often.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::api::{TaintEffect, TaintPolicy};
use crate::object::{Node, Taint};
use crate::rule::Ownership;
use crate::testing::{
    Builder, DaemonSetBuilder, NodeBuilder, RuleBuilder, World, at, daemon_set, node, pod, rule,
    world,
};

const RULES: [&str; 4] = ["r0", "r1", "r2", "r3"];
const KEYS: [&str; 2] = ["readiness.k8s.io/a", "readiness.k8s.io/b"];
const EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];
const CONDITIONS: [&str; 3] = ["X", "Y", "node.gardener.cloud/CriticalComponentsReady"];
const POOLS: [&str; 2] = ["blue", "green"];

/// Any rule, valid or invalid.
fn any_rule(name: &'static str) -> impl Strategy<Value = RuleBuilder> {
    let taint = (select(&KEYS[..]), select(&EFFECTS[..]));
    let waits_for = subsequence(&CONDITIONS[..], 1..=2);
    let flags = prop::array::uniform6(any::<bool>());
    (
        taint,
        waits_for,
        select(&POOLS[..]),
        0..3_i64,
        flags,
        0..10_u8,
    )
        .prop_map(
            move |((key, effect), waits_for, pool, created, flags, state)| {
                let [
                    bootstrap_only,
                    remove_only,
                    deleting,
                    dry_run,
                    in_pool,
                    valued,
                ] = flags;
                let mut rule = rule(name).created(at(created));
                rule = if valued {
                    rule.spec(&format!(
                        "taint: {{key: {key}, value: v, effect: {effect}}}"
                    ))
                } else {
                    rule.taint(key, effect)
                };
                if bootstrap_only {
                    rule = rule.bootstrap_only();
                }
                if remove_only {
                    rule = rule.remove_only();
                }
                if in_pool {
                    rule = rule.selects("pool", pool);
                }
                if dry_run && state > 5 {
                    rule = rule.dry_run();
                }
                if deleting {
                    rule = rule.deleting();
                }
                match state {
                    0 => rule.without_finalizer(),
                    1 => rule, // waits for nothing, so it is rejected
                    _ => waits_for.into_iter().fold(rule, RuleBuilder::waits_for),
                }
            },
        )
}

fn any_rules() -> impl Strategy<Value = Vec<RuleBuilder>> {
    RULES
        .map(any_rule)
        .prop_map(Vec::from)
        .prop_flat_map(|rules| subsequence(rules, 0..=4))
        .prop_shuffle()
}

/// A taint of a rule or someone else, as key, value and effect.
fn any_taints() -> impl Strategy<Value = Vec<(&'static str, &'static str, &'static str)>> {
    let ours = KEYS
        .into_iter()
        .flat_map(|key| EFFECTS.map(|effect| (key, "", effect)));
    let theirs = [
        ("readiness.k8s.io/c", "x", "NoSchedule"),
        ("readiness.k8s.io/a", "x", "PreferNoSchedule"),
        ("example.com/gpu", "yes", "NoExecute"),
        ("node.kubernetes.io/not-ready", "", "NoSchedule"),
    ];
    subsequence(ours.chain(theirs).collect::<Vec<_>>(), 0..=8).prop_shuffle()
}

/// What earlier rules and earlier runs recorded on the node.
fn any_annotations() -> impl Strategy<Value = Vec<Note>> {
    let rule = || select(vec!["r0", "r1", "r2", "r3", "gone"]);
    let note = prop_oneof![
        (rule(), select(&KEYS[..]), select(&EFFECTS[..]))
            .prop_map(|(rule, key, effect)| Note::Owned(rule, key, effect)),
        (rule(), any::<bool>()).prop_map(|(rule, by_uid)| Note::Completed(rule, by_uid)),
        rule().prop_map(Note::Unreadable),
    ];
    prop::collection::vec(note, 0..4)
}

#[derive(Debug, Clone)]
enum Note {
    Owned(&'static str, &'static str, &'static str),
    Completed(&'static str, bool),
    Unreadable(&'static str),
}

impl Note {
    fn on(&self, node: NodeBuilder) -> NodeBuilder {
        match self {
            Self::Owned(rule, key, effect) => node.owned_by(rule, key, effect),
            Self::Completed(rule, true) => node.completed(&format!("{rule}-uid")),
            Self::Completed(rule, false) => node.completed(rule),
            Self::Unreadable(rule) => {
                node.annotation(&format!("nodegate.dev/taint-added-by-{rule}-uid"), "?")
            }
        }
    }
}

fn any_node(
    statuses: impl Strategy<Value = [Option<&'static str>; 2]>,
) -> impl Strategy<Value = NodeBuilder> {
    let pool = select(&POOLS[..]);
    (any_taints(), any_annotations(), statuses, pool).prop_map(|(taints, notes, statuses, pool)| {
        let mut node = node("worker-1").label("pool", pool);
        for (key, value, effect) in taints {
            node = node.taint_with(key, value, effect);
        }
        for (kind, status) in CONDITIONS.into_iter().zip(statuses) {
            if let Some(status) = status {
                node = node.condition(kind, status);
            }
        }
        notes.iter().fold(node, |node, note| note.on(node))
    })
}

/// A critical `DaemonSet` that tolerates some of the taints.
fn any_daemon_set(name: &'static str) -> impl Strategy<Value = DaemonSetBuilder> {
    let keys = [KEYS[0], KEYS[1], "readiness.k8s.io/c", "example.com/gpu"];
    subsequence(keys.to_vec(), 0..=4).prop_map(move |keys| {
        keys.into_iter().fold(
            daemon_set(&format!("kube-system/{name}")).critical(),
            |daemon_set, key| daemon_set.toleration(&format!("{{key: {key}, operator: Exists}}")),
        )
    })
}

/// A world without rules, and rules for it. `ready` says which `DaemonSet`s have a Ready pod.
fn world_with(
    node: impl Strategy<Value = NodeBuilder>,
    ready: impl Strategy<Value = [bool; 2]>,
) -> impl Strategy<Value = (World, Vec<RuleBuilder>)> {
    let daemon_sets = ["cni", "csi"].map(any_daemon_set);
    (node, daemon_sets, ready, any_rules()).prop_map(|(node, daemon_sets, ready, rules)| {
        let mut world = world(&node);
        for (daemon_set, ready) in daemon_sets.iter().zip(ready) {
            world = world.daemon_set(daemon_set);
            if ready {
                let name = format!("{}-1", daemon_set.build().key);
                world = world.pod(&pod(&name).of(daemon_set).ready());
            }
        }
        (world, rules)
    })
}

pub(super) fn any_world() -> impl Strategy<Value = (World, Vec<RuleBuilder>)> {
    let status = select(vec![None, Some("True"), Some("False")]);
    let node = any_node(prop::array::uniform2(status));
    world_with(node, prop::array::uniform2(any::<bool>()))
}

/// A world in which every condition has the required status.
fn met_world() -> impl Strategy<Value = (World, Vec<RuleBuilder>)> {
    world_with(any_node(Just([Some("True"); 2])), Just([true; 2]))
}

/// Carries plans out until nothing is left to write.
fn settled(mut world: World) -> World {
    for _ in 0..10 {
        if world.plan().taints.is_empty() {
            return world;
        }
        world = world.carried_out();
    }
    panic!("plans never settle");
}

/// Key and effect of the taints that a rule here claims, or that an annotation says we added.
fn known_taints(world: &World) -> BTreeSet<(String, String)> {
    let claimed = world.selecting_rules().filter_map(|rule| rule.active());
    let owned = Ownership::all(&world.node);
    let labels = &world.node.labels;
    let left_behind = world
        .rules()
        .iter()
        .filter_map(|rule| rule.left_behind(labels));
    let left_behind =
        left_behind.map(|reach| (reach.key.clone(), reach.effect.as_str().to_owned()));
    claimed
        .map(|spec| (spec.taint.key.clone(), spec.taint.effect.clone()))
        .chain(owned.map(|owner| {
            (
                owner.taint_key.to_owned(),
                owner.taint_effect.as_str().to_owned(),
            )
        }))
        .chain(left_behind)
        .collect()
}

fn taints_besides<'a>(known: &BTreeSet<(String, String)>, node: &'a Node) -> Vec<&'a Taint> {
    node.taints
        .iter()
        .filter(|taint| !known.contains(&(taint.key.clone(), taint.effect.clone())))
        .collect()
}

/// Key and effect of the taints that a rule governs here.
fn governed(world: &World) -> BTreeSet<(String, TaintEffect)> {
    world
        .selecting_rules()
        .filter_map(|rule| rule.live())
        .map(|spec| (spec.taint.key.clone(), spec.effect))
        .collect()
}

proptest! {
    #[test]
    fn a_plan_that_is_carried_out_leaves_nothing_to_do((world, rules) in any_world()) {
        let world = world.with_rules(&rules).carried_out();
        let plan = world.plan();
        prop_assert!(plan.taints.is_empty(), "{:?}", plan.taints);
        prop_assert!(plan.conditions.is_empty());
    }

    #[test]
    fn taints_of_others_are_left_as_they_are((world, rules) in any_world()) {
        let world = world.with_rules(&rules);
        let known = known_taints(&world);
        let after = world.carried_out();
        prop_assert_eq!(taints_besides(&known, &world.node), taints_besides(&known, &after.node));
    }

    #[test]
    fn a_taint_that_stays_keeps_its_value_and_place((world, rules) in any_world()) {
        let world = world.with_rules(&rules);
        let after = world.carried_out().node;
        let kept: Vec<_> = world.node.taints.iter().filter(|taint| after.taints.contains(taint)).collect();
        prop_assert_eq!(&after.taints.iter().take(kept.len()).collect::<Vec<_>>(), &kept);
        for taint in &after.taints[kept.len()..] {
            let is_same = |old: &&Taint| old.key == taint.key && old.effect == taint.effect;
            prop_assert_eq!(world.node.taints.iter().find(is_same), None);
        }
    }

    #[test]
    fn the_order_in_which_rules_are_listed_does_not_matter(
        ((world, rules), shuffled) in any_world().prop_flat_map(|(world, rules)| {
            (Just((world, rules.clone())), Just(rules).prop_shuffle())
        }),
    ) {
        let shuffled = world.clone().with_rules(&shuffled);
        let world = world.with_rules(&rules);
        prop_assert_eq!(world.plan(), shuffled.plan());
    }

    #[test]
    fn a_node_has_one_taint_of_a_key_and_effect((world, rules) in any_world()) {
        let after = settled(world.with_rules(&rules)).node;
        let distinct: BTreeSet<_> = after.taints.iter().map(|taint| (&taint.key, &taint.effect)).collect();
        prop_assert_eq!(distinct.len(), after.taints.len());
    }

    #[test]
    fn a_deleted_rule_leaves_no_annotation(
        (world, mut rules) in any_world(),
        deleted in 0..RULES.len(),
    ) {
        let world = settled(world.with_rules(&rules));
        if let Some(rule) = rules.get_mut(deleted) {
            *rule = rule.clone().deleting();
        }
        let world = settled(world.with_rules(&rules));
        for rule in world.rules().iter().filter(|rule| rule.deleting) {
            let ends = [format!("-{}", rule.uid), format!("-{}", rule.name)];
            let is_of_rule = |key: &&String| ends.iter().any(|end| key.ends_with(end));
            let annotations = world.node.annotations.iter().flatten();
            prop_assert_eq!(annotations.map(|(key, _)| key).find(is_of_rule), None);
        }
    }

    #[test]
    fn a_deleted_rule_takes_along_the_taint_that_it_alone_governs(
        (world, _) in any_world(),
        rule in any_rule("r0"),
    ) {
        let world = settled(world.with_rules(std::slice::from_ref(&rule)));
        let governed = governed(&world);
        let world = settled(world.with_rules(&[rule.deleting()]));
        let spec = world.rules()[0].spec.as_ref();
        if spec.is_ok_and(|spec| spec.ours.taint_policy == TaintPolicy::AddAndRemove) {
            for (key, effect) in governed {
                prop_assert_eq!(world.node.taint(&key, effect), None);
            }
        }
    }

    #[test]
    fn no_governed_taint_remains_once_all_conditions_are_met((world, rules) in met_world()) {
        let world = world.with_rules(&rules);
        let after = world.carried_out().node;
        for (key, effect) in governed(&world) {
            prop_assert_eq!(after.taint(&key, effect), None);
        }
    }
}
