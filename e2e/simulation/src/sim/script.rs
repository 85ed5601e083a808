//! A schedule as a value: it can be run, printed and read.

use std::fmt;
use std::str::FromStr;

use super::fault::Fault;
use super::run::{Outcome, run};
use super::scenario::Scenario;
use super::scenarios;

/// A schedule. It determines a run completely.
#[derive(Debug, Clone)]
pub struct Script {
    pub scenario: Scenario,
    pub seed: u64,
    pub faults: Vec<Fault>,
}

impl Script {
    /// Runs it to its end, or until a law is broken. With `trace`, notes all inputs and effects of the engine.
    pub fn run(&self, trace: bool) -> Outcome {
        run(&self.scenario, self.seed, &self.faults, trace)
    }
}

/// Prints a line, which can be read again and be added to the findings.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = serde_json::to_string(&self.faults).map_err(|_| fmt::Error)?;
        write!(f, "{} {} {faults}", self.scenario.name(), self.seed)
    }
}

/// Reads the scenario's name, the seed, and the faults as a JSON array.
impl FromStr for Script {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut parts = line.splitn(3, ' ');
        let mut part = |what| parts.next().ok_or(format!("no {what} in {line:?}"));
        let (name, seed, faults) = (part("scenario")?, part("seed")?, part("faults")?);
        let mut known = scenarios::all().into_iter().chain([scenarios::WORLD]);
        Ok(Self {
            scenario: known.find(|it| it.name() == name).ok_or_else(|| {
                format!("there is no scenario {name:?}; --list tells which there are")
            })?,
            seed: seed.parse().map_err(|error| format!("{seed:?}: {error}"))?,
            faults: serde_json::from_str(faults).map_err(|error| format!("{faults}: {error}"))?,
        })
    }
}
