//! Runs many schedules: every single fault of every scenario, then several random faults. Each violation is shrunk and printed
//! as a script.

pub mod faults;
mod shrink;
mod tally;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::law::Violation;
use super::rng::Rng;
use super::run::Outcome;
use super::scenario::Scenario;
use super::script::Script;
pub use tally::Tally;

/// A violation, with the shortest script found for it.
#[derive(Debug, Clone)]
pub struct Finding {
    pub script: Script,
    pub violation: Violation,
    /// How often the same law was broken in the same scenario.
    pub count: usize,
}

/// Receives the counts so far, the number of findings, and the current scenario.
type Progress<'a> = Box<dyn FnMut(&Tally, usize, &Scenario) + 'a>;

/// Runs schedules and collects findings.
pub struct Explorer<'a> {
    scenarios: Vec<Scenario>,
    /// Each scenario's outcome without faults, by its index.
    quiet: BTreeMap<usize, Outcome>,
    pub tally: Tally,
    /// Findings by scenario and law.
    findings: BTreeMap<(&'static str, &'static str), Finding>,
    /// Called after each schedule.
    progress: Progress<'a>,
    pub until: Option<Instant>,
    /// After how many schedules to stop.
    pub most: usize,
    /// The law that, once broken, ends everything.
    pub last: Option<String>,
}

impl<'a> Explorer<'a> {
    /// Explores schedules of these scenarios until `until` at the latest. After each schedule it calls `progress` with the counts so
    /// far, the number of findings, and the scenario.
    pub fn new(
        scenarios: Vec<Scenario>,
        until: Option<Instant>,
        progress: impl FnMut(&Tally, usize, &Scenario) + 'a,
    ) -> Self {
        Self {
            scenarios,
            quiet: BTreeMap::new(),
            tally: Tally::default(),
            findings: BTreeMap::new(),
            progress: Box::new(progress),
            until,
            most: usize::MAX,
            last: None,
        }
    }

    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.values()
    }

    /// Runs every scenario without faults.
    pub fn quiet(&mut self, seed: u64) {
        for index in 0..self.scenarios.len() {
            if self.is_over() {
                return;
            }
            self.quiet_run(index, seed);
        }
    }

    /// Runs every scenario with every single fault.
    pub fn singles(&mut self, seed: u64) {
        for index in 0..self.scenarios.len() {
            self.quiet.remove(&index);
            self.quiet_run(index, seed);
            let scenario = self.scenarios[index];
            for fault in faults::singles(&scenario, &self.quiet[&index]) {
                if self.is_over() {
                    return;
                }
                self.try_out(Script {
                    scenario,
                    seed,
                    faults: vec![fault],
                });
            }
        }
    }

    /// Runs scenarios with one to five random faults until the time is up.
    pub fn chance(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        while !self.is_over() && !self.scenarios.is_empty() {
            let index = rng.below(self.scenarios.len());
            let scenario = self.scenarios[index];
            let seed = rng.next();
            if !self.quiet.contains_key(&index) {
                self.quiet_run(index, seed);
            }
            let quiet = &self.quiet[&index];
            let faults = faults::by_chance(&scenario, quiet, &mut Rng::new(seed));
            self.try_out(Script {
                scenario,
                seed,
                faults,
            });
        }
    }

    fn is_over(&self) -> bool {
        let is_late = self.until.is_some_and(|until| until <= Instant::now());
        let is_last = |law| self.last.as_deref() == Some(law);
        let is_broken = self.findings.keys().any(|(_, law)| is_last(*law));
        is_late || is_broken || self.tally.schedules() >= self.most
    }

    fn quiet_run(&mut self, index: usize, seed: u64) {
        if self.quiet.contains_key(&index) {
            return;
        }
        let script = Script {
            scenario: self.scenarios[index],
            seed,
            faults: Vec::new(),
        };
        let outcome = self.try_out(script);
        self.quiet.insert(index, outcome);
    }

    fn try_out(&mut self, script: Script) -> Outcome {
        let mut outcome = script.run(false);
        self.tally.add(&script, &outcome);
        let scenario = script.scenario;
        if let Some(violation) = outcome.violation.take() {
            let key = (scenario.name(), violation.law);
            if let Some(known) = self.findings.get_mut(&key) {
                known.count += 1;
            } else {
                let (script, violation) = shrink::shrink(script, violation);
                let finding = Finding {
                    script,
                    violation,
                    count: 1,
                };
                self.findings.insert(key, finding);
            }
        }
        (self.progress)(&self.tally, self.findings.len(), &scenario);
        outcome
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { law, at, what } = &self.violation;
        writeln!(f, "# {law}, after {at:?}: {what}")?;
        writeln!(f, "# {} times in this scenario", self.count)?;
        write!(f, "{}", self.script)
    }
}

/// A fresh seed, from the clock.
pub fn new_seed() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::from(since.subsec_nanos()) ^ since.as_secs() << 20
}

/// Formats the number of schedules, the time taken, and the rate.
pub fn pace(schedules: usize, took: Duration) -> String {
    #[allow(clippy::cast_precision_loss, reason = "it is told in words")]
    let a_minute = schedules as f64 * 60.0 / took.as_secs_f64().max(0.001);
    format!(
        "{schedules} schedules in {} s, {a_minute:.0} a minute",
        took.as_secs()
    )
}
