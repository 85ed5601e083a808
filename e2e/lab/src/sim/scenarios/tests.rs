//! Every scenario without faults ends as it should, and breaks no law.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Base, bases};
use crate::Kind;
use crate::sim::actors::ask::{items, taints, text};
use crate::sim::cluster::{Change, Cluster};
use crate::sim::machine::engine;
use crate::sim::run::{Outcome, run};

/// How many seeds each scenario runs with.
const SEEDS: u64 = 3;

/// Each node's taints and conditions after each change.
fn story(cluster: &Cluster) -> String {
    let told = |change: &Change| {
        let of = |node: &Option<std::sync::Arc<serde_json::Value>>| {
            let node = node.as_ref()?;
            let taints = taints(node).iter().map(|taint| text(&taint["key"]));
            let conditions = items(&node["status"]["conditions"]).iter();
            let conditions = conditions.map(|it| format!("{} {}", it["type"], it["status"]));
            let conditions: Vec<_> = conditions.collect();
            Some(format!("{:?} {conditions:?}", taints.collect::<Vec<_>>()))
        };
        let after = of(&change.after);
        (of(&change.before) != after).then_some(after)
    };
    let mut story = String::new();
    let nodes = cluster.changes().iter();
    for change in nodes.filter(|change| change.key.kind == Kind::Node) {
        if let Some(after) = told(change) {
            let at = change.at.as_secs_f64();
            let (name, who) = (&change.key.name, change.who);
            let _ = writeln!(story, "{at:8.3} {name} {who:?}: {after:?}");
        }
    }
    story
}

/// Checks an outcome.
fn wrong(base: &Base, outcome: &Outcome) -> Result<(), String> {
    if let Some(violation) = &outcome.violation {
        return Err(format!("{violation:?}"));
    }
    if outcome.writes.iter().sum::<usize>() == 0 {
        return Err("nothing was written".into());
    }
    base.check(&outcome.cluster)
}

#[test]
fn every_scenario_ends_as_it_should_and_breaks_no_law() {
    let mut all = Vec::new();
    for base in bases() {
        for seed in 0..SEEDS {
            let outcome = run(&base.scenario, seed, &[], &engine);
            if let Err(what) = wrong(&base, &outcome) {
                let (name, story) = (base.scenario.name, story(&outcome.cluster));
                all.push(format!("{name} with seed {seed}: {what}\n{story}"));
                break;
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

#[test]
fn every_scenario_is_one_of_its_own_and_there_are_enough() {
    let bases = bases();
    let names: BTreeSet<_> = bases.iter().map(|base| base.scenario.name).collect();
    assert_eq!(names.len(), bases.len());
    assert!(names.len() >= 25, "{}", names.len());
}
