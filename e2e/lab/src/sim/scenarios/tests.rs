//! Every scenario, with the engine and without a fault, ends as it should, and breaks no law.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::bases;
use crate::Kind;
use crate::sim::actors::ask::{items, taints, text};
use crate::sim::cluster::{Change, Cluster};
use crate::sim::machine::engine;
use crate::sim::run::{Outcome, judged_run};
use crate::sim::{laws, scenarios::Base};

/// How many seeds each scenario is run with.
const SEEDS: u64 = 3;

fn run(base: &Base, seed: u64, judged: bool) -> Outcome {
    let laws = if judged { laws::all() } else { Vec::new() };
    judged_run(&base.scenario, seed, &[], &engine, laws, false)
}

/// Which taints and conditions each node had, from change to change.
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

/// What is wrong with the outcomes of all scenarios, as this says.
fn wrong(judged: bool, check: impl Fn(&Base, &Outcome) -> Result<(), String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for base in bases() {
        for seed in 0..SEEDS {
            let outcome = run(&base, seed, judged);
            if let Err(what) = check(&base, &outcome) {
                let story = story(&outcome.cluster);
                let name = base.scenario.name;
                wrong.push(format!("{name} with seed {seed}: {what}\n{story}"));
                break;
            }
        }
    }
    wrong
}

#[test]
fn every_scenario_ends_as_it_should() {
    let wrong = wrong(false, |base, outcome| {
        if let Some(violation) = &outcome.violation {
            return Err(format!("{violation:?}"));
        }
        if outcome.writes.iter().sum::<usize>() == 0 {
            return Err("nothing was written".into());
        }
        (base.ends)(&outcome.cluster)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_scenario_breaks_a_law() {
    let wrong = wrong(true, |_, outcome| {
        let violation = outcome.violation.as_ref();
        violation.map_or(Ok(()), |it| Err(format!("{it:?}")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_scenario_is_one_of_its_own_and_there_are_enough() {
    let bases = bases();
    let names: BTreeSet<_> = bases.iter().map(|base| base.scenario.name).collect();
    assert_eq!(names.len(), bases.len());
    assert!(names.len() >= 25, "{}", names.len());
}
