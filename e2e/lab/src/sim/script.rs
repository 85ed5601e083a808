//! A schedule as a value: it can be run, and printed as a test.

use std::fmt;

use super::fault::Fault;
use super::law::Violation;
use super::laws;
use super::machine::{Start, engine};
use super::run::{Outcome, judged_run};
use super::scenario::Scenario;
use super::scenarios;

/// A schedule. It determines a run completely.
#[derive(Debug, Clone)]
pub struct Script {
    /// The scenario.
    pub scenario: Scenario,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The faults.
    pub faults: Vec<Fault>,
}

impl Script {
    /// Runs it to its end, or until a law is broken.
    #[must_use]
    pub fn run(&self, start: Start<'_>) -> Outcome {
        judged_run(
            &self.scenario,
            self.seed,
            &self.faults,
            start,
            laws::all(),
            false,
        )
    }

    /// Runs it with notes of all inputs and effects of the machines.
    #[must_use]
    pub fn trace(&self, start: Start<'_>) -> Outcome {
        judged_run(
            &self.scenario,
            self.seed,
            &self.faults,
            start,
            laws::all(),
            true,
        )
    }
}

/// Runs a schedule of the scenario of this name with the engine.
///
/// # Panics
/// When no such scenario exists, or a law is broken.
pub fn holds(scenario: &str, seed: u64, faults: &[Fault]) {
    let found = scenarios::all().into_iter().find(|it| it.name == scenario);
    let script = Script {
        scenario: found.unwrap_or_else(|| panic!("there is no scenario {scenario:?}")),
        seed,
        faults: faults.to_vec(),
    };
    if let Some(Violation { law, at, what }) = script.run(&engine).violation {
        panic!("{law}, after {at:?}: {what}\n{script}");
    }
}

/// Prints a test.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.scenario.name;
        let function: String = name
            .chars()
            .map(|letter| {
                if letter.is_alphanumeric() {
                    letter
                } else {
                    '_'
                }
            })
            .collect();
        writeln!(f, "#[test]")?;
        writeln!(f, "fn {function}_{}() {{", self.seed)?;
        writeln!(f, "    let faults = [")?;
        for fault in &self.faults {
            writeln!(f, "        {fault},")?;
        }
        writeln!(f, "    ];")?;
        writeln!(f, "    holds({name:?}, {}, &faults);", self.seed)?;
        write!(f, "}}")
    }
}
