//! Every scenario without faults ends as it should, and breaks no law.

use std::collections::BTreeSet;

use super::{Base, bases};
use crate::sim::run::{Outcome, run};
use crate::sim::trace::Trace;

/// How many seeds each scenario runs with.
const SEEDS: u64 = 3;

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
            let outcome = run(&base.scenario, seed, &[], false);
            if let Err(what) = wrong(&base, &outcome) {
                let (name, trace) = (base.scenario.name(), Trace(&outcome));
                all.push(format!("{name} with seed {seed}: {what}\n{trace}"));
                break;
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

#[test]
fn every_scenario_has_a_name_of_its_own() {
    let bases = bases();
    let names: BTreeSet<_> = bases.iter().map(|base| base.scenario.name()).collect();
    assert_eq!(names.len(), bases.len());
}
